#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr Kernels both_kernels[] = {Kernels::fast, Kernels::reference};

OperatorCase along(const std::string& op_type, std::int64_t opset, std::int64_t axis, Tensor input) {
    return {op_type, opset, {{"axis", axis}}, {std::move(input)}};
}

}  // namespace

TEST_CASE("Softmax and LogSoftmax agree with their references along every axis and in every memory order") {
    std::uint64_t seed = 1;
    for (const std::string name : {"Softmax", "LogSoftmax"}) {
        for (const Shape& shape : {Shape{5}, Shape{3, 197}, Shape{2, 21, 7, 9}, Shape{1, 16, 1, 1},
                                   Shape{2, 3, 4, 5, 6}, Shape{2, 5, 33}}) {
            for (std::int64_t axis = -static_cast<std::int64_t>(shape.size());
                 axis < static_cast<std::int64_t>(shape.size()); ++axis) {
                for (const std::int64_t opset : {9, 11, 13, 17}) {
                    INFO(name << " " << to_string(shape) << " axis " << axis << " opset " << opset);
                    check_all_kernels_agree(along(name, opset, axis, random_tensor(shape, seed++, -8, 8)));
                }
            }
        }
    }
}

TEST_CASE("from opset 13 on one axis sums to 1, below it all axes from the given one on") {
    const Tensor input = random_tensor({2, 3, 4}, 7, -3, 3);
    for (const Kernels kernels : both_kernels) {
        const std::vector<double> one_axis =
            numbers_of(run_operator(along("Softmax", 13, 1, input), kernels)[0].view());
        double sum = 0;
        for (std::size_t c = 0; c < 3; ++c) sum += one_axis[c * 4 + 2];
        CHECK(sum == doctest::Approx(1).epsilon(1e-6));
        const std::vector<double> flat =
            numbers_of(run_operator(along("Softmax", 11, 1, input), kernels)[0].view());
        sum = 0;
        for (std::size_t i = 0; i < 12; ++i) sum += flat[i];
        CHECK(sum == doctest::Approx(1).epsilon(1e-6));
    }
}

TEST_CASE("the default axis is the last one from opset 13 on and 1 below") {
    const Tensor input = random_tensor({2, 3, 4}, 8, -3, 3);
    for (const Kernels kernels : both_kernels) {
        const auto values = [&](const OperatorCase& test) {
            return numbers_of(run_operator(test, kernels)[0].view());
        };
        CHECK(values({"Softmax", 13, {}, {input}}) == values(along("Softmax", 13, 2, input)));
        CHECK(values({"Softmax", 11, {}, {input}}) == values(along("Softmax", 11, 1, input)));
    }
}

TEST_CASE("large numbers neither overflow nor lose their softmax") {
    const float values[] = {0, 1, 2, 3, 10000, 10001, 10002, 10003};
    const Tensor input = Tensor::of<float>({2, 4}, values);
    const double expected[] = {0.032058604, 0.08714432, 0.23688284, 0.6439143};
    for (const Kernels kernels : both_kernels) {
        const std::vector<double> softmax =
            numbers_of(run_operator(along("Softmax", 13, 1, input), kernels)[0].view());
        const std::vector<double> logs =
            numbers_of(run_operator(along("LogSoftmax", 13, 1, input), kernels)[0].view());
        for (std::size_t i = 0; i < 8; ++i) {
            CHECK(softmax[i] == doctest::Approx(expected[i % 4]).epsilon(1e-6));
            CHECK(logs[i] == doctest::Approx(std::log(expected[i % 4])).epsilon(1e-6));
        }
    }
}

TEST_CASE("masked elements get 0, NaN spoils its own row only") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const float values[] = {1, -infinity, 1, std::numeric_limits<float>::quiet_NaN(), 0, 2, 5, 5, -infinity};
    for (const Kernels kernels : both_kernels) {
        const std::vector<double> softmax = numbers_of(
            run_operator(along("Softmax", 13, 1, Tensor::of<float>({3, 3}, values)), kernels)[0].view());
        CHECK(softmax[0] == doctest::Approx(0.5));
        CHECK(softmax[1] == 0);
        for (std::size_t i = 3; i < 6; ++i) CHECK(std::isnan(softmax[i]));
        CHECK(softmax[7] == doctest::Approx(0.5));
        CHECK(softmax[8] == 0);
    }
}

TEST_CASE("an axis outside the rank is refused by name") {
    CHECK_THROWS_WITH_AS(run_operator(along("Softmax", 13, 3, random_tensor({2, 3}, 1)), Kernels::fast),
                         "Softmax 'node': expected an axis from -2 to 1, found 3", Error);
}
