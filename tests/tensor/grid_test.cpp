#include "tensor/grid.h"

#include <cmath>

#include <doctest/doctest.h>

#include "base/random.h"

using namespace qcalib;

namespace {

GridRules rules(Scheme scheme, int bits = 8) {
    GridRules result;
    result.scheme = scheme;
    result.bits = bits;
    return result;
}

}  // namespace

TEST_CASE("the least power of two above a number forgives the last digits") {
    CHECK(power_of_two_above(1) == 1);
    CHECK(power_of_two_above(1 + 1e-12) == 1);
    CHECK(power_of_two_above(1.001) == 2);
    CHECK(power_of_two_above(0.2) == 0.25);
    CHECK(power_of_two_above(5e-324) == 5e-324);
}

TEST_CASE("a step that is a power of two is rounded up, so that nothing is clipped more") {
    Random random(3);
    for (const Scheme scheme : {Scheme::asymmetric, Scheme::symmetric, Scheme::unsigned_symmetric}) {
        for (int trial = 0; trial < 200; ++trial) {
            GridRules with = rules(scheme, 2 + static_cast<int>(random.below(15)));
            const double first = std::ldexp(random.unit() * 2 - 1, static_cast<int>(random.below(20)) - 10);
            const double second = std::ldexp(random.unit() * 2 - 1, static_cast<int>(random.below(20)) - 10);
            const Range range{std::min(first, second), std::max(first, second)};
            const Grid plain = make_grid(range, with);
            with.power_of_two = true;
            const Grid grid = make_grid(range, with);
            int exponent = 0;
            CHECK(std::frexp(grid.step, &exponent) == 0.5);
            CHECK(grid.step >= plain.step * (1 - 1e-9));
            CHECK(grid.step < 2 * plain.step);
            CHECK(grid.codes == plain.codes);
            CHECK(grid.min <= std::min(0.0, range.min) + grid.step / 2);
        }
    }
}

TEST_CASE("power-of-two steps of 8 bits reproduce a known table of ranges") {
    // Symmetric 8 bit: +-127 steps must hold the range.
    GridRules with = rules(Scheme::symmetric);
    with.power_of_two = true;
    CHECK(make_grid({-0.2, 5.9}, with).step == 1.0 / 16);
    CHECK(make_grid({-3, -1}, with).step == 1.0 / 32);
    with.scheme = Scheme::unsigned_symmetric;
    CHECK(make_grid({0, 6}, with).step == 1.0 / 32);
    CHECK(make_grid({0, 255.0 / 64}, with).step == 1.0 / 64);
}

TEST_CASE("an unsigned symmetric grid has all codes above zero where nothing is negative") {
    const Grid positive = make_grid({0, 2.55}, rules(Scheme::unsigned_symmetric));
    CHECK(positive.offset == 0);
    CHECK(positive.step == doctest::Approx(0.01));
    CHECK(make_grid({1, 2.55}, rules(Scheme::unsigned_symmetric)).min == 0);
    const Grid both = make_grid({-0.1, 2.54}, rules(Scheme::unsigned_symmetric));
    CHECK(both.offset == -128);
    CHECK(both.step == doctest::Approx(0.02));
}

TEST_CASE("a range without zero keeps its own ends to half a step, and its width") {
    GridRules without = rules(Scheme::asymmetric);
    without.include_zero = false;
    const Grid grid = make_grid({5, 5.51}, without);
    CHECK(grid.step == doctest::Approx(0.002));
    CHECK(std::abs(grid.min - 5) <= grid.step / 2 + 1e-12);
    CHECK(grid.max - grid.min == doctest::Approx(0.51));
    CHECK(grid.offset == 2500);
    const Grid negative = make_grid({-5.51, -5}, without);
    CHECK(negative.offset == -2755);
    // A range of no width far from zero: the offset stays a number of a sane size.
    CHECK(std::abs(make_grid({1e20, 1e20}, without).offset) < std::int64_t{1} << 40);
}

TEST_CASE("a range narrower than the least range is widened at its top") {
    GridRules some = rules(Scheme::asymmetric);
    some.least_range = 1;
    CHECK(make_grid({0, 0}, some).max == 1);
    CHECK(make_grid({-0.5, 0}, some).max == doctest::Approx(0.5).epsilon(0.01));
    some.scheme = Scheme::symmetric;
    const Grid symmetric = make_grid({0, 0}, some);
    CHECK(symmetric.max - symmetric.min == doctest::Approx(1));
}
