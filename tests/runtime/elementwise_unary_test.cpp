#include <cmath>
#include <functional>
#include <limits>

#include <doctest/doctest.h>

#include "base/error.h"
#include "runtime/kernels/erf_table.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <typename T>
Tensor vector_of(std::vector<T> values) {
    return Tensor::of<T>({static_cast<std::int64_t>(values.size())}, std::span<const T>(values));
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
    const std::span<const T> values = tensor.view().as<T>();
    return {values.begin(), values.end()};
}

std::vector<float> run_floats(OperatorCase test, std::vector<float> values, Kernels kernels) {
    test.inputs = {vector_of(std::move(values))};
    return values_of<float>(run_operator(test, kernels)[0]);
}

struct Function {
    OperatorCase test;
    double low = -5;
    double high = 5;
};

std::vector<Function> float_functions() {
    return {{{"Relu", 14}},
            {{"LeakyRelu", 16}},
            {{"LeakyRelu", 16, {{"alpha", 0.3F}}}},
            {{"ThresholdedRelu", 10, {{"alpha", 0.5F}}}},
            {{"Elu", 6}},
            {{"Elu", 6, {{"alpha", 0.7F}}}},
            {{"Celu", 12, {{"alpha", 1.7F}}}},
            {{"Selu", 6}},
            {{"Selu", 6, {{"alpha", 2.0F}, {"gamma", 3.0F}}}},
            {{"Sigmoid", 13}, -20, 20},
            {{"HardSigmoid", 6}},
            {{"HardSigmoid", 6, {{"alpha", 0.5F}, {"beta", 0.6F}}}},
            {{"HardSwish", 14}},
            {{"Tanh", 13}},
            {{"Softplus", 1}, -30, 30},
            {{"Softsign", 1}},
            {{"Mish", 18}, -30, 30},
            {{"Erf", 13}},
            {{"Gelu", 20}},
            {{"Gelu", 20, {{"approximate", std::string("tanh")}}}},
            {{"Exp", 13}},
            {{"Log", 13}, 1e-4, 10},
            {{"Sqrt", 13}, 0, 10},
            {{"Reciprocal", 13}, 0.1, 3},
            {{"Neg", 13}},
            {{"Abs", 13}},
            {{"Sign", 13}},
            {{"Floor", 13}},
            {{"Ceil", 13}},
            {{"Round", 11}},
            {{"Sin", 7}},
            {{"Cos", 7}},
            {{"Tan", 7}, -1, 1},
            {{"Asin", 7}, -1, 1},
            {{"Acos", 7}, -1, 1},
            {{"Atan", 7}},
            {{"Sinh", 9}},
            {{"Cosh", 9}},
            {{"Asinh", 9}},
            {{"Acosh", 9}, 1, 5},
            {{"Atanh", 9}, -0.9, 0.9}};
}

// The greatest distance of the fast kernel from `exact` over an even grid of [low, high].
double greatest_error(const OperatorCase& test, const std::function<double(double)>& exact, double low,
                      double high) {
    constexpr std::size_t points = 100'003;
    std::vector<float> grid(points);
    for (std::size_t i = 0; i < points; ++i) {
        grid[i] = static_cast<float>(low + (high - low) * static_cast<double>(i) / (points - 1));
    }
    const std::vector<float> results = run_floats(test, grid, Kernels::fast);
    double greatest = 0;
    for (std::size_t i = 0; i < points; ++i) {
        greatest = std::max(greatest, std::abs(static_cast<double>(results[i]) - exact(grid[i])));
    }
    return greatest;
}

}  // namespace

TEST_CASE(
    "the fast and the plain form of every unary operator agree, in every memory order and for odd sizes") {
    const std::vector<Shape> shapes = {
        {}, {1}, {7}, {16}, {33}, {3, 5}, {2, 3, 5, 7}, {1, 17, 3, 3}, {2, 3, 4, 1, 3}, {0, 3}};
    std::uint64_t seed = 1;
    for (Function function : float_functions()) {
        for (const Shape& shape : shapes) {
            function.test.inputs = {random_tensor(shape, seed++, function.low, function.high)};
            check_all_kernels_agree(function.test);
        }
    }
}

TEST_CASE("exponential functions are within two units of the last place of their range") {
    constexpr double unit = 0x1p-23;
    const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    const auto tanh = [](double x) { return std::tanh(x); };
    const auto erf = [](double x) { return std::erf(x); };
    const auto exp = [](double x) { return std::exp(x); };
    CHECK(greatest_error({"Sigmoid"}, sigmoid, -30, 30) <= 2 * unit);
    CHECK(greatest_error({"Sigmoid"}, sigmoid, -1, 1) <= 2 * unit);
    CHECK(greatest_error({"Tanh"}, tanh, -12, 12) <= 2 * unit);
    CHECK(greatest_error({"Tanh"}, tanh, -1e-3, 1e-3) <= 2 * unit * 1e-3);
    CHECK(greatest_error({"Erf"}, erf, -5, 5) <= 2 * unit);
    CHECK(greatest_error({"Erf"}, erf, -1e-3, 1e-3) <= 4 * unit * 1e-3);
    CHECK(greatest_error({"Exp"}, exp, -100, 0) <= 2 * unit);
    CHECK(greatest_error({"Exp"}, exp, 0, 88) <= 2 * unit * std::exp(88.0));
    CHECK(greatest_error(
              {"Log"}, [](double x) { return std::log(x); }, 1e-3, 3) <= 2 * unit * std::log(1e3));
}

TEST_CASE("the table of the error function is within a unit of the last place below 1") {
    double greatest = 0;
    for (int i = 0; i <= 40'000; ++i) {
        const double scaled = i * 1e-4 / static_cast<double>(ErfTable::width);
        const auto segment = std::min<std::size_t>(static_cast<std::size_t>(scaled), 31);
        const double t = scaled - static_cast<double>(segment);
        double value = 0;
        for (std::size_t k = 5; k-- > 0;) {
            value = value * t + static_cast<double>(erf_table().coefficients[k][segment]);
        }
        greatest = std::max(greatest, std::abs(value - std::erf(i * 1e-4)));
    }
    // Coefficients are floats, so the largest ones alone are off by up to half a unit below 1, 3e-8.
    CHECK(greatest < 8e-8);
}

TEST_CASE("NaN in gives NaN out for every function of real numbers but Sign's and the tests") {
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        for (const Function& function : float_functions()) {
            INFO(function.test.op_type);
            const std::vector<float> results = run_floats(function.test, {1.0F, nan_value, 1.0F}, kernels);
            CHECK(std::isnan(results[1]));
            CHECK(!std::isnan(results[0]));
        }
    }
}

TEST_CASE("functions saturate at infinities and far from zero") {
    const std::vector<float> far = {infinity, -infinity, 3e38F, -3e38F, 200.0F, -200.0F};
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        CHECK(run_floats({"Sigmoid"}, far, kernels) == std::vector<float>{1, 0, 1, 0, 1, 0});
        CHECK(run_floats({"Tanh"}, far, kernels) == std::vector<float>{1, -1, 1, -1, 1, -1});
        CHECK(run_floats({"Erf"}, far, kernels) == std::vector<float>{1, -1, 1, -1, 1, -1});
        CHECK(run_floats({"HardSigmoid"}, far, kernels) == std::vector<float>{1, 0, 1, 0, 1, 0});
        CHECK(run_floats({"Exp"}, far, kernels) == std::vector<float>{infinity, 0, infinity, 0, infinity, 0});
        CHECK(run_floats({"Relu"}, far, kernels) == std::vector<float>{infinity, 0, 3e38F, 0, 200, 0});
        CHECK(run_floats({"Elu"}, far, kernels) == std::vector<float>{infinity, -1, 3e38F, -1, 200, -1});
        CHECK(run_floats({"Softplus"}, far, kernels) == std::vector<float>{infinity, 0, 3e38F, 0, 200, 0});
        CHECK(run_floats({"Reciprocal"}, {infinity, -infinity, 0.0F, -0.0F}, kernels) ==
              std::vector<float>{0, 0, infinity, -infinity});
        const std::vector<float> logarithms = run_floats({"Log"}, {infinity, 0.0F, 1.0F, -1.0F}, kernels);
        CHECK(logarithms[0] == infinity);
        CHECK(logarithms[1] == -infinity);
        CHECK(logarithms[2] == 0);
        CHECK(std::isnan(logarithms[3]));
        CHECK(std::isnan(run_floats({"Sqrt"}, {-1.0F}, kernels)[0]));
    }
}

TEST_CASE("rounding goes to even halves, floor down and ceil up") {
    const std::vector<float> values = {-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 2.4F, 1e10F};
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        CHECK(run_floats({"Round"}, values, kernels) == std::vector<float>{-2, -2, 0, 0, 2, 2, 2, 1e10F});
        CHECK(run_floats({"Floor"}, values, kernels) == std::vector<float>{-3, -2, -1, 0, 1, 2, 2, 1e10F});
        CHECK(run_floats({"Ceil"}, values, kernels) == std::vector<float>{-2, -1, 0, 1, 2, 3, 3, 1e10F});
    }
}

TEST_CASE("integers are negated, made absolute and rectified exactly") {
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    const std::int64_t large = (std::int64_t{1} << 53) + 1;
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        OperatorCase test{"Neg", 13, {}, {vector_of<std::int64_t>({0, 5, -large, least})}};
        CHECK(values_of<std::int64_t>(run_operator(test, kernels)[0]) ==
              std::vector<std::int64_t>{0, -5, large, least});
        test.op_type = "Abs";
        CHECK(values_of<std::int64_t>(run_operator(test, kernels)[0]) ==
              std::vector<std::int64_t>{0, 5, large, least});
        test = {"Relu", 14, {}, {vector_of<std::int32_t>({-3, 0, 7})}};
        CHECK(values_of<std::int32_t>(run_operator(test, kernels)[0]) == std::vector<std::int32_t>{0, 0, 7});
        test = {"Sign", 13, {}, {vector_of<std::int8_t>({-128, 0, 127})}};
        CHECK(values_of<std::int8_t>(run_operator(test, kernels)[0]) == std::vector<std::int8_t>{-1, 0, 1});
    }
}

TEST_CASE("tests of floats and Not answer bools") {
    const Tensor floats = vector_of<float>({1.0F, nan_value, infinity, -infinity});
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        CHECK(values_of<bool>(run_operator({"IsNaN", 13, {}, {floats}}, kernels)[0]) ==
              std::vector<bool>{false, true, false, false});
        CHECK(values_of<bool>(run_operator({"IsInf", 10, {}, {floats}}, kernels)[0]) ==
              std::vector<bool>{false, false, true, true});
        const OperatorCase positive{"IsInf", 10, {{"detect_negative", std::int64_t{0}}}, {floats}};
        CHECK(values_of<bool>(run_operator(positive, kernels)[0]) ==
              std::vector<bool>{false, false, true, false});
        const bool truths[] = {true, false};
        const OperatorCase negation{"Not", 1, {}, {Tensor::of<bool>({2}, truths)}};
        CHECK(values_of<bool>(run_operator(negation, kernels)[0]) == std::vector<bool>{false, true});
    }
}

TEST_CASE("a type that an operator does not take is refused by name") {
    const OperatorCase test{"Sigmoid", 13, {}, {vector_of<std::int32_t>({1})}};
    CHECK_THROWS_WITH_AS(run_operator(test, Kernels::fast),
                         "Sigmoid 'node': its input has a type it does not take: int32", Error);
}

TEST_CASE("Clip takes its bounds from attributes below opset 11") {
    const std::vector<float> values = {-3, 0.5F, 9, nan_value, infinity, -infinity};
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        const OperatorCase both{"Clip", 9, {{"min", 0.0F}, {"max", 6.0F}}};
        const std::vector<float> clipped = run_floats(both, values, kernels);
        CHECK(clipped[0] == 0);
        CHECK(clipped[1] == 0.5F);
        CHECK(clipped[2] == 6);
        CHECK(std::isnan(clipped[3]));
        CHECK(clipped[4] == 6);
        CHECK(clipped[5] == 0);
        const std::vector<float> from_below = run_floats({"Clip", 6, {{"min", 1.0F}}}, values, kernels);
        CHECK(from_below[1] == 1);
        CHECK(from_below[4] == std::numeric_limits<float>::max());
    }
}

TEST_CASE("Clip takes its bounds from inputs from opset 11 on, constant, computed or left out") {
    const Tensor values = random_tensor({2, 5, 3, 7}, 3, -4, 4);
    const Tensor low = Tensor::of<float>({}, std::vector<float>{-1});
    const Tensor high = Tensor::of<float>({}, std::vector<float>{2});
    for (const bool constant : {false, true}) {
        check_all_kernels_agree({"Clip", 11, {}, {values, low, high}, {false, constant, constant}});
        check_all_kernels_agree({"Clip", 13, {}, {values, std::nullopt, high}, {false, false, constant}});
        check_all_kernels_agree({"Clip", 13, {}, {values, low}, {false, constant}});
        check_all_kernels_agree({"Clip", 13, {}, {values}});
    }
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        const Tensor few = vector_of<float>({-3, 0, 3});
        CHECK(values_of<float>(run_operator({"Clip", 13, {}, {few, low, high}}, kernels)[0]) ==
              std::vector<float>{-1, 0, 2});
        // A lower bound above the upper one: everything becomes the upper one.
        CHECK(values_of<float>(run_operator({"Clip", 13, {}, {few, high, low}}, kernels)[0]) ==
              std::vector<float>{-1, -1, -1});
        const OperatorCase integers{
            "Clip",
            12,
            {},
            {vector_of<std::int64_t>({-5, 1, 9}), Tensor::of<std::int64_t>({}, std::vector<std::int64_t>{0}),
             Tensor::of<std::int64_t>({}, std::vector<std::int64_t>{4})}};
        CHECK(values_of<std::int64_t>(run_operator(integers, kernels)[0]) ==
              std::vector<std::int64_t>{0, 1, 4});
    }
}

TEST_CASE("Clip refuses bounds of another type or of several elements") {
    const Tensor values = vector_of<float>({1, 2});
    CHECK_THROWS_WITH_AS(run_operator({"Clip", 13, {}, {values, vector_of<float>({1, 2})}}, Kernels::fast),
                         "Clip 'node': expected one float32 as min, found float32 [2]", Error);
    CHECK_THROWS_AS(run_operator({"Clip", 13, {}, {values, vector_of<std::int64_t>({1})}}, Kernels::fast),
                    Error);
}
