#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "runtime/kernels/channel_loops.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using Attributes = std::map<std::string, AttributeValue, std::less<>>;
using Numbers = std::vector<std::int64_t>;

template <typename T>
Tensor tensor(Shape shape, const std::vector<T>& values) {
    return Tensor::of<T>(std::move(shape), std::span(values));
}

OperatorCase pooling(const std::string& op_type, Tensor input, Attributes attributes,
                     std::int64_t opset = 12) {
    OperatorCase test{.op_type = op_type, .opset = opset, .attributes = std::move(attributes)};
    test.inputs = {std::move(input)};
    return test;
}

void check_output(const OperatorCase& test, const std::vector<double>& expected) {
    for (const Kernels kernels :
         {Kernels::fast, Kernels::fast_row_major, Kernels::reference, Kernels::reference_float64}) {
        const std::vector<double> found = numbers_of(run_operator(test, kernels)[0].view());
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i)
            CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-6));
    }
}

}  // namespace

TEST_CASE("pooling agrees with float64 in every form") {
    struct Case {
        std::string name;
        Shape input;
        Attributes attributes;
    };
    const std::vector<Case> cases{
        {"2x2, stride 2", {2, 16, 8, 10}, {{"kernel_shape", Numbers{2, 2}}, {"strides", Numbers{2, 2}}}},
        {"3x3, padded, 5 channels",
         {1, 5, 9, 7},
         {{"kernel_shape", Numbers{3, 3}}, {"strides", Numbers{2, 2}}, {"pads", Numbers{1, 1, 1, 1}}}},
        {"asymmetric pads",
         {1, 20, 9, 7},
         {{"kernel_shape", Numbers{3, 2}}, {"strides", Numbers{1, 2}}, {"pads", Numbers{0, 1, 2, 0}}}},
        {"ceil",
         {1, 33, 10, 11},
         {{"kernel_shape", Numbers{3, 3}}, {"strides", Numbers{2, 2}}, {"ceil_mode", 1L}}},
        {"ceil, padded",
         {1, 8, 12, 11},
         {{"kernel_shape", Numbers{3, 3}},
          {"strides", Numbers{2, 3}},
          {"pads", Numbers{1, 1, 1, 1}},
          {"ceil_mode", 1L}}},
        {"window wider than its stride leaves over",
         {1, 8, 14, 14},
         {{"kernel_shape", Numbers{2, 2}}, {"strides", Numbers{3, 5}}}},
        {"SAME_UPPER",
         {1, 8, 9, 10},
         {{"kernel_shape", Numbers{3, 2}}, {"strides", Numbers{2, 2}}, {"auto_pad", "SAME_UPPER"}}},
        {"SAME_LOWER",
         {1, 8, 9, 10},
         {{"kernel_shape", Numbers{2, 4}}, {"strides", Numbers{1, 3}}, {"auto_pad", "SAME_LOWER"}}},
        {"VALID",
         {1, 8, 9, 10},
         {{"kernel_shape", Numbers{4, 4}}, {"strides", Numbers{2, 2}}, {"auto_pad", "VALID"}}},
        {"1-D", {2, 6, 31}, {{"kernel_shape", Numbers{4}}, {"strides", Numbers{3}}, {"pads", Numbers{1, 2}}}},
        {"3-D", {1, 6, 7, 8, 9}, {{"kernel_shape", Numbers{2, 3, 2}}, {"strides", Numbers{2, 2, 1}}}},
        {"the whole input", {2, 24, 7, 7}, {{"kernel_shape", Numbers{7, 7}}}},
    };
    for (const Case& c : cases) {
        INFO(c.name);
        check_all_kernels_agree(pooling("MaxPool", random_tensor(c.input, 1), c.attributes));
        check_all_kernels_agree(pooling("AveragePool", random_tensor(c.input, 1), c.attributes));
        Attributes counting_pads = c.attributes;
        counting_pads["count_include_pad"] = std::int64_t{1};
        check_all_kernels_agree(pooling("AveragePool", random_tensor(c.input, 1), counting_pads));
    }
}

TEST_CASE("dilated pooling agrees with float64") {
    const Attributes attributes{{"kernel_shape", Numbers{3, 2}},
                                {"dilations", Numbers{2, 3}},
                                {"strides", Numbers{2, 1}},
                                {"pads", Numbers{1, 1, 2, 0}},
                                {"ceil_mode", 1L}};
    check_all_kernels_agree(pooling("MaxPool", random_tensor({1, 19, 12, 13}, 1), attributes));
    check_all_kernels_agree(pooling("AveragePool", random_tensor({1, 19, 12, 13}, 1), attributes, 19));
}

// The numbers are onnxruntime 1.32's for six ones (AveragePool) and for 1 to 6 (MaxPool).
TEST_CASE("a window that would begin in the padding behind the input is left out") {
    struct Case {
        std::int64_t kernel, stride, before, behind;
        std::vector<double> average, counting_pads, greatest;
    };
    const Tensor ones = tensor<float>({1, 1, 6}, std::vector<float>(6, 1.0F));
    const Tensor counting = tensor<float>({1, 1, 6}, {1, 2, 3, 4, 5, 6});
    for (const Case& c : {Case{3, 2, 1, 1, {1, 1, 1, 1}, {2.0 / 3, 1, 1, 0.5}, {2, 4, 6, 6}},
                          Case{2, 3, 0, 1, {1, 1}, {1, 1}, {2, 5}},
                          Case{2, 2, 1, 1, {1, 1, 1, 1}, {0.5, 1, 1, 0.5}, {1, 3, 5, 6}},
                          Case{3, 4, 0, 0, {1, 1}, {1, 1}, {3, 6}},
                          Case{4, 3, 1, 2, {1, 1, 1}, {0.75, 1, 1.0 / 3}, {3, 6, 6}},
                          Case{3, 3, 2, 2, {1, 1, 1}, {1.0 / 3, 1, 2.0 / 3}, {1, 4, 6}}}) {
        INFO("kernel " << c.kernel << " stride " << c.stride << " pads " << c.before << " " << c.behind);
        Attributes attributes{{"kernel_shape", Numbers{c.kernel}},
                              {"strides", Numbers{c.stride}},
                              {"pads", Numbers{c.before, c.behind}},
                              {"ceil_mode", 1L}};
        check_output(pooling("MaxPool", counting, attributes), c.greatest);
        check_output(pooling("AveragePool", ones, attributes, 10), c.average);
        attributes["count_include_pad"] = std::int64_t{1};
        check_output(pooling("AveragePool", ones, attributes, 10), c.counting_pads);
        check_output(pooling("AveragePool", ones, attributes, 19), c.counting_pads);
    }
}

TEST_CASE("MaxPool says where its greatest elements lie") {
    const Tensor input = tensor<float>(
        {1, 2, 2, 3}, {1, 9, 3, 4, 9, 6, 7, 8, 2, 1, 0, 5});  // the first of two equal ones counts
    OperatorCase test = pooling("MaxPool", input, {{"kernel_shape", Numbers{2, 2}}});
    test.outputs = 2;
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        const std::vector<Tensor> outputs = run_operator(test, kernels);
        CHECK(numbers_of(outputs[0].view()) == std::vector<double>{9, 9, 8, 8});
        CHECK(integers_of(outputs[1].view()) == std::vector<std::int64_t>{1, 1, 7, 7});
    }
    test.attributes["storage_order"] = std::int64_t{1};
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        const std::vector<Tensor> outputs = run_operator(test, kernels);
        CHECK(integers_of(outputs[1].view()) == std::vector<std::int64_t>{2, 2, 8, 8});
    }
}

TEST_CASE("MaxPool takes bytes and keeps what is negative") {
    OperatorCase test = pooling("MaxPool", tensor<std::uint8_t>({1, 1, 4}, {3, 250, 7, 9}),
                                {{"kernel_shape", Numbers{2}}, {"strides", Numbers{2}}});
    CHECK(numbers_of(run_operator(test, Kernels::fast)[0].view()) == std::vector<double>{250, 9});
    test.inputs = {tensor<std::int8_t>({1, 1, 4}, {-3, -100, -7, -9})};
    CHECK(numbers_of(run_operator(test, Kernels::fast)[0].view()) == std::vector<double>{-3, -7});
    check_output(pooling("MaxPool", tensor<float>({1, 1, 2}, {-5, -6}),
                         {{"kernel_shape", Numbers{2}}, {"pads", Numbers{1, 1}}}),
                 {-5, -5, -6});
}

TEST_CASE("global pooling agrees with float64") {
    for (const Shape& shape :
         {Shape{2, 3, 5, 7}, Shape{1, 16, 9, 9}, Shape{1, 24, 33, 40}, Shape{1, 1, 20, 20},
          Shape{3, 257, 6, 5}, Shape{2, 300, 3, 3}, Shape{2, 40, 131}, Shape{1, 5, 4, 5, 6},
          Shape{2, 7, 1, 1}, Shape{1, 12, 1, 5000}}) {
        INFO(to_string(shape));
        check_all_kernels_agree(pooling("GlobalAveragePool", random_tensor(shape, 1, 0, 2), {}));
        check_all_kernels_agree(pooling("GlobalMaxPool", random_tensor(shape, 2, -5, -1), {}));
    }
}

TEST_CASE("the mean of a large plane keeps its digits") {
    const std::size_t rows = 1U << 20;
    const std::size_t columns = 3;
    const std::vector<float> x(rows * columns, 0.1F);
    std::vector<float> lanes(fold_lanes(columns));
    std::vector<double> totals(columns);
    fold_columns(Fold::sum, x.data(), rows, columns, lanes.data(), totals.data());
    for (const double total : totals) CHECK(total / rows == doctest::Approx(0.1F).epsilon(2e-6));
    CHECK(fold_row(Fold::sum, x.data(), x.size()) / static_cast<double>(x.size()) ==
          doctest::Approx(0.1F).epsilon(2e-6));
    CHECK(fold_row(Fold::max, x.data(), 0) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("pooling that cannot be is refused with a reason") {
    const Tensor input = random_tensor({1, 2, 5, 5}, 1);
    check_refused(pooling("MaxPool", input, {}), "attribute 'kernel_shape' is missing");
    check_refused(pooling("MaxPool", input, {{"kernel_shape", Numbers{2}}}),
                  "attribute 'kernel_shape' should have 2 numbers, found 1");
    check_refused(
        pooling("AveragePool", input, {{"kernel_shape", Numbers{2, 2}}, {"pads", Numbers{0, 0, 0, 2}}}),
        "padding of 2 should be less than the kernel's 2 (spatial dimension 1)");
    check_refused(pooling("AveragePool", input, {{"kernel_shape", Numbers{6, 2}}}), "does not fit");
    check_refused(pooling("MaxPool", tensor<std::int64_t>({1, 1, 2}, {1, 2}), {{"kernel_shape", Numbers{2}}}),
                  "found int64");
    check_refused(pooling("GlobalAveragePool", random_tensor({2, 3}, 1), {}), "spatial dimensions");
}
