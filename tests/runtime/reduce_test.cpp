#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr Kernels both_kernels[] = {Kernels::fast, Kernels::reference};
const std::vector<std::string> names = {"ReduceSum",    "ReduceMean",     "ReduceMax", "ReduceMin",
                                        "ReduceProd",   "ReduceL1",       "ReduceL2",  "ReduceSumSquare",
                                        "ReduceLogSum", "ReduceLogSumExp"};

using Axes = std::vector<std::int64_t>;

// The axes as attribute (opset 11) or as input (opset 18).
OperatorCase reduction(const std::string& name, Tensor input, const Axes& axes, bool keep, bool as_input) {
    OperatorCase test{name, as_input ? 18 : 11, {{"keepdims", std::int64_t{keep}}}, {std::move(input)}};
    if (as_input) {
        test.inputs.push_back(Tensor::of<std::int64_t>({static_cast<std::int64_t>(axes.size())}, axes));
        test.constant = {false, true};
    } else {
        test.attributes["axes"] = axes;
    }
    return test;
}

std::vector<double> run(const OperatorCase& test, Kernels kernels) {
    return numbers_of(run_operator(test, kernels)[0].view());
}

}  // namespace

TEST_CASE("reductions agree with their references over any axes, in every memory order, axes kept or not") {
    Random random(5);
    constexpr std::int64_t extents[] = {1, 2, 3, 7, 18, 37};
    for (std::uint64_t i = 0; i < 300; ++i) {
        Shape shape(1 + random.below(5));
        for (std::int64_t& extent : shape) extent = extents[random.below(shape.size() > 3 ? 4 : 6)];
        Axes axes;
        for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.size()); ++axis) {
            if (random.below(2) == 0)
                axes.push_back(random.below(2) == 0 ? axis : axis - static_cast<std::int64_t>(shape.size()));
        }
        if (axes.empty()) axes.push_back(-1);
        const std::string& name = names[i % names.size()];
        const bool keep = random.below(2) == 0;
        INFO(name << " " << to_string(shape) << " axes " << to_string(axes) << " keep " << keep);
        check_all_kernels_agree(
            reduction(name, random_tensor(shape, i, 0.5, 1.5), axes, keep, random.below(2) == 0));
    }
}

TEST_CASE("reductions of signed numbers") {
    const float values[] = {1, -2, 3, -4, 5, -6};
    const Tensor input = Tensor::of<float>({2, 3}, values);
    for (const Kernels kernels : both_kernels) {
        const auto over = [&](const std::string& name, const Axes& axes) {
            return run(reduction(name, input, axes, false, true), kernels);
        };
        CHECK(over("ReduceSum", {1}) == std::vector<double>{2, -5});
        CHECK(over("ReduceSum", {0}) == std::vector<double>{-3, 3, -3});
        CHECK(over("ReduceMean", {0}) == std::vector<double>{-1.5, 1.5, -1.5});
        CHECK(over("ReduceMax", {-1}) == std::vector<double>{3, 5});
        CHECK(over("ReduceMin", {0}) == std::vector<double>{-4, -2, -6});
        CHECK(over("ReduceProd", {0, 1}) == std::vector<double>{-720});
        CHECK(over("ReduceL1", {1}) == std::vector<double>{6, 15});
        CHECK(over("ReduceSumSquare", {1}) == std::vector<double>{14, 77});
        CHECK(over("ReduceL2", {1})[0] == doctest::Approx(std::sqrt(14.0)));
        CHECK(over("ReduceLogSumExp", {1})[0] ==
              doctest::Approx(std::log(std::exp(1.0) + std::exp(-2.0) + std::exp(3.0))));
    }
}

TEST_CASE("without axes all are reduced, or none where the attribute says so") {
    const Tensor input = random_tensor({2, 3}, 1);
    for (const Kernels kernels : both_kernels) {
        CHECK(run_operator({"ReduceSum", 13, {}, {input}}, kernels)[0].shape() == Shape{1, 1});
        CHECK(run_operator({"ReduceMean", 11, {{"keepdims", std::int64_t{0}}}, {input}}, kernels)[0]
                  .shape()
                  .empty());
        OperatorCase none = reduction("ReduceSum", input, {}, true, true);
        CHECK(run_operator(none, kernels)[0].shape() == Shape{1, 1});
        none.attributes["noop_with_empty_axes"] = std::int64_t{1};
        CHECK(run(none, kernels) == numbers_of(input.view()));
    }
}

TEST_CASE("the mean of many numbers does not drift") {
    const Tensor input = random_tensor({1, 2, 700, 700}, 3, 0.9, 1.1);
    std::vector<double> means(2, 0.0);
    const std::vector<double> numbers = numbers_of(input.view());
    for (std::size_t i = 0; i < numbers.size(); ++i) means[i / 490'000] += numbers[i] / 490'000;
    for (const Kernels kernels : {Kernels::fast, Kernels::fast_channels_last, Kernels::reference}) {
        const std::vector<double> results = run(reduction("ReduceMean", input, {2, 3}, true, false), kernels);
        CHECK(std::abs(results[0] - means[0]) < 1e-6);
        CHECK(std::abs(results[1] - means[1]) < 1e-6);
    }
}

TEST_CASE("integers are reduced exactly") {
    const std::int64_t large = (std::int64_t{1} << 53) + 1;
    const std::int64_t values[] = {large, 1, -2, 7};
    for (const Kernels kernels : both_kernels) {
        const auto result = [&](const std::string& name) {
            const OperatorCase test =
                reduction(name, Tensor::of<std::int64_t>({4}, values), {0}, false, true);
            return run_operator(test, kernels)[0].view().as<std::int64_t>()[0];
        };
        CHECK(result("ReduceSum") == large + 6);
        CHECK(result("ReduceMax") == large);
        CHECK(result("ReduceMin") == -2);
        CHECK(result("ReduceProd") == large * -14);
        CHECK(result("ReduceMean") == (large + 6) / 4);
    }
}

TEST_CASE("an empty axis gives the neutral element") {
    const Tensor input = random_tensor({2, 0, 3}, 1);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const Kernels kernels : both_kernels) {
        const auto result = [&](const std::string& name) {
            return run(reduction(name, input, {1}, false, true), kernels);
        };
        CHECK(result("ReduceSum") == std::vector<double>(6, 0.0));
        CHECK(result("ReduceProd") == std::vector<double>(6, 1.0));
        CHECK(result("ReduceMax") == std::vector<double>(6, -infinity));
        CHECK(result("ReduceMin") == std::vector<double>(6, infinity));
        CHECK(result("ReduceLogSumExp") == std::vector<double>(6, -infinity));
        CHECK(run_operator(reduction("ReduceSum", input, {2}, true, true), kernels)[0].shape() ==
              Shape{2, 0, 1});
    }
}

TEST_CASE("NaN is the greatest and the least of its row") {
    std::vector<float> values(40, 1.0F);
    values[23] = std::numeric_limits<float>::quiet_NaN();
    for (const Kernels kernels : both_kernels) {
        for (const std::string name : {"ReduceMax", "ReduceMin", "ReduceSum"}) {
            const std::vector<double> along_row =
                run(reduction(name, Tensor::of<float>({1, 40}, values), {1}, false, true), kernels);
            CHECK(std::isnan(along_row[0]));
            const std::vector<double> along_column =
                run(reduction(name, Tensor::of<float>({40, 1}, values), {0}, false, true), kernels);
            CHECK(std::isnan(along_column[0]));
        }
    }
}

TEST_CASE("axes outside the rank or given twice are refused by name") {
    CHECK_THROWS_WITH_AS(
        run(reduction("ReduceMean", random_tensor({2, 3}, 1), {2}, true, false), Kernels::fast),
        "ReduceMean 'node': expected an axis from -2 to 1, found 2", Error);
    CHECK_THROWS_WITH_AS(
        run(reduction("ReduceMean", random_tensor({2, 3}, 1), {1, -1}, true, false), Kernels::fast),
        "ReduceMean 'node': expected axes that differ, found axis -1 twice", Error);
}
