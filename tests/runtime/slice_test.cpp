#include <limits>

#include "runtime/movement_cases.h"

namespace qcalib::test {

namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

OperatorCase slice(Shape shape, std::vector<std::int64_t> starts, std::vector<std::int64_t> ends,
                   std::vector<std::int64_t> axes, std::vector<std::int64_t> steps) {
    OperatorCase test{.op_type = "Slice"};
    test.inputs = {counting(std::move(shape)), integers(std::move(starts)), integers(std::move(ends)),
                   integers(std::move(axes)), integers(std::move(steps))};
    return test;
}

}  // namespace

TEST_CASE("Slice holds starts and ends to the axis and counts negative ones from the back") {
    check_values(slice({6}, {1}, {4}, {0}, {1}), {3}, {1, 2, 3});
    check_values(slice({6}, {-3}, {-1}, {0}, {1}), {2}, {3, 4});
    check_values(slice({6}, {-100}, {100}, {0}, {2}), {3}, {0, 2, 4});
    check_values(slice({6}, {2}, {highest}, {0}, {1}), {4}, {2, 3, 4, 5});
    check_values(slice({6}, {4}, {2}, {0}, {1}), {0}, {});
    check_values(slice({6}, {100}, {highest}, {0}, {1}), {0}, {});
    check_values(slice({6}, {1}, {6}, {0}, {highest}), {1}, {1});
    check_values(slice({0, 2}, {0}, {5}, {0}, {1}), {0, 2}, {});
}

TEST_CASE("Slice goes backwards with negative steps") {
    check_values(slice({6}, {-1}, {lowest}, {0}, {-1}), {6}, {5, 4, 3, 2, 1, 0});
    check_values(slice({6}, {4}, {0}, {0}, {-2}), {2}, {4, 2});
    check_values(slice({6}, {highest}, {-100}, {0}, {-3}), {2}, {5, 2});
    check_values(slice({6}, {5}, {lowest}, {0}, {lowest}), {1}, {5});
    check_values(slice({2, 3}, {1, 2}, {lowest, 0}, {0, 1}, {-1, -1}), {2, 2}, {5, 4, 2, 1});
}

TEST_CASE("Slice agrees with the reference on every axis in both memory orders") {
    for (const Shape& shape : {Shape{7, 5, 6}, Shape{3, 9, 6, 7}, Shape{2, 5, 4, 6, 3}}) {
        for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.size()); ++axis) {
            check_all_kernels_agree(slice(shape, {1}, {-1}, {axis}, {1}));
            check_all_kernels_agree(
                slice(shape, {-1}, {0}, {axis - static_cast<std::int64_t>(shape.size())}, {-2}));
        }
        check_all_kernels_agree(slice(shape, {1, 0, 1}, {3, 4, 5}, {0, 1, 2}, {1, 2, 1}));
    }
}

TEST_CASE("Slice before opset 10 takes attributes; left-out axes are the first ones") {
    OperatorCase test{.op_type = "Slice", .opset = 9};
    test.inputs = {counting<std::int64_t>({3, 4})};
    test.attributes["starts"] = std::vector<std::int64_t>{1, -2};
    test.attributes["ends"] = std::vector<std::int64_t>{3, 1000};
    check_values(test, {2, 2}, {6, 7, 10, 11});
    test.attributes["axes"] = std::vector<std::int64_t>{1, 0};
    check_values(test, {2, 2}, {5, 6, 9, 10});
    OperatorCase no_axes{.op_type = "Slice"};
    no_axes.inputs = {counting({3, 4}), integers({1}), integers({2})};
    check_values(no_axes, {1, 4}, {4, 5, 6, 7});
}

TEST_CASE("Slice refuses steps of 0 and lists of different lengths") {
    check_refused(slice({6}, {0}, {1}, {0}, {0}), "expected steps other than 0");
    check_refused(slice({6, 6}, {0, 0}, {1}, {0, 1}, {1, 1}), "found 2, 1, 2 and 2");
    check_refused(slice({6}, {0}, {1}, {1}, {1}), "expected an axis from -1 to 0, found 1");
}

}  // namespace qcalib::test
