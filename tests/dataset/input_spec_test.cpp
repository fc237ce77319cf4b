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
