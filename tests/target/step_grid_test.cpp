#include "target/step_grid.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "statistics/counter.h"

using namespace qcalib;

namespace {

GridRules rules(Scheme scheme, int bits = 8) {
    GridRules grid;
    grid.bits = bits;
    grid.scheme = scheme;
    return grid;
}

TensorStatistics count(const std::vector<float>& values, bool extremes_only = false) {
    CounterSettings settings;
    settings.extremes_only = extremes_only;
    Counter counter(settings);
    return counter.count(values);
}

}  // namespace

TEST_CASE("a step of 0.125 makes an unsigned 8-bit tensor 0 to 32 and a signed one -16 to 16") {
    const Encoding without_sign = encode_with_step(0.125, Range{0, 3}, rules(Scheme::unsigned_symmetric));
    CHECK(without_sign.min == 0);
    CHECK(without_sign.max == 32 - 0.125);
    CHECK(without_sign.scale == 0.125);
    const Encoding with_sign = encode_with_step(0.125, Range{-1, 3}, rules(Scheme::unsigned_symmetric));
    CHECK(with_sign.min == -16);
    CHECK(with_sign.max == 16 - 0.125);
    CHECK(with_sign.symmetric);
    CHECK(encode_with_step(0.125, Range{0, 3}, rules(Scheme::symmetric)).min == -16);
}

TEST_CASE("an asymmetric grid has zero where the data has it") {
    CHECK(encode_with_step(0.125, Range{0, 3}, rules(Scheme::asymmetric)).offset == 0);
    CHECK(encode_with_step(0.125, Range{1, 3}, rules(Scheme::asymmetric)).offset == 0);
    CHECK(encode_with_step(0.125, Range{-3, -1}, rules(Scheme::asymmetric)).offset == -255);
    CHECK(encode_with_step(0.125, Range{-1, 1}, rules(Scheme::asymmetric)).offset == -128);
    // A grid as wide as the data holds both ends.
    const Encoding exact = encode_with_step(1, Range{-55, 200}, rules(Scheme::asymmetric));
    CHECK(exact.min == -55);
    CHECK(exact.max == 200);
    CHECK(encode_with_step(1, Range{0, 0}, rules(Scheme::asymmetric)).offset == 0);
    CHECK(encode_with_step(1, std::nullopt, rules(Scheme::asymmetric)).offset == -128);
    CHECK(encode_with_step(1, Range{-3e38, 3e38}, rules(Scheme::asymmetric, 16)).offset == -32768);
}

TEST_CASE("without zero in it an asymmetric grid lies around the middle of the data") {
    GridRules grid = rules(Scheme::asymmetric);
    grid.include_zero = false;
    const Encoding encoding = encode_with_step(0.01, Range{99, 101}, grid);
    CHECK(encoding.min < 99);
    CHECK(encoding.max > 101);
    CHECK(std::abs((encoding.min + encoding.max) / 2 - 100) <= 0.01);
}

TEST_CASE("powers of two are told from other numbers") {
    for (const double value : {1.0, 0.125, 4.0, 0x1p-40}) CHECK(is_power_of_two(value));
    for (const double value : {0.1, 3.0, 0.1250001}) CHECK_FALSE(is_power_of_two(value));
}

TEST_CASE("the share of values that an encoding clips is counted, half a step beyond its ends not") {
    std::vector<float> values(100, 0.0F);
    for (std::size_t i = 0; i < 10; ++i) values[i] = 100;
    for (std::size_t i = 10; i < 15; ++i) values[i] = -100;
    const TensorStatistics statistics = count(values);
    const auto share = [&](double step, Range data) {
        return *clipped_share(statistics, encode_with_step(step, data, rules(Scheme::asymmetric)));
    };
    CHECK(share(1, {-100, 100}) == 0);
    CHECK(std::abs(share(0.125, {0, 1}) - 0.15) < 1e-9);
    CHECK(std::abs(share(0.5, {0, 1}) - 0.05) < 1e-9);
    CHECK_FALSE(clipped_share(count(values, true), Encoding{}).has_value());
    const std::vector<float> edge(4, 31.9F);
    CHECK(*clipped_share(count(edge), encode_with_step(0.125, Range{0, 31.9}, rules(Scheme::asymmetric))) ==
          0);
}
