#include <cmath>

#include <doctest/doctest.h>

#include "base/random.h"
#include "dataset/sample_reader.h"

using namespace qcalib;

namespace {

constexpr std::int64_t height = 48;
constexpr std::int64_t width = 64;

// A coloured picture of waves, the same for the same seed, one number per (channel, row, column); grey: the
// channels are equal.
double picture_value(std::uint64_t seed, bool grey, std::int64_t c, std::int64_t y, std::int64_t x) {
    const double phase = static_cast<double>(seed) + (grey ? 0.0 : static_cast<double>(c));
    return std::sin(0.11 * static_cast<double>(x) + phase) +
           std::cos(0.13 * static_cast<double>(y) + 2 * phase);
}

enum class Kind { nchw, nhwc, grey_nhwc, noise, constant };

// The bytes of a file of that kind, as a tensor of `shape`.
Tensor sample(Kind kind, std::uint64_t seed, const Shape& shape) {
    Random random(seed);
    std::vector<float> values;
    for (std::int64_t i = 0; i < 3 * height * width; ++i) {
        double value = 0.5;
        if (kind == Kind::nchw) {
            value = picture_value(seed, false, i / (height * width), i / width % height, i % width);
        } else if (kind == Kind::nhwc || kind == Kind::grey_nhwc) {
            value = picture_value(seed, kind == Kind::grey_nhwc, i % 3, i / 3 / width, i / 3 % width);
        } else if (kind == Kind::noise) {
            value = random.unit();
        }
        values.push_back(static_cast<float>(value));
    }
    return Tensor::of<float>(shape, values);
}

InputSpec nchw_input() {
    return {"x", DataType::float32, {1, 3, height, width}, true};
}
InputSpec nhwc_input() {
    return {"x", DataType::float32, {1, height, width, 3}, true};
}

Shape bound(const InputSpec& input) {
    Shape shape;
    for (const auto& dimension : input.shape) shape.push_back(*dimension);
    return shape;
}

// What is remarked after `count` samples of that kind were read with `layout`.
std::vector<std::string> remarks_on(Kind kind, const InputSpec& input, DataLayout layout,
                                    std::size_t count = 8) {
    Remarks remarks;
    LayoutCheck check;
    PictureFlags preprocessing;
    preprocessing.layout = layout;
    for (std::size_t i = 0; i < count; ++i) {
        Tensor tensor = sample(kind, i, bound(input));
        if (layout == DataLayout::nhwc && input.shape[1] == 3) {
            const TensorDescriptor stored{DataType::float32, tensor.shape(), MemoryOrder::channels_last};
            Tensor permuted(tensor.descriptor());
            copy_to_order({&stored, tensor.data()}, permuted.mutable_view());
            tensor = permuted;
        }
        check.look(input, tensor.view(), preprocessing, remarks);
    }
    return remarks.all();
}

}  // namespace

TEST_CASE("NHWC data in an NCHW input are remarked on, grey ones too") {
    for (const Kind kind : {Kind::nhwc, Kind::grey_nhwc}) {
        const auto remarks = remarks_on(kind, nchw_input(), DataLayout::as_model);
        REQUIRE(remarks.size() == 1);
        CHECK(remarks[0] ==
              "input 'x' [1,3,48,64]: the first samples are far smoother when their data are read as NHWC "
              "(channels "
              "last); if that is how they were written, give --data-layout nhwc");
    }
}

TEST_CASE("NCHW data permuted as if they were NHWC are remarked on") {
    const auto remarks = remarks_on(Kind::nchw, nchw_input(), DataLayout::nhwc);
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0] ==
          "input 'x' [1,3,48,64]: the first samples are far smoother when their data are read as NCHW "
          "(channels "
          "first); if that is how they were written, leave out --data-layout nhwc");
}

TEST_CASE("NCHW data in an NHWC input are remarked on") {
    const auto remarks = remarks_on(Kind::nchw, nhwc_input(), DataLayout::as_model);
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].ends_with(
        "read as NCHW (channels first); if that is how they were written, give --data-layout nchw"));
}

TEST_CASE("Data in the right layout, noise and constant data are not remarked on") {
    CHECK(remarks_on(Kind::nchw, nchw_input(), DataLayout::as_model).empty());
    CHECK(remarks_on(Kind::nhwc, nchw_input(), DataLayout::nhwc).empty());
    CHECK(remarks_on(Kind::grey_nhwc, nchw_input(), DataLayout::nhwc).empty());
    CHECK(remarks_on(Kind::nhwc, nhwc_input(), DataLayout::as_model).empty());
    CHECK(remarks_on(Kind::grey_nhwc, nhwc_input(), DataLayout::nhwc).empty());
    for (const Kind kind : {Kind::noise, Kind::constant}) {
        for (const DataLayout layout : {DataLayout::as_model, DataLayout::nhwc}) {
            CHECK(remarks_on(kind, nchw_input(), layout).empty());
            CHECK(remarks_on(kind, nhwc_input(), layout).empty());
        }
    }
}

TEST_CASE("The layout is decided after as many samples as asked for, or at the end of a shorter run") {
    Remarks remarks;
    LayoutCheck check(3);
    const Tensor tensor = sample(Kind::nhwc, 1, bound(nchw_input()));
    check.look(nchw_input(), tensor.view(), {}, remarks);
    check.look(nchw_input(), tensor.view(), {}, remarks);
    CHECK(remarks.empty());
    check.finish(remarks);
    CHECK(remarks.all().size() == 1);
}

TEST_CASE("One sample that is smoother in the layout used silences the remark") {
    Remarks remarks;
    LayoutCheck check(4);
    for (std::uint64_t i = 0; i < 4; ++i) {
        const Tensor tensor = sample(i == 2 ? Kind::nchw : Kind::nhwc, i, bound(nchw_input()));
        check.look(nchw_input(), tensor.view(), {}, remarks);
    }
    check.finish(remarks);
    CHECK(remarks.empty());
}

TEST_CASE("Inputs are watched each for itself, and those that are no pictures not at all") {
    Remarks remarks;
    LayoutCheck check(2);
    const InputSpec second{"y", DataType::float32, {1, 3, height, width}, true};
    const InputSpec vector{"v", DataType::float32, {1, 3 * height * width}, true};
    for (std::uint64_t i = 0; i < 2; ++i) {
        check.look(nchw_input(), sample(Kind::nchw, i, bound(nchw_input())).view(), {}, remarks);
        check.look(second, sample(Kind::nhwc, i, bound(second)).view(), {}, remarks);
        check.look(vector, sample(Kind::nhwc, i, bound(vector)).view(), {}, remarks);
    }
    REQUIRE(remarks.all().size() == 1);
    CHECK(remarks.all()[0].starts_with("input 'y' "));
}
