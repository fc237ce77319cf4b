#include "format/offset_conventions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace qcalib {

namespace {

constexpr std::array conventions = {OffsetConvention::negative, OffsetConvention::positive,
                                    OffsetConvention::positive_less_one, OffsetConvention::signed_negative,
                                    OffsetConvention::signed_positive};

constexpr double empty_range_width = 0.01;  // what SNPE and AIMET widen a range without width to

double codes_of(int bits) {
    return static_cast<double>((std::int64_t{1} << bits) - 1);
}

double half_of(int bits) {
    return static_cast<double>(std::int64_t{1} << (bits - 1));
}

std::uint8_t bit_of(OffsetConvention convention) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(convention));
}

// Why a number cannot be one of an encoding, or "".
std::string number_fault(const char* name, const std::optional<double>& value) {
    if (!value) return "";
    if (!std::isfinite(*value)) return fmt::format("{}: expected a finite number, found {}", name, *value);
    if (std::abs(*value) > std::numeric_limits<float>::max()) {
        return fmt::format("{}: expected a number within float32, found {}", name, *value);
    }
    return "";
}

std::string fault_of(const GivenNumbers& given) {
    for (const auto& [name, value] : {std::pair("min", &given.min), std::pair("max", &given.max),
                                      std::pair("scale", &given.scale), std::pair("offset", &given.offset)}) {
        if (std::string fault = number_fault(name, *value); !fault.empty()) return fault;
    }
    if (given.min.has_value() != given.max.has_value()) {
        return fmt::format("expected min and max together, found {} alone", given.min ? "min" : "max");
    }
    if (given.scale.has_value() != given.offset.has_value()) {
        return fmt::format("expected scale and offset together, found {} alone",
                           given.scale ? "scale" : "offset");
    }
    if (given.min && *given.min > *given.max) {
        return fmt::format("expected min <= max, found min {} and max {}", *given.min, *given.max);
    }
    if (given.offset && *given.offset != std::round(*given.offset)) {
        return fmt::format("offset: expected a whole number, found {}", *given.offset);
    }
    if (given.scale && (*given.scale < 0 || (*given.scale == 0 && !given.min))) {
        return fmt::format("scale: expected a number above 0, found {}", *given.scale);
    }
    return "";
}

// How far min / scale of given numbers may be from a whole number that it stands for: float32 rounding of
// both.
double tolerance_of(double offset) {
    return 1e-3 + std::abs(offset) * 0x1p-22;
}

void encode_range(CompletedEncoding& result, const GivenNumbers& given) {
    Encoding& encoding = result.encoding;
    const double codes = codes_of(encoding.bits);
    encoding.min = std::min(0.0, *given.min);
    encoding.max = std::max(0.0, *given.max);
    result.without_zero = encoding.min != *given.min || encoding.max != *given.max;
    if (encoding.max - encoding.min < std::numeric_limits<float>::denorm_min()) {
        result.empty_range = true;
        encoding.max = empty_range_width;
    }
    encoding.scale = (encoding.max - encoding.min) / codes;
    const double quotient = encoding.min / encoding.scale;
    const double offset = std::clamp(std::round(quotient), -codes, 0.0);
    encoding.offset = static_cast<std::int64_t>(offset);
    result.off_grid = std::abs(quotient - offset) > tolerance_of(offset);
}

void encode_scale(CompletedEncoding& result, double scale, double offset) {
    Encoding& encoding = result.encoding;
    encoding.scale = scale;
    encoding.offset = static_cast<std::int64_t>(offset);
    encoding.min = static_cast<double>(encoding.offset) * scale;
    encoding.max = encoding.min + scale * codes_of(encoding.bits);
}

// Which convention an offset without a range is in, or the reason why it is in none.
OffsetConvention convention_of(double offset, bool symmetric, int bits, const OffsetRule& rule,
                               std::string& fault) {
    const double codes = codes_of(bits);
    const auto legal = [&](OffsetConvention convention) {
        const double value = normalised_offset(offset, convention, bits);
        return value >= -codes && value <= 0;
    };
    if (symmetric && offset == 0 && rule.symmetric_zero) return OffsetConvention::signed_negative;
    if (legal(rule.expected)) return rule.expected;
    if (legal(OffsetConvention::positive)) return OffsetConvention::positive;
    if (legal(OffsetConvention::negative)) return OffsetConvention::negative;
    const bool is_signed = rule.expected == OffsetConvention::signed_positive;
    const bool is_positive = rule.expected == OffsetConvention::positive;
    const double least = is_signed ? -half_of(bits) : is_positive ? 0 : -codes;
    fault =
        fmt::format("{}: expected {} to {} for {} bits, found {}",
                    is_signed || is_positive ? "zero point" : "offset", least, least + codes, bits, offset);
    return OffsetConvention::none;
}

// The step that makes the range 2^bits - 1 wide (or one less, where strictly symmetric), if `scale` is that;
// more digits than a printed scale. 0 where it is not.
double step_of_width(const Encoding& grid, double scale, bool maybe_strict) {
    const double width = grid.max - grid.min;
    const double codes = codes_of(grid.bits);
    const auto near = [&](double steps) { return std::abs(scale * steps / width - 1) <= 1e-3; };
    if (maybe_strict && std::abs(scale * (codes - 1) / width - 1) < std::abs(scale * codes / width - 1)) {
        return near(codes - 1) ? width / (codes - 1) : 0;
    }
    return near(codes) ? width / codes : 0;
}

void encode_both(CompletedEncoding& result, const GivenNumbers& given, const OffsetRule& rule) {
    encode_range(result, given);
    Encoding& encoding = result.encoding;
    if (result.empty_range && *given.scale > 0) {
        const OffsetConvention found =
            convention_of(*given.offset, encoding.symmetric, encoding.bits, rule, result.fault);
        result.candidates = bit_of(found);
        if (result.fault.empty()) {
            encode_scale(result, *given.scale, normalised_offset(*given.offset, found, encoding.bits));
        }
        return;
    }
    const double step = step_of_width(encoding, *given.scale, encoding.symmetric || *given.offset != 0);
    if (step == 0) {
        result.odd_scale = true;
        return;
    }
    const double quotient = encoding.min / step;
    double offset = 0;
    for (const OffsetConvention convention : conventions) {
        const double value = normalised_offset(*given.offset, convention, encoding.bits);
        const bool fits = std::abs(quotient - value) <= 0.5 + tolerance_of(value);
        if (!fits || value > 0 || value < -codes_of(encoding.bits)) continue;
        if (result.candidates == 0) offset = value;
        result.candidates = static_cast<std::uint8_t>(result.candidates | bit_of(convention));
    }
    if (result.candidates == 0) {
        result.odd_offset = true;
        return;
    }
    if (*given.offset == 0 && (result.candidates & bit_of(OffsetConvention::negative)) != 0) {
        result.candidates = bit_of(OffsetConvention::none);
    }
    encoding.scale = *given.scale;
    encoding.offset = static_cast<std::int64_t>(offset);
    result.off_grid = std::abs(quotient - offset) > tolerance_of(offset);
}

}  // namespace

double normalised_offset(double offset, OffsetConvention convention, int bits) {
    switch (convention) {
        case OffsetConvention::positive:
            return -offset;
        case OffsetConvention::positive_less_one:
            return -offset - 1;
        case OffsetConvention::signed_negative:
            return offset - half_of(bits);
        case OffsetConvention::signed_positive:
            return -offset - half_of(bits);
        case OffsetConvention::none:
        case OffsetConvention::negative:
            break;
    }
    return offset + 0.0;  // no negative zero
}

CompletedEncoding complete_encoding(int bits, const GivenNumbers& given, const OffsetRule& rule) {
    CompletedEncoding result;
    result.encoding.bits = bits;
    result.encoding.symmetric = given.symmetric.value_or(false);
    result.fault = fault_of(given);
    if (!result.fault.empty()) return result;
    if (given.min && given.scale) {
        encode_both(result, given, rule);
    } else if (given.min) {
        encode_range(result, given);
    } else if (given.scale) {
        const OffsetConvention found =
            convention_of(*given.offset, result.encoding.symmetric, bits, rule, result.fault);
        result.candidates = bit_of(found);
        if (!result.fault.empty()) return result;
        encode_scale(result, *given.scale, normalised_offset(*given.offset, found, bits));
    }
    const double largest = std::max(-result.encoding.min, result.encoding.max);
    if (result.fault.empty() && largest > std::numeric_limits<float>::max()) {
        result.fault = fmt::format("expected a range within float32, found {:.6g} to {:.6g}",
                                   result.encoding.min, result.encoding.max);
    }
    return result;
}

}  // namespace qcalib
