#include <cmath>
#include <limits>

#include "runtime/movement_cases.h"

namespace qcalib::test {

namespace {

OperatorCase cast(Tensor input, std::int64_t to) {
    OperatorCase test{.op_type = "Cast"};
    test.inputs = {std::move(input)};
    test.attributes["to"] = to;
    return test;
}

constexpr std::int64_t to_float = 1;
constexpr std::int64_t to_uint8 = 2;
constexpr std::int64_t to_int8 = 3;
constexpr std::int64_t to_int32 = 6;
constexpr std::int64_t to_int64 = 7;
constexpr std::int64_t to_bool = 9;
constexpr std::int64_t to_half = 10;
constexpr std::int64_t to_double = 11;
constexpr std::int64_t to_uint64 = 13;
constexpr std::int64_t to_bfloat16 = 16;

}  // namespace

TEST_CASE("Cast from floats cuts towards zero and holds to the integer's range") {
    const float inf = std::numeric_limits<float>::infinity();
    const Tensor numbers = reals({-1.75F, 1.75F, 300, -300, inf, -inf, NAN});
    check_values(cast(numbers, to_int32), {7}, {-1, 1, 300, -300, 2147483647, -2147483648.0, 0});
    check_values(cast(numbers, to_uint8), {7}, {0, 1, 255, 0, 255, 0, 0});
    check_values(cast(numbers, to_int8), {7}, {-1, 1, 127, -128, 127, -128, 0});
    check_values(cast(reals({-0.5F, 2147483648.0F, 1e30F}), to_int32), {3}, {0, 2147483647, 2147483647});
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(run_operator(cast(reals({1e30F}), to_int64), Kernels::fast)[0].view().as<std::int64_t>()[0] ==
          most);
    CHECK(run_operator(cast(reals({1e30F}), to_uint64), Kernels::fast)[0].view().as<std::uint64_t>()[0] ==
          std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("Cast to bool asks for zero, from bool gives 0 and 1") {
    check_values(cast(reals({0, -0.0F, 0.25F, NAN}), to_bool), {4}, {0, 0, 1, 1});
    check_values(cast(integers({0, 256, -1}), to_bool), {3}, {0, 1, 1});
    check_values(cast(booleans({2}, {true, false}), to_float), {2}, {1, 0});
    check_values(cast(booleans({2}, {true, false}), to_int64), {2}, {1, 0});
}

TEST_CASE("Cast between integers keeps the low bits; to float it rounds") {
    check_values(cast(integers({-1, 511, 5}), to_uint8), {3}, {255, 255, 5});
    check_values(cast(integers({-1, 5}), to_int32), {2}, {-1, 5});
    check_values(cast(integers({-3, 16777217}), to_float), {2}, {-3, 16777216});
    check_values(cast(counting<std::uint8_t>({2, 2}), to_int64), {2, 2}, {0, 1, 2, 3});
}

TEST_CASE("Cast to a half type rounds, between other float types nothing changes") {
    const Tensor numbers = reals({1, 0.1F, 65536, 1.0009765F});
    const auto halves = [&](std::int64_t to) {
        return numbers_of(run_operator(cast(numbers, to), Kernels::fast)[0].view());
    };
    CHECK(halves(to_half) ==
          std::vector<double>{1, 0.0999755859375, std::numeric_limits<double>::infinity(), 1.0009765625});
    CHECK(halves(to_bfloat16) == std::vector<double>{1, 0.10009765625, 65536, 1});
    check_values(cast(reals({0.1F, -3}), to_double), {2}, {0.1F, -3});
    check_values(cast(reals({0.1F, -3}), to_float), {2}, {0.1F, -3});
    check_all_kernels_agree(cast(random_tensor({2, 3, 4, 5}, 1, -100, 100), to_int32));
}

TEST_CASE("Cast refuses types that qcalib has no elements of") {
    check_refused(cast(reals({1}), 14), "expected 'to' to be a type of numbers, bool or string, found 14");
}

}  // namespace qcalib::test
