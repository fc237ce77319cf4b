#include "tensor/shape.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace qcalib {

TEST_CASE("a shape has the product of its dimensions as elements and a scalar has one") {
    CHECK(element_count(Shape{}) == 1);
    CHECK(element_count(Shape{2, 3, 4}) == 24);
    CHECK(element_count(Shape{5, 0, 7}) == 0);
    CHECK(element_count(Shape{std::int64_t{1} << 31, std::int64_t{1} << 31}) == std::int64_t{1} << 62);
}

TEST_CASE("negative dimensions and products that overflow are errors") {
    const auto message = [](const Shape& shape) {
        return test::message_of<Error>([&] { element_count(shape); });
    };
    CHECK(message({2, -1}) == "shape [2,-1]: expected dimensions of 0 or more");
    CHECK(message({std::int64_t{1} << 40, std::int64_t{1} << 40}) ==
          "shape [1099511627776,1099511627776]: more elements than can be addressed");
    CHECK_FALSE(message({0, std::numeric_limits<std::int64_t>::max(), 2}).empty());
    CHECK_FALSE(message({std::numeric_limits<std::int64_t>::min()}).empty());
}

TEST_CASE("shapes are printed in brackets without blanks") {
    CHECK(to_string(Shape{1, 3, 640, 640}) == "[1,3,640,640]");
    CHECK(to_string(Shape{}) == "[]");
}

// The examples of ONNX's Broadcasting.md.
TEST_CASE("shapes broadcast by ONNX's multidirectional rule") {
    CHECK(broadcast_shapes(Shape{2, 3, 4, 5}, Shape{}) == Shape{2, 3, 4, 5});
    CHECK(broadcast_shapes(Shape{2, 3, 4, 5}, Shape{5}) == Shape{2, 3, 4, 5});
    CHECK(broadcast_shapes(Shape{4, 5}, Shape{2, 3, 4, 5}) == Shape{2, 3, 4, 5});
    CHECK(broadcast_shapes(Shape{1, 4, 5}, Shape{2, 3, 1, 1}) == Shape{2, 3, 4, 5});
    CHECK(broadcast_shapes(Shape{3, 4, 5}, Shape{2, 1, 1, 1}) == Shape{2, 3, 4, 5});
    CHECK(broadcast_shapes(Shape{1}, Shape{0}) == Shape{0});
    CHECK(broadcast_shapes(Shape{}, Shape{}) == Shape{});
}

TEST_CASE("shapes that do not fit do not broadcast") {
    CHECK_FALSE(broadcast_shapes(Shape{2, 3}, Shape{2, 4}).has_value());
    CHECK_FALSE(broadcast_shapes(Shape{2, 3, 4}, Shape{3, 3}).has_value());
    CHECK_FALSE(broadcast_shapes(Shape{0}, Shape{2}).has_value());
}

}  // namespace qcalib
