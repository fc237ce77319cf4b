#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <typename T>
Tensor tensor_of(Shape shape, std::vector<T> values) {
    return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

template <typename T>
Tensor vector_of(std::vector<T> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return tensor_of<T>({count}, std::move(values));
}

template <typename T>
std::vector<T> run_vectors(const OperatorCase& test, Kernels kernels) {
    const Tensor output = run_operator(test, kernels)[0];
    const std::span<const T> values = output.view().as<T>();
    return {values.begin(), values.end()};
}

template <typename T, typename Out = T>
std::vector<Out> run_pair(const std::string& op_type, std::vector<T> a, std::vector<T> b, Kernels kernels) {
    return run_vectors<Out>({op_type, 13, {}, {vector_of<T>(std::move(a)), vector_of<T>(std::move(b))}},
                            kernels);
}

std::vector<bool> truth_table(const std::string& op_type, Kernels kernels) {
    const bool a[] = {false, false, true, true};
    const bool b[] = {false, true, false, true};
    return run_vectors<bool>({op_type, 7, {}, {Tensor::of<bool>({4}, a), Tensor::of<bool>({4}, b)}}, kernels);
}

constexpr Kernels both_kernels[] = {Kernels::fast, Kernels::reference};

// A shape that broadcasts to `shape`: leading axes may be missing, others may be 1.
Shape part_of(const Shape& shape, Random& random) {
    Shape part(shape.begin() + static_cast<std::ptrdiff_t>(random.below(shape.size() + 1)), shape.end());
    for (std::int64_t& extent : part) {
        if (random.below(3) == 0) extent = 1;
    }
    return part;
}

Shape random_shape(Random& random) {
    constexpr std::int64_t extents[] = {1, 2, 3, 5, 16, 19};
    Shape shape(random.below(6));
    std::int64_t elements = 1;
    for (std::int64_t& extent : shape) {
        extent = extents[random.below(6)];
        if (elements * extent > 20'000) extent = 2;
        elements *= extent;
    }
    return shape;
}

}  // namespace

TEST_CASE("arithmetic broadcasts random shapes of ranks 0 to 5 in every memory order") {
    Random random(11);
    const std::vector<std::string> names = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu"};
    for (std::uint64_t i = 0; i < 400; ++i) {
        const Shape shape = random_shape(random);
        const std::string& name = names[i % names.size()];
        const Shape first = name == "PRelu" || random.below(2) == 0 ? shape : part_of(shape, random);
        const Shape second = part_of(shape, random);
        const bool positive = name == "Pow" || name == "Div";
        const Tensor a = random_tensor(first, 2 * i, positive ? 0.1 : -2, 2);
        const Tensor b = random_tensor(second, 2 * i + 1, positive ? 0.1 : -2, 2);
        INFO(name << " " << to_string(first) << " and " << to_string(second));
        check_all_kernels_agree({name, 13, {}, {a, b}, {random.below(4) == 0, random.below(2) == 0}});
    }
}

TEST_CASE("operands that models bring broadcast in every memory order") {
    const Tensor image = random_tensor({2, 24, 5, 7}, 1);
    const Tensor thin = random_tensor({1, 3, 40, 50}, 2);
    for (const std::string name : {"Add", "Sub", "Mul", "Div"}) {
        for (const bool constant : {false, true}) {
            const auto check = [&](const Tensor& a, const Tensor& b) {
                INFO(name << " " << to_string(a.shape()) << " and " << to_string(b.shape()));
                check_all_kernels_agree({name, 13, {}, {a, b}, {false, constant}});
                check_all_kernels_agree({name, 13, {}, {b, a}, {constant, false}});
            };
            check(image, random_tensor({2, 24, 5, 7}, 3, 0.5, 2));
            check(image, random_tensor({}, 4, 0.5, 2));
            check(image, random_tensor({1}, 5, 0.5, 2));
            check(image, random_tensor({1, 24, 1, 1}, 6, 0.5, 2));
            check(image, random_tensor({24, 1, 1}, 7, 0.5, 2));
            check(image, random_tensor({2, 24, 1, 1}, 8, 0.5, 2));
            check(image, random_tensor({2, 1, 5, 7}, 9, 0.5, 2));
            check(image, random_tensor({24, 5, 7}, 10, 0.5, 2));
            check(image, random_tensor({7}, 11, 0.5, 2));
            check(image, random_tensor({5, 1}, 12, 0.5, 2));
            check(thin, random_tensor({3, 1, 1}, 13, 0.5, 2));
            check(thin, random_tensor({1, 3, 1, 1}, 14, 0.5, 2));
        }
    }
}

TEST_CASE("broadcasting repeats operands along missing and single axes") {
    const Tensor a = tensor_of<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6});
    const Tensor b = tensor_of<float>({2, 1}, {10, 20});
    for (const Kernels kernels : both_kernels) {
        const Tensor sum = run_operator({"Add", 13, {}, {a, b}}, kernels)[0];
        CHECK(sum.shape() == Shape{2, 2, 3});
        CHECK(numbers_of(sum.view()) == std::vector<double>{11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26});
    }
}

TEST_CASE("empty operands give empty results") {
    for (const Kernels kernels : both_kernels) {
        const OperatorCase test{"Add", 13, {}, {random_tensor({0, 3}, 1), random_tensor({3}, 2)}};
        CHECK(run_operator(test, kernels)[0].shape() == Shape{0, 3});
        const OperatorCase inner{"Mul", 13, {}, {random_tensor({4, 0}, 1), random_tensor({1}, 2)}};
        CHECK(run_operator(inner, kernels)[0].shape() == Shape{4, 0});
    }
}

TEST_CASE("floats are divided as IEEE says, whether by a vector or by one number") {
    const std::vector<float> dividends = {
        1, -1, 5.5F, 1e38F, -3e38F, 0, -0.0F, infinity, -infinity, nan_value, 1e-30F, 7, 11, 13, 17, 19, 23};
    for (const float divisor : {3.0F, 6.0F, -7.0F, 0.1F, 1e-35F, 1e35F, 0.0F, infinity}) {
        const Tensor a = vector_of<float>(dividends);
        const std::vector<float> by_one =
            run_vectors<float>({"Div", 13, {}, {a, tensor_of<float>({}, {divisor})}}, Kernels::fast);
        const std::vector<float> by_many =
            run_pair<float>("Div", dividends, std::vector<float>(dividends.size(), divisor), Kernels::fast);
        for (std::size_t i = 0; i < dividends.size(); ++i) {
            const float exact = dividends[i] / divisor;
            if (std::fpclassify(exact) == FP_SUBNORMAL) continue;  // zero in a run
            INFO(dividends[i] << " / " << divisor);
            CHECK((by_one[i] == exact || (std::isnan(by_one[i]) && std::isnan(exact))));
            CHECK((by_many[i] == exact || (std::isnan(by_many[i]) && std::isnan(exact))));
            CHECK(std::signbit(by_one[i]) == std::signbit(by_many[i]));
        }
    }
    const Tensor many = random_tensor({100'003}, 5, -100, 100);
    const std::vector<float> thirds =
        run_vectors<float>({"Div", 13, {}, {many, tensor_of<float>({}, {3.0F})}}, Kernels::fast);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < thirds.size(); ++i) wrong += thirds[i] != many.view().as<float>()[i] / 3.0F;
    CHECK(wrong == 0);
}

TEST_CASE("Max and Min take any number of operands and hand on NaN from either") {
    for (const Kernels kernels : both_kernels) {
        const OperatorCase three{
            "Max",
            13,
            {},
            {tensor_of<float>({2, 1}, {1, 5}), vector_of<float>({0, 3}), tensor_of<float>({}, {2})}};
        CHECK(run_vectors<float>(three, kernels) == std::vector<float>{2, 3, 5, 5});
        CHECK(run_vectors<float>({"Min", 13, {}, {vector_of<float>({4, -4})}}, kernels) ==
              std::vector<float>{4, -4});
        for (const std::string name : {"Max", "Min"}) {
            const std::vector<float> results =
                run_pair<float>(name, {nan_value, 1, nan_value}, {1, nan_value, nan_value}, kernels);
            for (const float result : results) CHECK(std::isnan(result));
        }
        CHECK(run_pair<std::int64_t>("Max", {-1, 5}, {2, 3}, kernels) == std::vector<std::int64_t>{2, 5});
        CHECK(run_pair<std::uint8_t>("Min", {200, 5}, {2, 30}, kernels) == std::vector<std::uint8_t>{2, 5});
        const OperatorCase sum{
            "Sum", 13, {}, {vector_of<float>({1, 2}), vector_of<float>({3, 4}), vector_of<float>({5, 6})}};
        CHECK(run_vectors<float>(sum, kernels) == std::vector<float>{9, 12});
    }
    check_all_kernels_agree({"Max",
                             13,
                             {},
                             {random_tensor({2, 3, 4, 5}, 1), random_tensor({1, 3, 1, 1}, 2),
                              random_tensor({2, 3, 4, 5}, 3), random_tensor({5}, 4)},
                             {false, true, false, true}});
}

TEST_CASE("integer arithmetic wraps, and divides towards zero") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    for (const Kernels kernels : both_kernels) {
        CHECK(run_pair<std::int64_t>("Add", {most, 3}, {1, -5}, kernels) ==
              std::vector<std::int64_t>{least, -2});
        CHECK(run_pair<std::int32_t>("Sub", {3, -7}, {5, 2}, kernels) == std::vector<std::int32_t>{-2, -9});
        CHECK(run_pair<std::int64_t>("Mul", {most, -7}, {2, 6}, kernels) ==
              std::vector<std::int64_t>{-2, -42});
        CHECK(run_pair<std::int64_t>("Div", {7, -7, 7, least}, {2, 2, -2, -1}, kernels) ==
              std::vector<std::int64_t>{3, -3, -3, least});
        CHECK(run_pair<std::uint8_t>("Div", {200, 7}, {3, 7}, kernels) == std::vector<std::uint8_t>{66, 1});
        CHECK(run_pair<std::uint8_t>("Add", {200, 7}, {100, 7}, kernels) ==
              std::vector<std::uint8_t>{44, 14});
    }
}

TEST_CASE("an integer division by zero is an error that names the node") {
    for (const Kernels kernels : both_kernels) {
        for (const std::string name : {"Div", "Mod"}) {
            std::string message;
            try {
                run_pair<std::int64_t>(name, {1, 2}, {1, 0}, kernels);
            } catch (const Error& error) {
                message = error.what();
            }
            CHECK(message.find("an integer is divided by 0") != std::string::npos);
            CHECK(message.find("node") != std::string::npos);
        }
    }
}

TEST_CASE("Mod has the sign of the divisor for integers, of the dividend with fmod") {
    for (const Kernels kernels : both_kernels) {
        CHECK(run_pair<std::int64_t>("Mod", {-4, 7, 5, 4, -7, 8}, {2, -3, 8, -2, 3, 5}, kernels) ==
              std::vector<std::int64_t>{0, -2, 5, 0, 2, 3});
        OperatorCase test{"Mod",
                          13,
                          {{"fmod", std::int64_t{1}}},
                          {vector_of<float>({-4.3F, 7.2F, 5}), vector_of<float>({2.1F, -3.4F, 8})}};
        const std::vector<float> rest = run_vectors<float>(test, kernels);
        CHECK(rest[0] == doctest::Approx(-0.1).epsilon(1e-5));
        CHECK(rest[1] == doctest::Approx(0.4).epsilon(1e-5));
        CHECK(rest[2] == 5);
        test.inputs = {vector_of<std::int32_t>({-4, 7}), vector_of<std::int32_t>({3, -3})};
        CHECK(run_vectors<std::int32_t>(test, kernels) == std::vector<std::int32_t>{-1, 1});
    }
    CHECK_THROWS_AS(run_pair<float>("Mod", {1}, {2}, Kernels::fast), Error);
}

TEST_CASE("Pow takes exponents of another type and is exact for integers") {
    for (const Kernels kernels : both_kernels) {
        OperatorCase test{"Pow", 13, {}, {vector_of<float>({1, 2, -3}), vector_of<std::int64_t>({4, -1, 3})}};
        CHECK(run_vectors<float>(test, kernels) == std::vector<float>{1, 0.5F, -27});
        test.inputs = {vector_of<std::int64_t>({3, -1, 2}), vector_of<std::int64_t>({39, 5, 0})};
        CHECK(run_vectors<std::int64_t>(test, kernels) ==
              std::vector<std::int64_t>{4'052'555'153'018'976'267, -1, 1});
        test.inputs = {vector_of<std::int32_t>({4, 9}), vector_of<float>({0.5F, 2.0F})};
        CHECK(run_vectors<std::int32_t>(test, kernels) == std::vector<std::int32_t>{2, 81});
        for (const float exponent : {2.0F, 3.0F, 0.5F, 1.0F, -1.0F, 0.0F, 2.5F}) {
            const std::vector<float> bases = {0, 1, 2, 3.5F, infinity, -infinity, -0.0F, -2};
            test.inputs = {vector_of<float>(bases), tensor_of<float>({}, {exponent})};
            const std::vector<float> powers = run_vectors<float>(test, kernels);
            for (std::size_t i = 0; i < bases.size(); ++i) {
                const auto exact = std::pow(static_cast<double>(bases[i]), static_cast<double>(exponent));
                INFO(bases[i] << " to the power " << exponent);
                CHECK((powers[i] == static_cast<float>(exact) ||
                       std::abs(powers[i] - exact) < 1e-6 * std::abs(exact) ||
                       (std::isnan(powers[i]) && std::isnan(exact))));
            }
        }
    }
}

TEST_CASE("comparisons answer bools; NaN equals and orders with nothing") {
    for (const Kernels kernels : both_kernels) {
        const std::vector<float> a = {1, 2, 3, nan_value, infinity};
        const std::vector<float> b = {2, 2, 2, nan_value, infinity};
        using Bools = std::vector<bool>;
        CHECK(run_pair<float, bool>("Equal", a, b, kernels) == Bools{false, true, false, false, true});
        CHECK(run_pair<float, bool>("Less", a, b, kernels) == Bools{true, false, false, false, false});
        CHECK(run_pair<float, bool>("LessOrEqual", a, b, kernels) == Bools{true, true, false, false, true});
        CHECK(run_pair<float, bool>("Greater", a, b, kernels) == Bools{false, false, true, false, false});
        CHECK(run_pair<float, bool>("GreaterOrEqual", a, b, kernels) ==
              Bools{false, true, true, false, true});
        const std::int64_t large = (std::int64_t{1} << 53) + 1;
        CHECK(run_pair<std::int64_t, bool>("Equal", {large}, {large - 1}, kernels) == Bools{false});
        CHECK(run_pair<std::uint64_t, bool>("Greater", {UINT64_MAX}, {1}, kernels) == Bools{true});
        CHECK(truth_table("Equal", kernels) == Bools{true, false, false, true});
    }
    check_all_kernels_agree(
        {"Greater", 13, {}, {random_tensor({2, 3, 4, 5}, 1), random_tensor({3, 1, 1}, 2)}});
}

TEST_CASE("logic follows its truth tables") {
    for (const Kernels kernels : both_kernels) {
        CHECK(truth_table("And", kernels) == std::vector<bool>{false, false, false, true});
        CHECK(truth_table("Or", kernels) == std::vector<bool>{false, true, true, true});
        CHECK(truth_table("Xor", kernels) == std::vector<bool>{false, true, true, false});
    }
}

TEST_CASE("PRelu scales what is below zero, per channel where the slope says so") {
    const Tensor values = tensor_of<float>({1, 2, 1, 2}, {-1, 2, -3, 4});
    const Tensor slopes = tensor_of<float>({2, 1, 1}, {0.5F, 0.25F});
    for (const Kernels kernels : both_kernels) {
        CHECK(run_vectors<float>({"PRelu", 9, {}, {values, slopes}, {false, true}}, kernels) ==
              std::vector<float>{-0.5F, 2, -0.75F, 4});
    }
    CHECK_THROWS_AS(run_operator({"PRelu", 9, {}, {slopes, values}}, Kernels::fast), Error);
}

TEST_CASE("Where chooses element by element and broadcasts all three") {
    const bool truths[] = {true, false};
    const Tensor condition = Tensor::of<bool>({2, 1}, truths);
    for (const Kernels kernels : both_kernels) {
        const OperatorCase floats{
            "Where", 16, {}, {condition, vector_of<float>({1, 2, 3}), tensor_of<float>({}, {-infinity})}};
        CHECK(run_vectors<float>(floats, kernels) ==
              std::vector<float>{1, 2, 3, -infinity, -infinity, -infinity});
        const OperatorCase integers{
            "Where",
            9,
            {},
            {condition, tensor_of<std::int64_t>({2, 2}, {1, 2, 3, 4}), vector_of<std::int64_t>({7, 8})}};
        CHECK(run_vectors<std::int64_t>(integers, kernels) == std::vector<std::int64_t>{1, 2, 7, 8});
    }
    Tensor mask(TensorDescriptor{DataType::boolean, {2, 3, 4, 5}, MemoryOrder::row_major});
    Random random(4);
    for (bool& value : mask.mutable_view().as<bool>()) value = random.below(2) == 0;
    check_all_kernels_agree({"Where",
                             16,
                             {},
                             {mask, random_tensor({2, 3, 4, 5}, 1), random_tensor({3, 1, 1}, 2)},
                             {false, false, true}});
}

TEST_CASE("shapes and types that do not fit are refused by name") {
    CHECK_THROWS_WITH_AS(
        run_operator({"Add", 13, {}, {random_tensor({2, 3}, 1), random_tensor({4}, 2)}}, Kernels::fast),
        "Add 'node': expected inputs that broadcast to one shape, found [2,3] and [4]", Error);
    CHECK_THROWS_WITH_AS(
        run_operator({"Mul", 13, {}, {random_tensor({2}, 1), vector_of<std::int64_t>({1, 2})}},
                     Kernels::fast),
        "Mul 'node': its inputs have types it does not take together: float32 and int64", Error);
}
