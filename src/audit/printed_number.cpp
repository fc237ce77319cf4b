#include "audit/printed_number.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace qcalib {

namespace {

// Counts digits behind the point and significant digits of a plain or scientific number.
void count_digits(std::string_view mantissa, PrintedNumber& number) {
    bool behind = false;
    for (const char c : mantissa) {
        if (c == '.') behind = true;
        if (c < '0' || c > '9') continue;
        if (behind) ++number.decimals;
        if (number.digits > 0 || c != '0') ++number.digits;
    }
}

}  // namespace

std::optional<PrintedNumber> parse_printed_number(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    PrintedNumber number;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, number.value);
    if (error != std::errc() || stopped != end) return std::nullopt;
    if (!std::isfinite(number.value)) return number;
    number.value += 0.0;  // -0 is 0
    const std::size_t exponent_at = text.find_first_of("eE");
    count_digits(text.substr(0, exponent_at), number);
    int exponent = 0;
    if (exponent_at != std::string_view::npos) {
        std::string_view digits = text.substr(exponent_at + 1);
        if (digits.starts_with('+')) digits.remove_prefix(1);
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
        number.decimals -= exponent;
    }
    number.half_unit = 0.5 * std::pow(10.0, -number.decimals);
    return number;
}

double float_spacing(double value) {
    constexpr int mantissa_bits = 23;
    constexpr int least_exponent = -126;
    if (value == 0 || !std::isfinite(value)) return std::ldexp(1.0, least_exponent - mantissa_bits);
    return std::ldexp(1.0, std::max(std::ilogb(value), least_exponent) - mantissa_bits);
}

bool equal_as_printed(double given, const PrintedNumber& printed, double larger_end) {
    // The sum of a decimal and a binary error has an error of its own, far below either.
    constexpr double slack = 1e-12;
    const double allowed = printed.half_unit + 2 * float_spacing(larger_end);
    return std::abs(given - printed.value) <= allowed * (1 + slack) + std::abs(given) * 1e-15;
}

}  // namespace qcalib
