#include "runtime/movement_cases.h"

namespace qcalib::test {

TEST_CASE("Concat joins along any axis of any rank in any memory order") {
    std::uint64_t seed = 1;
    for (const Shape& shape : {Shape{4}, Shape{2, 3}, Shape{2, 3, 4}, Shape{2, 3, 4, 5}, Shape{2, 3, 4, 2, 2},
                               Shape{2, 1, 2, 2, 2, 2}}) {
        for (std::int64_t axis = -static_cast<std::int64_t>(shape.size());
             axis < static_cast<std::int64_t>(shape.size()); ++axis) {
            OperatorCase test{.op_type = "Concat"};
            test.attributes["axis"] = axis;
            for (const std::int64_t extra : {0, 17, 1}) {
                Shape part = shape;
                part[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size())
                                                       : axis)] += extra;
                test.inputs.emplace_back(random_tensor(part, seed++));
            }
            CAPTURE(shape);
            CAPTURE(axis);
            check_all_kernels_agree(test);
        }
    }
}

TEST_CASE("Concat puts its inputs one after the other") {
    OperatorCase test{.op_type = "Concat"};
    test.attributes["axis"] = std::int64_t{1};
    test.inputs = {counting<std::int64_t>({2, 2}), counting<std::int64_t>({2, 0}),
                   counting<std::int64_t>({2, 1})};
    check_values(test, {2, 3}, {0, 1, 0, 2, 3, 1});
    test.inputs = {counting<std::int32_t>({2, 2})};
    check_values(test, {2, 2}, {0, 1, 2, 3});
    test.inputs = {booleans({1, 2}, {true, false}), booleans({1, 1}, {true})};
    check_values(test, {1, 3}, {1, 0, 1});
}

TEST_CASE("Concat refuses inputs that do not fit, naming both") {
    OperatorCase test{.op_type = "Concat"};
    test.attributes["axis"] = std::int64_t{1};
    test.inputs = {counting({2, 2}), counting({3, 1})};
    check_refused(test, "cannot join float");
    test.inputs = {counting({2, 2}), counting<std::int64_t>({2, 1})};
    check_refused(test, "int64 [2,1]");
    test.attributes.clear();
    check_refused(test, "expected the attribute 'axis'");
}

TEST_CASE("Split takes sizes from an attribute, an input, or makes equal parts") {
    OperatorCase test{.op_type = "Split", .opset = 11, .outputs = 3};
    test.attributes["axis"] = std::int64_t{1};
    test.inputs = {random_tensor({2, 6, 3, 4}, 3)};
    check_all_kernels_agree(test);
    test.attributes["split"] = std::vector<std::int64_t>{1, 0, 5};
    check_all_kernels_agree(test);
    test.opset = 13;
    test.attributes.erase("split");
    test.inputs = {random_tensor({2, 6, 3, 4}, 4), integers({3, 2, 1})};
    for (const std::int64_t axis : {1, -3}) {
        test.attributes["axis"] = axis;
        check_all_kernels_agree(test);
    }
    for (const Kernels kernels : all_kernels) {
        OperatorCase uneven{.op_type = "Split", .opset = 18, .outputs = 3};
        uneven.attributes["num_outputs"] = std::int64_t{3};
        uneven.inputs = {counting({7})};
        const std::vector<Tensor> parts = run_operator(uneven, kernels);
        CHECK(numbers_of(parts[0].view()) == std::vector<double>{0, 1, 2});
        CHECK(numbers_of(parts[1].view()) == std::vector<double>{3, 4, 5});
        CHECK(numbers_of(parts[2].view()) == std::vector<double>{6});
    }
}

TEST_CASE("Split refuses sizes that do not add up") {
    OperatorCase test{.op_type = "Split", .opset = 13, .outputs = 2};
    test.inputs = {counting({5}), integers({2, 2})};
    check_refused(test, "expected 2 sizes with the sum 5, found [2,2]");
    test.inputs = {counting({5}), integers({6, -1})};
    check_refused(test, "expected sizes of 0 to 5, found 6");
    test.inputs = {counting({5})};
    check_refused(test, "expected a dimension that 2 divides, found 5");
}

}  // namespace qcalib::test
