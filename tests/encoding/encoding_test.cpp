#include "encoding/encoding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <doctest/doctest.h>

#include "base/random.h"

using namespace qcalib;

namespace {

constexpr double snpe_least_range = 0.01;

Encoding encode8(double min, double max) {
    return encode_asymmetric({min, max}, 8, snpe_least_range);
}

double codes(int bits) {
    return static_cast<double>((std::int64_t{1} << bits) - 1);
}

struct LogRow {
    double min;
    double max;
    double delta;
    int offset;
};

// Rows printed by snpe-dlc-quantize 1.x in three public logs, 8 bit.
constexpr std::array log_rows{
    LogRow{-5.231276, 5.109619, 0.040553, -129},   LogRow{-3.248278, 3.273855, 0.025577, -127},
    LogRow{-0.646348, 3.277907, 0.015389, -42},    LogRow{-1.517784, 1.188754, 0.010614, -143},
    LogRow{0.000000, 1.192410, 0.004676, 0},       LogRow{-2.080180, 5.607441, 0.030148, -69},
    LogRow{0.000000, 5.607165, 0.021989, 0},       LogRow{-1.679106, 1.830501, 0.013763, -122},
    LogRow{-12.994302, 12.299950, 0.099193, -131}, LogRow{0.000000, 12.347367, 0.048421, 0},
    LogRow{-10.076691, 10.316612, 0.079974, -126}, LogRow{-23.455458, 42.271375, 0.257752, -91},
    LogRow{0.000000, 42.254482, 0.165704, 0},      LogRow{-37.015458, 41.642390, 0.308462, -120},
    LogRow{0.000000, 2.477768, 0.009717, 0},       LogRow{-2.482376, 2.071623, 0.017859, -139},
    LogRow{-4.681144, 4.227003, 0.034934, -134},   LogRow{-1.777269, 1.819585, 0.014105, -126},
    LogRow{0.000000, 1.825205, 0.007158, 0},       LogRow{-17.530067, 12.271047, 0.116867, -150},
    LogRow{-0.359582, 17.979096, 0.071916, -5},    LogRow{-18.765767, 4.577016, 0.091540, -205},
    LogRow{0.000000, 5.760509, 0.022590, 0},       LogRow{0.000000, 2.837885, 0.011129, 0},
    LogRow{0.000000, 1.000000, 0.003922, 0}};

// A magnitude between 1e-4 and 1e4, all decades alike.
double random_magnitude(Random& random) {
    return std::pow(10.0, random.unit() * 8 - 4);
}

// Negative, positive, one-sided and narrow ranges.
Range random_range(Random& random) {
    const double a = random_magnitude(random);
    const double b = random_magnitude(random);
    switch (random.below(5)) {
        case 0:
            return {0, a};
        case 1:
            return {-a, 0};
        case 2:
            return {std::min(a, b), std::max(a, b)};
        case 3:
            return {-std::max(a, b), -std::min(a, b)};
        default:
            return {-a, b};
    }
}

}  // namespace

TEST_CASE("every row of the public SNPE logs encodes to itself within the precision of its print") {
    for (const LogRow& row : log_rows) {
        CAPTURE(row.min);
        CAPTURE(row.max);
        const Encoding encoding = encode8(row.min, row.max);
        CHECK(encoding.offset == row.offset);
        CHECK(std::abs(encoding.scale - row.delta) <= 0.5e-6 + 4e-9);
        // Both printed ends are half a unit off at most, which the offset multiplies into min's error.
        CHECK(std::abs(encoding.min - row.min) <= 1.5e-6);
        CHECK(std::abs(encoding.max - row.max) <= 1.5e-6);
        CHECK_FALSE(encoding.symmetric);
    }
}

TEST_CASE("the two-convolution case gets the scales and zero points of its public report") {
    const Encoding conv = encode8(-1.282158, 1.206396);
    CHECK(conv.scale == doctest::Approx(0.00975904).epsilon(1e-6));
    CHECK(conv.zero_point() == 131);
    CHECK(std::abs(conv.min - -1.278434) < 1e-6);
    CHECK(std::abs(conv.max - 1.210121) < 1.5e-6);

    const Encoding last = encode8(-0.513219, 0.644111);
    CHECK(last.scale == doctest::Approx(0.00453855).epsilon(1e-6));
    CHECK(last.zero_point() == 113);

    // The least and greatest weight of its two convolutions.
    const Encoding weight = encode8(-0.574641764163971, 0.5771244168281555);
    CHECK(weight.scale == doctest::Approx(0.00451673).epsilon(1e-6));
    CHECK(weight.zero_point() == 127);
    const Encoding last_weight = encode8(-0.08787083625793457, 0.0883152037858963);
    CHECK(last_weight.scale == doctest::Approx(0.000690926).epsilon(1e-6));
    CHECK(last_weight.zero_point() == 127);
}

TEST_CASE("the JSON doubles of the HardSwish report keep offset and range") {
    const Encoding convolution = encode8(-17.530067443847656, 12.27104663848877);
    CHECK(convolution.offset == -150);
    CHECK(std::abs(convolution.min - -17.53006710726) < 1e-10);
    CHECK(encode8(-0.3967282474040985, 12.248984336853027).zero_point() == 8);
    const Encoding relu = encode8(0.0, 5.7605085372924805);
    CHECK(relu.offset == 0);
    CHECK(relu.min == 0.0);
    CHECK(relu.max == 5.7605085372924805);
}

TEST_CASE("an offset halfway between two integers rounds away from zero, or to even where asked") {
    const double step = 0x1p-6;
    const Range tie{-126.5 * step, 128.5 * step};
    CHECK(encode_asymmetric(tie, 8, snpe_least_range).offset == -127);
    CHECK(encode_asymmetric(tie, 8, snpe_least_range, Rounding::half_even).offset == -126);
    const Range odd{-127.5 * step, 127.5 * step};
    CHECK(encode_asymmetric(odd, 8, snpe_least_range).offset == -128);
    CHECK(encode_asymmetric(odd, 8, snpe_least_range, Rounding::half_even).offset == -128);
}

TEST_CASE("a range without zero is widened to contain it") {
    const Encoding positive = encode8(3, 5);
    CHECK(positive.min == 0);
    CHECK(positive.max == 5);
    CHECK(positive.offset == 0);
    const Encoding negative = encode8(-5, -3);
    CHECK(negative.min == doctest::Approx(-5));
    CHECK(negative.max == doctest::Approx(0));
    CHECK(negative.offset == -255);
}

TEST_CASE("a range below the least range grows at its top") {
    const Encoding zeros = encode8(0, 0);
    CHECK(zeros.min == 0);
    CHECK(zeros.max == 0.01);
    CHECK(zeros.scale == 0.01 / 255);
    CHECK(zeros.offset == 0);

    const Encoding narrow = encode8(-0.004, 0.001);
    CHECK(narrow.offset == -102);  // 0.004 / (0.01 / 255)
    CHECK(narrow.min == doctest::Approx(-0.004));
    CHECK(narrow.max == doctest::Approx(0.006));

    const Encoding below = encode8(-0.02, -0.019);
    CHECK(below.max == doctest::Approx(0).epsilon(1e-12));
    CHECK(below.min == doctest::Approx(-0.02));
}

TEST_CASE("zero lies exactly on the grid, the width stays and the ends move by at most half a step") {
    Random random(1);
    for (int trial = 0; trial < 20000; ++trial) {
        const Range range = random_range(random);
        const int bits = static_cast<int>(2 + random.below(15));
        CAPTURE(range.min);
        CAPTURE(range.max);
        CAPTURE(bits);
        const Encoding encoding = encode_asymmetric(range, bits, snpe_least_range);
        const double low = std::min(0.0, range.min);
        const double high = std::max({0.0, range.max, low + snpe_least_range});
        const double tolerance = 1e-12 * (high - low);

        REQUIRE(encoding.bits == bits);
        REQUIRE(encoding.offset <= 0);
        REQUIRE(encoding.offset >= -static_cast<std::int64_t>(codes(bits)));
        REQUIRE((static_cast<double>(encoding.zero_point() + encoding.offset)) * encoding.scale == 0.0);
        REQUIRE(encoding.min == static_cast<double>(encoding.offset) * encoding.scale);
        REQUIRE(std::abs(encoding.max - (encoding.min + codes(bits) * encoding.scale)) <= tolerance);
        REQUIRE(std::abs((encoding.max - encoding.min) - (high - low)) <= tolerance);
        REQUIRE(std::abs(encoding.min - low) <= encoding.scale / 2 + tolerance);
        REQUIRE(std::abs(encoding.max - high) <= encoding.scale / 2 + tolerance);
    }
}

TEST_CASE("encoding an encoding's own range again changes nothing") {
    Random random(2);
    for (int trial = 0; trial < 5000; ++trial) {
        const int bits = static_cast<int>(2 + random.below(15));
        const Encoding once = encode_asymmetric(random_range(random), bits, snpe_least_range);
        const Encoding again = encode_asymmetric({once.min, once.max}, bits, snpe_least_range);
        REQUIRE(again.offset == once.offset);
        REQUIRE(again.scale == doctest::Approx(once.scale).epsilon(1e-12));
    }
}

TEST_CASE("32 bits do not overflow") {
    const Encoding encoding = encode_asymmetric({-1, 3}, 32, snpe_least_range);
    CHECK(encoding.offset == -1073741824);
    CHECK(encoding.scale == doctest::Approx(4.0 / 4294967295.0).epsilon(1e-15));
    CHECK(encode_asymmetric({-3.4e38, 0}, 32, snpe_least_range).offset == -4294967295);
    const Encoding symmetric = encode_symmetric({-2, 1}, 32, snpe_least_range);
    CHECK(symmetric.offset == -2147483648);
    CHECK(symmetric.scale == doctest::Approx(2.0 / 2147483647.0).epsilon(1e-15));
}

TEST_CASE("a symmetric encoding spans the larger magnitude and is centred on -2^(bits-1)") {
    const Encoding encoding = encode_symmetric({-0.5, 1.27}, 8, snpe_least_range);
    CHECK(encoding.symmetric);
    CHECK(encoding.scale == doctest::Approx(0.01).epsilon(1e-15));
    CHECK(encoding.offset == -128);
    CHECK(encoding.min == doctest::Approx(-1.28).epsilon(1e-15));
    CHECK(encoding.max == doctest::Approx(1.27).epsilon(1e-15));
    CHECK(encode_symmetric({-7, 3}, 4, snpe_least_range).scale == 1.0);
    CHECK(encode_symmetric({-7, 3}, 4, snpe_least_range).offset == -8);
    CHECK(encode_symmetric({2, 7}, 4, snpe_least_range).scale == 1.0);
}

TEST_CASE("a symmetric grid is never narrower than the least range") {
    const Encoding zeros = encode_symmetric({0, 0}, 8, snpe_least_range);
    CHECK(zeros.scale == 0.01 / 255);
    CHECK(zeros.max - zeros.min == doctest::Approx(0.01));
    Random random(3);
    for (int trial = 0; trial < 5000; ++trial) {
        const Range range = random_range(random);
        const int bits = static_cast<int>(2 + random.below(15));
        const Encoding encoding = encode_symmetric(range, bits, snpe_least_range);
        REQUIRE(encoding.offset == -(std::int64_t{1} << (bits - 1)));
        REQUIRE(encoding.max - encoding.min >= snpe_least_range * (1 - 1e-12));
        REQUIRE(encoding.max >= range.max * (1 - 1e-12));
        REQUIRE(encoding.min <= range.min * (range.min < 0 ? 1 - 1e-12 : 1));
    }
}
