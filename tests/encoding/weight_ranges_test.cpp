#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"
#include "encoding/encoding.h"

using namespace qcalib;

namespace {

std::vector<float> random_values(std::size_t count, Random& random) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(random.unit() * 20 - 10);
    return values;
}

// The ranges along an axis, found element by element.
std::vector<Range> brute_force(const Shape& shape, std::span<const float> values, std::size_t axis) {
    std::size_t inner = 1;
    for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
    const auto slices = static_cast<std::size_t>(shape[axis]);
    std::vector<Range> ranges(slices, {1e9, -1e9});
    for (std::size_t i = 0; i < values.size(); ++i) {
        Range& range = ranges[i / inner % slices];
        range.min = std::min<double>(range.min, values[i]);
        range.max = std::max<double>(range.max, values[i]);
    }
    return ranges;
}

std::string message_of(const Tensor& tensor, std::optional<int> axis, std::string_view name) {
    try {
        weight_ranges(tensor.view(), axis, name);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("weight ranges along any axis of any rank agree with a count element by element") {
    Random random(11);
    for (int trial = 0; trial < 400; ++trial) {
        Shape shape(1 + random.below(5));
        for (std::int64_t& dimension : shape) {
            dimension = static_cast<std::int64_t>(1 + random.below(random.below(6) == 0 ? 40 : 6));
        }
        const auto values = random_values(static_cast<std::size_t>(element_count(shape)), random);
        const Tensor tensor = Tensor::of<float>(shape, values);
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            CAPTURE(to_string(shape));
            CAPTURE(axis);
            REQUIRE(weight_ranges(tensor.view(), static_cast<int>(axis), "w") ==
                    brute_force(shape, values, axis));
        }
        const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
        REQUIRE(weight_ranges(tensor.view(), {}, "w") == std::vector<Range>{{*least, *greatest}});
    }
}

TEST_CASE("channels-last weights give the ranges of their logical axes") {
    Random random(12);
    const Shape shape{3, 5, 2, 7};
    const auto values = random_values(210, random);
    const Tensor rows = Tensor::of<float>(shape, values);
    Tensor last(TensorDescriptor{DataType::float32, shape, MemoryOrder::channels_last});
    copy_to_order(rows.view(), last.mutable_view());
    for (int axis = 0; axis < 4; ++axis) {
        CHECK(weight_ranges(last.view(), axis, "w") == weight_ranges(rows.view(), axis, "w"));
    }
}

TEST_CASE("weights may lie unaligned") {
    Random random(13);
    const auto values = random_values(1000, random);
    std::vector<std::byte> memory(values.size() * sizeof(float) + 4);
    for (std::size_t shift = 0; shift < 4; ++shift) {
        std::memcpy(memory.data() + shift, values.data(), values.size() * sizeof(float));
        const TensorDescriptor descriptor{DataType::float32, {10, 100}, MemoryOrder::row_major};
        const TensorView view{&descriptor, memory.data() + shift};
        CHECK(weight_ranges(view, 0, "w") == brute_force({10, 100}, values, 0));
        CHECK(weight_ranges(view, 1, "w") == brute_force({10, 100}, values, 1));
    }
}

TEST_CASE("a scalar has one range and an empty slice the range 0 to 0") {
    CHECK(weight_ranges(Tensor::of<float>({}, std::vector<float>{2.5F}).view(), {}, "w") ==
          std::vector<Range>{{2.5, 2.5}});
    const Tensor empty(TensorDescriptor{DataType::float32, {3, 0}, MemoryOrder::row_major});
    CHECK(weight_ranges(empty.view(), 0, "w") == std::vector<Range>(3));
    CHECK(weight_ranges(empty.view(), 1, "w").empty());
    CHECK(weight_ranges(empty.view(), {}, "w") == std::vector<Range>(1));
    const Tensor no_rows(TensorDescriptor{DataType::float32, {0, 3}, MemoryOrder::row_major});
    CHECK(weight_ranges(no_rows.view(), 1, "w") == std::vector<Range>(3));
}

TEST_CASE("negative zero counts as zero") {
    for (const std::optional<int> axis : {std::optional<int>{}, std::optional<int>{0}}) {
        const Tensor tensor = Tensor::of<float>({1}, std::vector<float>{-0.0F});
        const Range range = weight_ranges(tensor.view(), axis, "w").at(0);
        CHECK_FALSE(std::signbit(range.min));
        CHECK_FALSE(std::signbit(range.max));
    }
}

TEST_CASE("float32's largest values are finite weights") {
    const float most = std::numeric_limits<float>::max();
    const Tensor tensor = Tensor::of<float>({2}, std::vector<float>{-most, most});
    CHECK(weight_ranges(tensor.view(), {}, "w") == std::vector<Range>{{-most, most}});
}

TEST_CASE("a NaN or infinite weight is an error that starts with the tensor's name and tells where") {
    std::vector<float> values(60, 1.0F);
    values[47] = std::numeric_limits<float>::quiet_NaN();
    values[50] = -std::numeric_limits<float>::infinity();
    const Tensor tensor = Tensor::of<float>({3, 4, 5}, values);
    for (const std::optional<int> axis :
         {std::optional<int>{}, std::optional<int>{0}, std::optional<int>{2}}) {
        CHECK(message_of(tensor, axis, "conv\x01.w") ==
              "'conv\\x01.w': expected finite values in a weight, found 2 of 60 elements NaN or infinite, "
              "the first "
              "(NaN) at [2,1,2]");
    }
    values[47] = 1;
    CHECK(message_of(Tensor::of<float>({60}, values), 0, "w")
              .find("1 of 60 elements NaN or infinite, the first "
                    "(-Inf) at [50]") != std::string::npos);
}
