// Grids of TIDL: full steps, from zero or symmetric, powers of two.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "encoding/encoding.h"
#include "tensor/grid.h"

using namespace qcalib;

namespace {

GridRules tidl_rules(bool is_signed, bool powers, int bits = 8) {
    GridRules rules;
    rules.bits = bits;
    rules.scheme = is_signed ? Scheme::symmetric : Scheme::from_zero;
    rules.power_of_two = powers;
    rules.full_steps = true;
    rules.least_range = powers ? 0x1p-16 : 1e-15;
    rules.narrow_step = powers ? 0 : 1;
    return rules;
}

double tidl_scale(Range range, const GridRules& rules) {
    return 1 / encode(range, rules).scale;
}

}  // namespace

TEST_CASE("TI's training clips ranges to the next power of two and takes 256 or 128 steps of it") {
    CHECK(tidl_scale({-0.2, 5.9}, tidl_rules(true, true)) == 16);      // +-8
    CHECK(tidl_scale({0, 6}, tidl_rules(false, true)) == 32);          // 8
    CHECK(tidl_scale({0, 4}, tidl_rules(false, true)) == 64);          // 4
    CHECK(tidl_scale({0, 4.0000001}, tidl_rules(false, true)) == 32);  // 8
    CHECK(tidl_scale({-3, -1}, tidl_rules(true, true)) == 32);         // +-4
    CHECK(tidl_scale({0, 1}, tidl_rules(false, true)) == 256);         // a public log
    CHECK(tidl_scale({-64, 64}, tidl_rules(true, true, 16)) == 512);   // the same log
    CHECK(tidl_scale({0, 2}, tidl_rules(false, true, 16)) == 32768);
}

TEST_CASE("without powers of two the greatest value is a step beyond the last code") {
    const Encoding unsigned_grid = encode({0, 3}, tidl_rules(false, false));
    CHECK(unsigned_grid.scale == 3.0 / 256);
    CHECK(unsigned_grid.offset == 0);
    CHECK(unsigned_grid.max == 3 - 3.0 / 256);
    CHECK(unsigned_grid.symmetric);
    const Encoding signed_grid = encode({-0.00830631796, 0.00886716694}, tidl_rules(true, false));
    CHECK(1 / signed_grid.scale == doctest::Approx(14435.275390625).epsilon(1e-7));  // TI's documentation
    CHECK(signed_grid.offset == -128);
    CHECK(signed_grid.min == -128 * signed_grid.scale);
    CHECK(signed_grid.max == 127 * signed_grid.scale);
    CHECK(1 / encode({-1, 0.5}, tidl_rules(true, false, 16)).scale == 32768);
}

TEST_CASE("a tensor of zeros has the least clip, 2^-16, or where any scale is allowed the scale 1") {
    CHECK(tidl_scale({0, 0}, tidl_rules(false, true)) == 0x1p24);
    CHECK(tidl_scale({0, 0}, tidl_rules(true, true)) == 0x1p23);
    CHECK(tidl_scale({0, 1e-6}, tidl_rules(false, true)) == 0x1p24);
    CHECK(tidl_scale({0, 0}, tidl_rules(true, false)) == 1);
    CHECK(tidl_scale({0, 9e-16}, tidl_rules(false, false)) == 1);
    CHECK(tidl_scale({0, 1.1e-15}, tidl_rules(false, false)) > 1e17);
}

TEST_CASE("a constant tensor has the range from zero to it") {
    CHECK(tidl_scale({3, 3}, tidl_rules(false, true)) == 64);
    CHECK(tidl_scale({3, 3}, tidl_rules(true, true)) == 32);
    CHECK(tidl_scale({-3, -3}, tidl_rules(true, false)) == 128.0 / 3);
    // Codes from zero hold no negative value at all.
    CHECK(encode({-3, -3}, tidl_rules(false, true)).min == 0);
}

TEST_CASE("the sign of codes is what was asked for, whatever the range") {
    CHECK(encode({0, 4}, tidl_rules(true, true)).offset == -128);
    CHECK(encode({-1, 4}, tidl_rules(false, true)).offset == 0);
    CHECK(tidl_scale({-1, 4}, tidl_rules(false, true)) == 64);
}

TEST_CASE("powers of two up to a range of any magnitude are exact") {
    for (int exponent = -15; exponent <= 100; ++exponent) {
        const double clip = std::ldexp(1.0, exponent);
        REQUIRE(tidl_scale({0, clip}, tidl_rules(false, true)) == 256 / clip);
        REQUIRE(tidl_scale({-clip, 0}, tidl_rules(true, true)) == 128 / clip);
        REQUIRE(tidl_scale({0, clip * (1 + 1e-7)}, tidl_rules(false, true)) == 128 / clip);
    }
}
