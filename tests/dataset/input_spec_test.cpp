#include "dataset/input_spec.h"

#include <doctest/doctest.h>

#include "sample_files.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr auto open = std::nullopt;

std::vector<InputSpec> one_input() {
    return {{"x", DataType::float32, {open, 3, open, open}, true}};
}

std::vector<InputSpec> two_inputs() {
    return {{"image", DataType::float32, {1, 3, open, open}, true}, {"a=b", DataType::int64, {open}, true}};
}

std::string error_with(std::vector<InputSpec> inputs, const std::string& option) {
    return error_of([&] { apply_shape(inputs, option); });
}

}  // namespace

TEST_CASE("A shape with open dimensions prints them as question marks") {
    CHECK(to_string(one_input()[0].shape) == "[?,3,?,?]");
    CHECK(to_string(std::vector<std::optional<std::int64_t>>{}) == "[]");
}

TEST_CASE("--shape binds open dimensions, with the input's name or, where there is one input, without") {
    auto inputs = one_input();
    apply_shape(inputs, "x=1,3,640,320");
    CHECK(to_string(inputs[0].shape) == "[1,3,640,320]");
    inputs = one_input();
    apply_shape(inputs, " 2, 3,64,32 ");
    CHECK(to_string(inputs[0].shape) == "[2,3,64,32]");
}

TEST_CASE("--shape takes the name up to the last equals sign") {
    auto inputs = two_inputs();
    apply_shape(inputs, "a=b=7");
    CHECK(to_string(inputs[0].shape) == "[1,3,?,?]");
    CHECK(to_string(inputs[1].shape) == "[7]");
}

TEST_CASE("--shape gives an input of unknown rank its rank, a scalar included") {
    std::vector<InputSpec> inputs{{"x", DataType::float32, {}, false}};
    apply_shape(inputs, "x=4,5");
    CHECK(inputs[0].rank_known);
    CHECK(to_string(inputs[0].shape) == "[4,5]");
    inputs = {{"x", DataType::float32, {}, false}};
    apply_shape(inputs, "x=");
    CHECK(inputs[0].rank_known);
    CHECK(inputs[0].shape.empty());
}

TEST_CASE("--shape refuses what contradicts the model and says both numbers") {
    CHECK(error_with(one_input(), "x=1,4,8,8") ==
          "--shape x=1,4,8,8: dimension 1 of input 'x' [?,3,?,?] is 3 in the model, not 4");
    CHECK(error_with(one_input(), "1,3,8") == "--shape 1,3,8: input 'x' [?,3,?,?] has 4 dimensions, found 3");
    CHECK(error_with(one_input(), "x=") == "--shape x=: input 'x' [?,3,?,?] has 4 dimensions, found 0");
}

TEST_CASE("--shape refuses numbers that are no dimensions") {
    CHECK(error_with(one_input(), "x=1,3,-8,8") ==
          "--shape x=1,3,-8,8: expected dimensions of at least 1, found -8");
    CHECK(error_with(one_input(), "x=0,3,8,8") ==
          "--shape x=0,3,8,8: expected dimensions of at least 1, found 0");
    CHECK(error_with(one_input(), "x=1x3x8x8") ==
          "--shape x=1x3x8x8: expected a whole number, found '1x3x8x8'");
    CHECK(error_with(one_input(), "x=1,3,,8") == "--shape x=1,3,,8: expected a whole number, found ''");
    CHECK(error_with(one_input(), "x=9000000000,3,9000000000,1")
              .starts_with("--shape x=9000000000,3,9000000000,1: "));
}

TEST_CASE("--shape names the nearest input, or all where none is near") {
    CHECK(error_with(two_inputs(), "imgae=1,3,8,8") ==
          "--shape imgae=1,3,8,8: no input 'imgae' (did you mean 'image'?)");
    CHECK(error_with(two_inputs(), "something=1") ==
          "--shape something=1: no input 'something' (the model's inputs: image and a=b)");
    CHECK(
        error_with(two_inputs(), "1,3,8,8") ==
        "--shape 1,3,8,8: expected NAME=... with one of the model's 2 inputs (image and a=b), found no name");
}

TEST_CASE("--input gives an input a value: one number for all elements, or one for each") {
    std::vector<InputSpec> inputs = {{"sr", DataType::int64, {}, true},
                                     {"mask", DataType::float32, {1, open}, true},
                                     {"all", DataType::float32, {2, 2}, true},
                                     {"on", DataType::boolean, {open}, true},
                                     {"small", DataType::uint8, {2}, true}};
    apply_value(inputs, "sr=16000");
    apply_value(inputs, "mask=1, 0.5,-2e1");
    apply_value(inputs, "all=3");
    apply_value(inputs, "on=1");
    apply_value(inputs, "small=0,255");
    CHECK(inputs[0].otherwise->descriptor() == TensorDescriptor{DataType::int64, {}, MemoryOrder::row_major});
    CHECK(integers_of(inputs[0].otherwise->view()) == std::vector<std::int64_t>{16000});
    CHECK(inputs[1].otherwise->shape() == Shape{1, 3});
    CHECK(numbers_of(inputs[1].otherwise->view()) == std::vector<double>{1, 0.5, -20});
    CHECK(numbers_of(inputs[2].otherwise->view()) == std::vector<double>{3, 3, 3, 3});
    CHECK(inputs[3].otherwise->shape() == Shape{1});
    CHECK(inputs[3].otherwise->view().as<bool>()[0]);
    CHECK(inputs[4].otherwise->view().as<std::uint8_t>()[1] == 255);
}

TEST_CASE("--input refuses what does not fit the input, and offers the nearest name") {
    const auto error = [](const InputSpec& input, const std::string& option) {
        std::vector<InputSpec> inputs = {input, {"other", DataType::float32, {1}, true}};
        return error_of([&] { apply_value(inputs, option); });
    };
    const InputSpec rate{"rate", DataType::int32, {}, true};
    CHECK(error(rate, "rat=1") == "--input rat=1: no input 'rat' (did you mean 'rate'?)");
    CHECK(error(rate, "16000").find("expected NAME=... with one of the model's 2 inputs") !=
          std::string::npos);
    CHECK(error(rate, "rate=1.5").find("expected a whole number, found '1.5'") != std::string::npos);
    CHECK(error(rate, "rate=3000000000") == "--input rate=3000000000: 3000000000 is beyond int32");
    CHECK(error(rate, "rate=1,2") ==
          "--input rate=1,2: expected one number or one for each element of input 'rate' [], found 2");
    CHECK(error(rate, "rate=").find("expected a whole number") != std::string::npos);
    CHECK(error({"x", DataType::float32, {2, open}, true}, "x=1,2,3").find("found 3") != std::string::npos);
    CHECK(error({"x", DataType::float32, {open, open}, true}, "x=1,2").find("needs a --shape") !=
          std::string::npos);
    CHECK(error({"x", DataType::float32, {}, false}, "x=1").find("needs a --shape") != std::string::npos);
    CHECK(error({"x", DataType::float32, {1}, true}, "x=1e39") == "--input x=1e39: 1e39 is beyond float32");
    CHECK(error({"x", DataType::boolean, {1}, true}, "x=2").find("expected 0 or 1 for a bool, found 2") !=
          std::string::npos);
    CHECK(error({"x", DataType::string, {1}, true}, "x=2").find("takes no numbers") != std::string::npos);
    std::vector<InputSpec> twice = {rate};
    apply_value(twice, "rate=1");
    CHECK(error_of([&] { apply_value(twice, "2"); }) == "--input 2: input 'rate' is given twice");
}
