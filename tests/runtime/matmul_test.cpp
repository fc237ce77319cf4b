#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

template <typename T>
Tensor tensor(Shape shape, const std::vector<T>& values) {
    return Tensor::of<T>(std::move(shape), std::span(values));
}

OperatorCase matmul(const Shape& first, const Shape& second, bool constant) {
    OperatorCase test{.op_type = "MatMul", .opset = 13};
    test.inputs = {random_tensor(first, 1), random_tensor(second, 2)};
    test.constant = {false, constant};
    return test;
}

OperatorCase gemm(const Shape& first, const Shape& second, std::optional<Shape> term, bool constant) {
    OperatorCase test{.op_type = "Gemm", .opset = 13};
    test.inputs = {random_tensor(first, 1), random_tensor(second, 2)};
    if (term) test.inputs.emplace_back(random_tensor(*term, 3));
    test.constant = {false, constant, constant};
    return test;
}

}  // namespace

TEST_CASE("matrix products broadcast as numpy.matmul does") {
    struct Case {
        Shape first, second, output;
    };
    for (const Case& c : {Case{{3, 4}, {4, 5}, {3, 5}},
                          Case{{1, 7}, {7, 1}, {1, 1}},
                          Case{{197, 64}, {64, 33}, {197, 33}},
                          Case{{2, 3, 4}, {4, 5}, {2, 3, 5}},
                          Case{{2, 6, 17, 8}, {8, 9}, {2, 6, 17, 9}},
                          Case{{2, 3, 4}, {2, 4, 5}, {2, 3, 5}},
                          Case{{2, 6, 17, 8}, {2, 6, 8, 17}, {2, 6, 17, 17}},
                          Case{{3, 4}, {6, 4, 5}, {6, 3, 5}},
                          Case{{1, 6, 3, 4}, {2, 1, 4, 5}, {2, 6, 3, 5}},
                          Case{{2, 6, 3, 4}, {2, 1, 4, 5}, {2, 6, 3, 5}},
                          Case{{2, 1, 3, 4}, {2, 6, 4, 5}, {2, 6, 3, 5}},
                          Case{{6, 3, 4}, {2, 1, 4, 5}, {2, 6, 3, 5}},
                          Case{{3, 1, 2, 5, 6}, {4, 1, 6, 2}, {3, 4, 2, 5, 2}},
                          Case{{4}, {4, 5}, {5}},
                          Case{{3, 4}, {4}, {3}},
                          Case{{4}, {4}, {}},
                          Case{{4}, {2, 4, 5}, {2, 5}},
                          Case{{2, 3, 4}, {4}, {2, 3}},
                          Case{{0, 4}, {4, 5}, {0, 5}},
                          Case{{2, 0, 3, 4}, {4, 5}, {2, 0, 3, 5}},
                          Case{{3, 0}, {0, 5}, {3, 5}}}) {
        INFO(to_string(c.first) << " by " << to_string(c.second));
        for (const bool constant : {false, true}) {
            const OperatorCase test = matmul(c.first, c.second, constant);
            CHECK(run_operator(test, Kernels::fast)[0].shape() == c.output);
            check_all_kernels_agree(test);
        }
    }
}

TEST_CASE("a matrix product without inner elements is zero") {
    const OperatorCase test = matmul({2, 0}, {0, 3}, false);
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        CHECK(numbers_of(run_operator(test, kernels)[0].view()) == std::vector<double>(6, 0.0));
    }
}

TEST_CASE("integer matrices are multiplied exactly") {
    OperatorCase test{.op_type = "MatMul", .opset = 13};
    test.inputs = {tensor<std::int64_t>({1, 2}, {-3, 1LL << 40}),
                   tensor<std::int64_t>({2, 2}, {5, -7, 2, 1})};
    const std::vector<std::int64_t> expected{(1LL << 41) - 15, (1LL << 40) + 21};
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        const Tensor output = run_operator(test, kernels)[0];
        CHECK(integers_of(output.view()) == expected);
    }
    test.inputs = {tensor<std::int32_t>({1, 2}, {-3, 4}), tensor<std::int32_t>({2, 1}, {5, -7})};
    CHECK(integers_of(run_operator(test, Kernels::fast)[0].view()) == std::vector<std::int64_t>{-43});
}

TEST_CASE("Gemm agrees with float64 in every form") {
    for (const std::int64_t first_transposed : {0, 1}) {
        for (const std::int64_t second_transposed : {0, 1}) {
            const Shape first = first_transposed != 0 ? Shape{17, 6} : Shape{6, 17};
            const Shape second = second_transposed != 0 ? Shape{10, 17} : Shape{17, 10};
            for (const auto& term :
                 {std::optional<Shape>(), std::optional(Shape{}), std::optional(Shape{1}),
                  std::optional(Shape{10}), std::optional(Shape{1, 10}), std::optional(Shape{6, 1}),
                  std::optional(Shape{1, 1}), std::optional(Shape{6, 10})}) {
                for (const auto& [alpha, beta] : {std::pair(1.0F, 1.0F), std::pair(0.5F, 1.0F),
                                                  std::pair(1.0F, 0.25F), std::pair(-2.0F, 3.0F)}) {
                    INFO("transA " << first_transposed << " transB " << second_transposed << " C "
                                   << (term ? to_string(*term) : "none") << " alpha " << alpha << " beta "
                                   << beta);
                    OperatorCase test = gemm(first, second, term, beta == 1.0F);
                    test.attributes = {{"transA", first_transposed},
                                       {"transB", second_transposed},
                                       {"alpha", alpha},
                                       {"beta", beta}};
                    check_all_kernels_agree(test);
                }
            }
        }
    }
}

TEST_CASE("Gemm of one row or one column") {
    for (const bool constant : {false, true}) {
        check_all_kernels_agree(gemm({1, 1280}, {1280, 100}, Shape{100}, constant));
        check_all_kernels_agree(gemm({1, 33}, {33, 7}, Shape{1, 7}, constant));
        check_all_kernels_agree(gemm({5, 33}, {33, 1}, Shape{5, 1}, constant));
        check_all_kernels_agree(gemm({5, 33}, {33, 1}, Shape{1}, constant));
        check_all_kernels_agree(gemm({0, 33}, {33, 4}, Shape{4}, constant));
    }
}

TEST_CASE("Gemm computes the textbook example") {
    OperatorCase test{.op_type = "Gemm", .opset = 7};
    test.inputs = {tensor<float>({2, 2}, {1, 2, 3, 4}), tensor<float>({2, 2}, {5, 6, 7, 8}),
                   tensor<float>({2, 1}, {10, 20})};
    test.attributes = {{"transB", std::int64_t{1}}, {"alpha", 2.0F}, {"beta", 0.5F}};
    for (const Kernels kernels : {Kernels::fast, Kernels::reference, Kernels::reference_float64}) {
        CHECK(numbers_of(run_operator(test, kernels)[0].view()) == std::vector<double>{39, 51, 88, 116});
    }
}

TEST_CASE("products that cannot be are refused with a reason") {
    check_refused(matmul({3, 4}, {5, 6}, false), "the inner dimensions differ: shapes [3,4] and [5,6]");
    check_refused(matmul({2, 3, 4}, {3, 4, 5}, false), "the batch dimensions do not broadcast");
    check_refused(matmul({}, {4}, false), "a scalar cannot be multiplied");
    check_refused(gemm({3, 4}, {5, 6}, std::nullopt, false),
                  "the inner dimensions differ: A has shape [3,4]");
    check_refused(gemm({3, 4, 1}, {4, 6}, std::nullopt, false), "A and B should be matrices");
    check_refused(gemm({3, 4}, {4, 6}, Shape{3}, false), "input C of shape [3] does not broadcast to [3,6]");
    OperatorCase mixed = matmul({3, 4}, {4, 5}, false);
    mixed.inputs[1] = tensor<std::int64_t>({4, 1}, {1, 2, 3, 4});
    check_refused(mixed, "found float32 and int64");
}
