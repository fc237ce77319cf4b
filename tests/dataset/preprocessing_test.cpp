#include <limits>

#include <doctest/doctest.h>

#include "dataset/sample_reader.h"
#include "sample_files.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

std::string size_error(const std::string& text) {
    return error_of([&] { parse_picture_size(text, "--resize"); });
}

PictureFlags imagenet() {
    PictureFlags preprocessing;
    preprocessing.resize = PictureSize{256, 240};
    preprocessing.crop = PictureSize{224, 200};
    preprocessing.color = ColorOrder::bgr;
    preprocessing.mean = {0.485, 0.456, 0.406};
    preprocessing.std = {0.229, 0.224, 0.225};
    return preprocessing;
}

std::string reader_error(const Preprocessing& preprocessing) {
    const std::vector<InputSpec> inputs{{"x", DataType::float32, {1, 3, std::nullopt, 8}, true},
                                        {"ids", DataType::int64, {1, 7}, true}};
    return error_of([&] { const SampleReader reader(inputs, preprocessing); });
}

}  // namespace

TEST_CASE("A picture size is WIDTHxHEIGHT") {
    const PictureSize size = parse_picture_size("320x240", "--resize");
    CHECK(size.width == 320);
    CHECK(size.height == 240);
    CHECK(size_error("320") == "--resize: expected WIDTHxHEIGHT such as 640x480, found '320'");
    CHECK(size_error("1x2x3") == "--resize: expected WIDTHxHEIGHT such as 640x480, found '1x2x3'");
    CHECK(size_error("ax3") == "--resize: expected a whole number, found 'a'");
    CHECK(size_error("0x3") == "--resize: expected sides of 1 to 65535 pixels, found 0");
    CHECK(size_error("-4x3") == "--resize: expected sides of 1 to 65535 pixels, found -4");
    CHECK(size_error("4x70000") == "--resize: expected sides of 1 to 65535 pixels, found 70000");
}

TEST_CASE("The resolved chain is described in one line with all numbers") {
    CHECK(describe(Preprocessing{}) == "decode, rgb, times 1/255; integer inputs: the pixels as they are");
    PictureFlags all = imagenet();
    all.multiply = 0.5;
    all.layout = DataLayout::nhwc;
    CHECK(
        describe(all) ==
        "decode, resize to 256x240 (bilinear, half-pixel centres, no antialiasing), crop the centre "
        "224x200, bgr, "
        "times 0.5, minus [0.485, 0.456, 0.406], divided by [0.229, 0.224, 0.225]; integer inputs: rounded; "
        "arrays and raw data: NHWC, permuted to the model's NCHW");
}

TEST_CASE("The canonical text holds every setting, and equal settings have equal texts") {
    CHECK(canonical(imagenet()) ==
          "step=resize: {size: 256x240}\nstep=crop: {size: 224x200}\nstep=color: {order: bgr}\n"
          "step=scale: {multiply: 0.00392156862745098}\nstep=normalize: {mean: [0.485, 0.456, 0.406], "
          "std: [0.229, 0.224, 0.225]}");
    const std::string plain = "step=scale: {multiply: 0.00392156862745098}";
    CHECK(canonical(Preprocessing{}) == plain);
    PictureFlags same;
    same.mean = {0.0, -0.0, 0.0};
    same.std = {1};
    CHECK(canonical(same) == plain);
    CHECK(Preprocessing(same).default_scaling());
    PictureFlags other;
    other.layout = DataLayout::nhwc;
    CHECK(canonical(other) != plain);
}

TEST_CASE("A reader refuses numbers that scale nothing") {
    PictureFlags preprocessing = imagenet();
    CHECK(reader_error(preprocessing) == "");
    preprocessing.std = {1, 0, 1};
    CHECK(reader_error(preprocessing) == "--std: expected numbers other than 0, found 0");
    preprocessing = imagenet();
    preprocessing.mean = {std::numeric_limits<double>::quiet_NaN()};
    CHECK(reader_error(preprocessing) == "--mean: expected finite numbers, found nan");
    preprocessing = imagenet();
    preprocessing.multiply = std::numeric_limits<double>::infinity();
    CHECK(reader_error(preprocessing) == "--multiply: expected finite numbers, found inf");
    preprocessing = imagenet();
    preprocessing.mean = {1, 2};
    CHECK(reader_error(preprocessing) ==
          "mean: expected one number or one for each channel, found 2 numbers, and no input of the model "
          "has 2 "
          "channels");
}
