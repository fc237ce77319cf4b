#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

OperatorCase normalization(const Shape& shape, bool constant, std::int64_t opset = 9) {
    const std::int64_t channels = shape.size() > 1 ? shape[1] : 1;
    OperatorCase test{.op_type = "BatchNormalization", .opset = opset};
    test.inputs = {random_tensor(shape, 1, -3, 3), random_tensor({channels}, 2), random_tensor({channels}, 3),
                   random_tensor({channels}, 4), random_tensor({channels}, 5, 0.01, 4)};
    test.constant = {false, constant, constant, constant, constant};
    return test;
}

}  // namespace

TEST_CASE("batch normalization agrees with float64 in either memory order") {
    for (const Shape& shape : {Shape{2, 16, 7, 9}, Shape{1, 3, 20, 20}, Shape{3, 17, 5, 5},
                               Shape{1, 300, 4, 4}, Shape{2, 24, 1, 1}, Shape{5, 33}, Shape{7},
                               Shape{2, 6, 31}, Shape{1, 5, 3, 4, 5}, Shape{0, 4, 3, 3}, Shape{1, 1, 8, 8}}) {
        INFO(to_string(shape));
        for (const std::int64_t opset : {7, 9, 14, 15}) {
            check_all_kernels_agree(normalization(shape, true, opset));
            check_all_kernels_agree(normalization(shape, false, opset));
        }
    }
}

TEST_CASE("batch normalization divides by the root of variance and epsilon") {
    OperatorCase test{.op_type = "BatchNormalization", .opset = 15, .attributes = {{"epsilon", 1.0F}}};
    const auto one = [](float value) { return Tensor::of<float>({1}, std::span(&value, 1)); };
    const std::vector<float> x{1, 5};
    test.inputs = {Tensor::of<float>({2, 1}, std::span(x)), one(4), one(10), one(1), one(3)};
    for (const Kernels kernels : {Kernels::fast, Kernels::reference, Kernels::reference_float64}) {
        CHECK(numbers_of(run_operator(test, kernels)[0].view()) == std::vector<double>{10, 18});
    }
}

TEST_CASE("batch normalization in training mode takes the batch's own mean and variance") {
    OperatorCase test = normalization({3, 4, 5, 6}, false, 15);
    test.attributes = {{"training_mode", std::int64_t{1}}, {"momentum", 0.75F}};
    test.outputs = 3;
    check_all_kernels_agree(test);
    const std::vector<Tensor> outputs = run_operator(test, Kernels::fast);
    const std::vector<double> x = numbers_of(test.inputs[0]->view());
    const std::vector<double> y = numbers_of(outputs[0].view());
    for (std::size_t channel = 0; channel < 4; ++channel) {
        double mean = 0;
        double squares = 0;
        double output_mean = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (i / 30 % 4 != channel) continue;
            mean += x[i] / 90;
            squares += x[i] * x[i] / 90;
            output_mean += y[i] / 90;
        }
        const auto given = [&](std::size_t input) { return numbers_of(test.inputs[input]->view())[channel]; };
        CHECK(output_mean == doctest::Approx(given(2)).epsilon(1e-5));
        CHECK(numbers_of(outputs[1].view())[channel] == doctest::Approx(0.75 * given(3) + 0.25 * mean));
        CHECK(numbers_of(outputs[2].view())[channel] ==
              doctest::Approx(0.75 * given(4) + 0.25 * (squares - mean * mean)));
    }
}

TEST_CASE("batch normalization that cannot be is refused with a reason") {
    OperatorCase test = normalization({1, 4, 3, 3}, false);
    SUBCASE("one parameter too few") {
        test.inputs[3] = random_tensor({3}, 1);
        check_refused(test, "input 3 should have shape [4], one number per channel, found [3]");
    }
    SUBCASE("statistics per element") {
        test.opset = 7;
        test.attributes = {{"spatial", std::int64_t{0}}};
        check_refused(test, "'spatial' is 0");
    }
    SUBCASE("outputs of training") {
        test.outputs = 3;
        check_refused(test, "exist in training only");
    }
    SUBCASE("a parameter left out") {
        test.inputs[2].reset();
        check_refused(test, "input 2 should be there");
    }
}
