#include "encoding/encoding.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace qcalib {

namespace {

double greatest_code(int bits) {
    return static_cast<double>((std::int64_t{1} << bits) - 1);
}

void check_arguments(Range range, int bits, double least_range) {
    assert(bits >= 2 && bits <= 32);
    assert(std::isfinite(range.min) && std::isfinite(range.max) && range.min <= range.max);
    assert(least_range > 0);
    (void)range;
    (void)bits;
    (void)least_range;
}

double round_by(Rounding rounding, double value) {
    return rounding == Rounding::half_away ? std::round(value) : std::nearbyint(value);
}

}  // namespace

Encoding encode_asymmetric(Range range, int bits, double least_range, Rounding rounding) {
    check_arguments(range, bits, least_range);
    const double codes = greatest_code(bits);
    const double low = std::min(0.0, range.min);
    const double high = std::max({0.0, range.max, low + least_range});
    const double width = high - low;

    Encoding encoding;
    encoding.bits = bits;
    encoding.scale = width / codes;
    const double zero_point = std::clamp(round_by(rounding, -low / encoding.scale), 0.0, codes);
    encoding.offset = -static_cast<std::int64_t>(zero_point);
    encoding.min = static_cast<double>(encoding.offset) * encoding.scale;
    encoding.max = width + encoding.min;
    return encoding;
}

Encoding encode_symmetric(Range range, int bits, double least_range) {
    check_arguments(range, bits, least_range);
    const double codes = greatest_code(bits);
    const double half = greatest_code(bits - 1);
    const double magnitude = std::max(std::abs(range.min), std::abs(range.max));

    Encoding encoding;
    encoding.bits = bits;
    encoding.symmetric = true;
    encoding.scale = std::max(magnitude / half, least_range / codes);
    encoding.offset = -(std::int64_t{1} << (bits - 1));
    encoding.min = static_cast<double>(encoding.offset) * encoding.scale;
    encoding.max = half * encoding.scale;
    return encoding;
}

}  // namespace qcalib
