#include "simulate/fake_quantize.h"

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "simulate/comparison.h"
#include "simulate/grid_walk.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

Encoding grid(double scale, std::int64_t offset, int bits = 8) {
    Encoding encoding;
    encoding.bits = bits;
    encoding.scale = scale;
    encoding.offset = offset;
    encoding.min = static_cast<double>(offset) * scale;
    encoding.max = encoding.min + scale * static_cast<double>((std::int64_t{1} << bits) - 1);
    return encoding;
}

double round_by(double value, ValueRounding rounding) {
    if (rounding == ValueRounding::half_up) return std::floor(value + 0.5);
    return rounding == ValueRounding::half_away ? std::round(value) : std::nearbyint(value);
}

// The formula of the header, element by element.
float expected(float x, const Encoding& encoding, ValueRounding rounding) {
    const auto low = static_cast<double>(encoding.offset);
    const double high = low + static_cast<double>((std::int64_t{1} << encoding.bits) - 1);
    const double code = round_by(static_cast<double>(x) / encoding.scale, rounding);
    return static_cast<float>(std::min(std::max(code, low), high) * encoding.scale);
}

constexpr ValueRounding all_roundings[] = {ValueRounding::half_up, ValueRounding::half_away,
                                           ValueRounding::half_even};

}  // namespace

TEST_CASE("elements are rounded to the grid and clamped to its ends, whatever their number") {
    for (const ValueRounding rounding : all_roundings) {
        for (const std::size_t count : {0, 1, 3, 7, 8, 15, 16, 17, 1000}) {
            const Tensor values = random_tensor({static_cast<std::int64_t>(count)}, 7 + count, -3, 3);
            std::vector<float> elements(values.view().as<float>().begin(), values.view().as<float>().end());
            const std::vector<float> before = elements;
            const Encoding encoding = grid(0.0137, -120);
            QuantizationSums sums;
            fake_quantize(elements, encoding, rounding, sums);
            std::uint64_t clipped = 0;
            double error = 0;
            for (std::size_t i = 0; i < count; ++i) {
                CHECK(elements[i] == expected(before[i], encoding, rounding));
                const double code = static_cast<double>(before[i]) / encoding.scale;
                if (code < -120.5 || code > 135.5) ++clipped;
                const double change = static_cast<double>(elements[i]) - static_cast<double>(before[i]);
                error += change * change;
            }
            CHECK(sums.elements == count);
            CHECK(sums.clipped == clipped);
            CHECK(sums.error == doctest::Approx(error));
        }
    }
}

TEST_CASE("halves go up, away from zero, or to even") {
    const std::vector<float> halves = {-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F};
    const auto quantized = [&](ValueRounding rounding) {
        std::vector<float> elements = halves;
        QuantizationSums sums;
        fake_quantize(elements, grid(1, -128), rounding, sums);
        return elements;
    };
    CHECK(quantized(ValueRounding::half_up) == std::vector<float>{-2, -1, 0, 1, 2, 3});
    CHECK(quantized(ValueRounding::half_away) == std::vector<float>{-3, -2, -1, 1, 2, 3});
    CHECK(quantized(ValueRounding::half_even) == std::vector<float>{-2, -2, 0, 0, 2, 2});
}

TEST_CASE("infinities and masks are clamped and stay out of the sums, NaN stays") {
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> elements = {infinity, -infinity, -1e38F, std::nanf(""), 0.26F};
    QuantizationSums sums;
    fake_quantize(elements, grid(0.5, -2), ValueRounding::half_up, sums);
    CHECK(elements[0] == 126.5F);
    CHECK(elements[1] == -1);
    CHECK(elements[2] == -1);
    CHECK(std::isnan(elements[3]));
    CHECK(elements[4] == 0.5F);
    CHECK(sums.clipped == 3);
    CHECK(sums.signal == doctest::Approx(0.26 * 0.26));
}

TEST_CASE("codes of 32 bits are exact to double") {
    std::vector<float> elements = {0.1F, -0.7F, 123.25F};
    const std::vector<float> before = elements;
    QuantizationSums sums;
    const Encoding encoding = grid(0x1p-20, -(std::int64_t{1} << 31), 32);
    fake_quantize(elements, encoding, ValueRounding::half_even, sums);
    for (std::size_t i = 0; i < elements.size(); ++i)
        CHECK(elements[i] == expected(before[i], encoding, ValueRounding::half_even));
}

TEST_CASE("each channel has its grid in both memory orders") {
    TensorEncoding encoding{"x", {grid(0.1, -100), grid(0.03, 0), grid(0.007, -200)}, 1, "test"};
    const TensorQuantizer quantizer(encoding, ValueRounding::half_even);
    const Tensor values = random_tensor({2, 3, 4, 5}, 11, -2, 2);
    Tensor rows = copy_of(values);
    quantizer.apply(rows.mutable_view());
    for (std::size_t i = 0; i < 120; ++i) {
        const float before = values.view().as<float>()[i];
        CHECK(rows.view().as<float>()[i] ==
              expected(before, encoding.encodings[i / 20 % 3], ValueRounding::half_even));
    }
    Tensor last({DataType::float32, {2, 3, 4, 5}, MemoryOrder::channels_last});
    copy_to_order(values.view(), last.mutable_view());
    const QuantizationSums sums = quantizer.apply(last.mutable_view());
    CHECK(sums.elements == 120);
    CHECK(compare(rows.view(), last.view()).greatest_error == 0);
    encoding.axis = -3;  // the same one, from the end
    Tensor from_end = copy_of(values);
    TensorQuantizer(encoding, ValueRounding::half_even).apply(from_end.mutable_view());
    CHECK(compare(rows.view(), from_end.view()).greatest_error == 0);
}

TEST_CASE("each block has its grid") {
    TensorEncoding encoding{
        "w", {grid(0.1, -128), grid(0.02, -128), grid(0.3, -128), grid(0.04, -128)}, 0, "test"};
    encoding.block_axis = 1;
    encoding.block_size = 3;  // the last block is short
    const Tensor values = random_tensor({2, 5}, 3, -1, 1);
    Tensor quantized = copy_of(values);
    TensorQuantizer(encoding, ValueRounding::half_up).apply(quantized.mutable_view());
    for (std::size_t i = 0; i < 10; ++i) {
        const Encoding& one = encoding.encodings[i / 5 * 2 + i % 5 / 3];
        CHECK(quantized.view().as<float>()[i] ==
              expected(values.view().as<float>()[i], one, ValueRounding::half_up));
    }
}

TEST_CASE("encodings that do not fit the shape are named with what was expected") {
    const TensorEncoding encoding{"conv.weight", {grid(0.1, -100), grid(0.03, 0)}, 0, "test"};
    Tensor values = random_tensor({3, 2}, 1);
    CHECK_THROWS_WITH_AS(TensorQuantizer(encoding, ValueRounding::half_up).apply(values.mutable_view()),
                         "'conv.weight': expected 3 encodings for the shape [3,2], found 2", Error);
    TensorEncoding far = encoding;
    far.axis = 4;
    CHECK_THROWS_AS(TensorQuantizer(far, ValueRounding::half_up).apply(values.mutable_view()), Error);
    TensorEncoding odd{"y", {}, {}, "test"};
    odd.type = CodeType::floating;
    odd.bits = 8;
    odd.float_name = "float8e4m3fn";
    CHECK_THROWS_WITH_AS(TensorQuantizer(odd, ValueRounding::half_up),
                         "'y': expected integers or floating point of 16 or 32 bits, found float8e4m3fn",
                         Error);
}

TEST_CASE("comparisons leave out what is no number and have the signs of cosine and SQNR right") {
    const std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8, std::nanf(""), -1e38F};
    std::vector<float> b = a;
    b[0] = 1.5F;
    b[8] = 3;
    const ErrorSums sums = compare(Tensor::of<float>({10}, a).view(), Tensor::of<float>({10}, b).view());
    CHECK(sums.elements == 8);
    CHECK(sums.left_out == 2);
    CHECK(sums.greatest_error == 0.5);
    CHECK(sums.mean_error() == doctest::Approx(0.5 / 8));
    CHECK(sums.sqnr() == doctest::Approx(10 * std::log10(204 / 0.25)));
    std::vector<float> minus = {-1, -2};
    const std::vector<float> plus = {1, 2};
    CHECK(compare(Tensor::of<float>({2}, plus).view(), Tensor::of<float>({2}, minus).view()).cosine() ==
          doctest::Approx(-1));
    CHECK(
        std::isinf(compare(Tensor::of<float>({2}, plus).view(), Tensor::of<float>({2}, plus).view()).sqnr()));
}

TEST_CASE("classifiers agree by the first and by the first five") {
    const std::vector<float> a = {0.1F, 0.9F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F};
    std::vector<float> b = {0.1F, 0.35F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F};
    const auto row = [](const std::vector<float>& values) { return Tensor::of<float>({1, 7}, values); };
    TopAgreement agreement = compare_tops(row(a).view(), row(b).view());
    CHECK(agreement.rows == 1);
    CHECK(agreement.top1 == 0);
    CHECK(agreement.top5 == 1);
    CHECK(agreement.has_five);
    b[1] = 0.15F;
    CHECK(compare_tops(row(a).view(), row(b).view()).top5 == 0);
    CHECK(compare_tops(row(a).view(), row(a).view()).top1 == 1);
    CHECK(compare_tops(random_tensor({7}, 1).view(), random_tensor({7}, 1).view()).rows == 0);
    CHECK(compare_tops(random_tensor({1, 1}, 1).view(), random_tensor({1, 1}, 1).view()).rows == 0);
}
