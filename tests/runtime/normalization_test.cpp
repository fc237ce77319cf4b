#include <cmath>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr Kernels both_kernels[] = {Kernels::fast, Kernels::reference};

}  // namespace

TEST_CASE("LayerNormalization agrees with its reference from any axis on, with and without bias") {
    const Shape shape{2, 3, 5, 19};
    for (std::int64_t axis = -4; axis < 4; ++axis) {
        const Shape normalized(shape.begin() + (axis < 0 ? axis + 4 : axis), shape.end());
        OperatorCase test{"LayerNormalization",
                          17,
                          {{"axis", axis}},
                          {random_tensor(shape, 1, -3, 5), random_tensor(normalized, 2, 0.5, 2),
                           random_tensor(normalized, 3)}};
        test.constant = {false, true, true};
        check_all_kernels_agree(test);
        test.inputs.pop_back();
        test.outputs = 3;
        check_all_kernels_agree(test);
    }
}

TEST_CASE("LayerNormalization computes mean 0 and variance 1, scaled and shifted, and answers both") {
    const float values[] = {1, 2, 3, 4, -2, 0, 2, 4};
    const float scale[] = {1, 2, 1, 2};
    const float bias[] = {0, 0, 10, 10};
    OperatorCase test{
        "LayerNormalization",
        17,
        {{"epsilon", 0.0F}},
        {Tensor::of<float>({2, 4}, values), Tensor::of<float>({4}, scale), Tensor::of<float>({4}, bias)}};
    test.outputs = 3;
    const double expected[] = {-1.5, -1, 10.5, 13};  // before division by the deviation, sqrt(1.25)
    for (const Kernels kernels : both_kernels) {
        const std::vector<Tensor> outputs = run_operator(test, kernels);
        const std::vector<double> normal = numbers_of(outputs[0].view());
        const double deviation = std::sqrt(1.25);
        CHECK(normal[0] == doctest::Approx(expected[0] / deviation));
        CHECK(normal[1] == doctest::Approx(expected[1] / deviation));
        CHECK(normal[2] == doctest::Approx(10 + 0.5 / deviation));
        CHECK(normal[3] == doctest::Approx(10 + 3 / deviation));
        CHECK(outputs[1].shape() == Shape{2, 1});
        CHECK(numbers_of(outputs[1].view()) == std::vector<double>{2.5, 1});
        CHECK(numbers_of(outputs[2].view())[1] == doctest::Approx(1 / std::sqrt(5.0)));
    }
}

TEST_CASE("LayerNormalization broadcasts its scale and bias") {
    OperatorCase test{"LayerNormalization",
                      17,
                      {{"axis", std::int64_t{1}}},
                      {random_tensor({2, 3, 5}, 1), random_tensor({5}, 2), random_tensor({3, 1}, 3)}};
    check_all_kernels_agree(test);
    const std::vector<double> first = numbers_of(run_operator(test, Kernels::fast)[0].view());
    std::vector<float> scale;
    std::vector<float> bias;
    for (std::size_t i = 0; i < 15; ++i) {
        scale.push_back(test.inputs[1]->view().as<float>()[i % 5]);
        bias.push_back(test.inputs[2]->view().as<float>()[i / 5]);
    }
    test.inputs[1] = Tensor::of<float>({3, 5}, scale);
    test.inputs[2] = Tensor::of<float>({3, 5}, bias);
    CHECK(numbers_of(run_operator(test, Kernels::fast)[0].view()) == first);
}

TEST_CASE("a large mean does not drown the variance") {
    const Tensor input = random_tensor({4, 100}, 1, 999, 1001);
    check_all_kernels_agree({"LayerNormalization", 17, {}, {input, random_tensor({100}, 2, 1, 2)}});
    const Tensor image = random_tensor({1, 3, 40, 50}, 1, 999, 1001);
    check_all_kernels_agree(
        {"InstanceNormalization", 6, {}, {image, random_tensor({3}, 2), random_tensor({3}, 3)}});
}

TEST_CASE("InstanceNormalization agrees with its reference in every memory order") {
    std::uint64_t seed = 1;
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 17, 33, 9}, Shape{2, 16, 11}, Shape{1, 5, 3, 4, 2},
                               Shape{2, 4, 1, 1}}) {
        const Shape channels{shape[1]};
        check_all_kernels_agree({"InstanceNormalization",
                                 6,
                                 {{"epsilon", 1e-3F}},
                                 {random_tensor(shape, seed++, -2, 3),
                                  random_tensor(channels, seed++, 0.5, 2), random_tensor(channels, seed++)},
                                 {false, true, true}});
    }
}

TEST_CASE("InstanceNormalization normalizes each channel of each image by itself") {
    const float values[] = {-1, 0, 1, 2, 3, 4};
    const float scale[] = {1, 1.5F};
    const float bias[] = {0, 1};
    const double deviation = std::sqrt(2.0 / 3 + 1e-5);
    for (const Kernels kernels : {Kernels::fast, Kernels::fast_channels_last, Kernels::reference}) {
        const std::vector<double> normal =
            numbers_of(run_operator({"InstanceNormalization",
                                     6,
                                     {},
                                     {Tensor::of<float>({1, 2, 1, 3}, values), Tensor::of<float>({2}, scale),
                                      Tensor::of<float>({2}, bias)}},
                                    kernels)[0]
                           .view());
        const double expected[] = {-1 / deviation,      0, 1 / deviation,
                                   1 - 1.5 / deviation, 1, 1 + 1.5 / deviation};
        for (std::size_t i = 0; i < 6; ++i) CHECK(normal[i] == doctest::Approx(expected[i]).epsilon(1e-6));
    }
}

TEST_CASE("scales that do not fit are refused by name") {
    CHECK_THROWS_WITH_AS(
        run_operator({"LayerNormalization", 17, {}, {random_tensor({2, 3}, 1), random_tensor({4}, 2)}},
                     Kernels::fast),
        "LayerNormalization 'node': expected an input 1 that broadcasts to [3], found [4]", Error);
    CHECK_THROWS_WITH_AS(
        run_operator({"InstanceNormalization",
                      6,
                      {},
                      {random_tensor({2, 3, 4}, 1), random_tensor({4}, 2), random_tensor({3}, 3)}},
                     Kernels::fast),
        "InstanceNormalization 'node': expected input 1 with one element for each of 3 channels, found [4]",
        Error);
}
