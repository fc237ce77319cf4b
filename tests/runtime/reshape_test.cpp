#include "runtime/movement_cases.h"

namespace qcalib::test {

namespace {

std::vector<double> count_to(std::size_t count) {
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), 0.0);
    return values;
}

OperatorCase reshape(Shape input, std::vector<std::int64_t> shape, std::int64_t allow_zero = 0) {
    OperatorCase test{.op_type = "Reshape", .opset = 14};
    test.inputs = {counting(std::move(input)), integers(std::move(shape))};
    if (allow_zero != 0) test.attributes["allowzero"] = allow_zero;
    return test;
}

}  // namespace

TEST_CASE("Reshape keeps the elements in the graph's order whatever the memory order") {
    check_values(reshape({2, 3, 4}, {4, 6}), {4, 6}, count_to(24));
    check_values(reshape({2, 3, 4, 2}, {2, -1}), {2, 24}, count_to(48));
    check_values(reshape({2, 3, 4, 5}, {0, 0, -1}), {2, 3, 20}, count_to(120));
    check_values(reshape({2, 3, 20}, {0, 0, 4, 5}), {2, 3, 4, 5}, count_to(120));
    check_values(reshape({2, 3, 4, 2}, {3, 2, 4, 2}), {3, 2, 4, 2}, count_to(48));
    check_values(reshape({1, 6, 1, 1}, {-1}), {6}, count_to(6));
    check_values(reshape({}, {1, 1}), {1, 1}, {0});
    check_values(reshape({1}, {}), {}, {0});
    check_values(reshape({0, 3}, {3, 0}, 1), {3, 0}, {});
    check_values(reshape({0, 3}, {0, 5, 3}, 1), {0, 5, 3}, {});
}

TEST_CASE("Reshape refuses shapes that do not fit and names the node") {
    check_refused(reshape({2, 3}, {4, 2}), "Reshape 'node'");
    check_refused(reshape({2, 3}, {-1, -1}), "at most one -1");
    check_refused(reshape({2, 3}, {-1, 4}), "no dimension can stand for the -1");
    check_refused(reshape({2, 3}, {2, 3, 0}), "a 0 stands where the input has no dimension");
    check_refused(reshape({2, 3}, {-2, 3}), "-1 or more");
}

TEST_CASE("Flatten splits the dimensions at its axis") {
    OperatorCase test{.op_type = "Flatten"};
    test.inputs = {counting({2, 3, 4, 5})};
    check_values(test, {2, 60}, count_to(120));
    for (const auto& [axis, shape] : {std::pair<std::int64_t, Shape>{0, {1, 120}},
                                      {2, {6, 20}},
                                      {4, {120, 1}},
                                      {-1, {24, 5}},
                                      {-4, {1, 120}}}) {
        test.attributes["axis"] = axis;
        check_values(test, shape, count_to(120));
    }
    test.attributes["axis"] = std::int64_t{5};
    check_refused(test, "expected an axis from -4 to 3, found 5");
}

TEST_CASE("Squeeze and Unsqueeze take axes from an attribute or an input") {
    OperatorCase squeeze{.op_type = "Squeeze", .opset = 11};
    squeeze.inputs = {counting({1, 3, 1, 2})};
    check_values(squeeze, {3, 2}, count_to(6));
    squeeze.attributes["axes"] = std::vector<std::int64_t>{-2};
    check_values(squeeze, {1, 3, 2}, count_to(6));
    squeeze.attributes["axes"] = std::vector<std::int64_t>{1};
    check_refused(squeeze, "expected a dimension of 1 at axis 1, found shape [1,3,1,2]");
    OperatorCase by_input{.op_type = "Squeeze", .opset = 13};
    by_input.inputs = {counting({1, 3, 1, 2}), integers({0, 2})};
    check_values(by_input, {3, 2}, count_to(6));
    by_input.inputs[0] = counting({2, 3, 4, 1});
    by_input.inputs[1] = integers({3});
    check_values(by_input, {2, 3, 4}, count_to(24));

    OperatorCase unsqueeze{.op_type = "Unsqueeze", .opset = 11};
    unsqueeze.inputs = {counting({3, 2})};
    unsqueeze.attributes["axes"] = std::vector<std::int64_t>{0, 3};
    check_values(unsqueeze, {1, 3, 2, 1}, count_to(6));
    OperatorCase unsorted{.op_type = "Unsqueeze", .opset = 13};
    unsorted.inputs = {counting({2, 3, 4}), integers({-1, 1})};
    check_values(unsorted, {2, 1, 3, 4, 1}, count_to(24));
    unsorted.inputs[1] = integers({1, 1});
    check_refused(unsorted, "found axis 1 twice");
}

TEST_CASE("Identity and Dropout give their input") {
    OperatorCase identity{.op_type = "Identity"};
    identity.inputs = {counting<std::int64_t>({2, 3})};
    check_values(identity, {2, 3}, count_to(6));
    OperatorCase dropout{.op_type = "Dropout", .outputs = 2};
    dropout.inputs = {counting({1, 2, 2, 2})};
    check_values(dropout, {1, 2, 2, 2}, count_to(8));
    for (const Kernels kernels : all_kernels) {
        const Tensor mask = run_operator(dropout, kernels).at(1);
        CHECK(mask.type() == DataType::boolean);
        CHECK(numbers_of(mask.view()) == std::vector<double>(8, 1.0));
    }
}

TEST_CASE("Dropout in training mode is refused unless its ratio is 0") {
    OperatorCase dropout{.op_type = "Dropout"};
    const float zero = 0;
    const float half = 0.5F;
    dropout.inputs = {counting({2, 3}), Tensor::of<float>({}, std::span(&zero, 1)), booleans({}, {true})};
    dropout.constant = {false, true, true};
    check_values(dropout, {2, 3}, count_to(6));
    dropout.inputs[1] = Tensor::of<float>({}, std::span(&half, 1));
    check_refused(dropout, "training_mode is on with ratio 0.5");
}

}  // namespace qcalib::test
