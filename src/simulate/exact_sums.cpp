#include "simulate/exact_sums.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "base/error.h"

namespace qcalib {

namespace {

constexpr std::int64_t first_inexact = std::int64_t{1} << 24;

std::int64_t integer_power(std::int64_t base, int exponent) {
    std::int64_t result = 1;
    for (int i = 0; i < exponent; ++i) result *= base;
    return result;
}

// The greatest sum of magnitudes that one digit of an output channel's weights has.
std::int64_t greatest_sum(const std::vector<std::vector<std::int64_t>>& rows, int digits, std::int64_t base) {
    std::int64_t greatest = 0;
    for (const std::vector<std::int64_t>& row : rows) {
        std::vector<std::int64_t> sums(static_cast<std::size_t>(digits));
        for (const std::int64_t weight : row) {
            const std::vector<std::int64_t> parts = digits_of(weight, digits, base);
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += std::abs(parts[i]);
        }
        greatest = std::max(greatest, *std::ranges::max_element(sums));
    }
    return greatest;
}

}  // namespace

std::vector<std::int64_t> digits_of(std::int64_t weight, int digits, std::int64_t base) {
    std::vector<std::int64_t> parts;
    for (int i = 0; i + 1 < digits; ++i) {
        std::int64_t low = (weight + base / 2) % base;
        if (low < 0) low += base;
        low -= base / 2;
        parts.push_back(low);
        weight = (weight - low) / base;
    }
    parts.push_back(weight);
    return parts;
}

DigitSplit split_for_exact_sums(const std::vector<std::vector<std::int64_t>>& rows, int bits,
                                bool is_signed) {
    std::int64_t widest = 1;
    for (const std::vector<std::int64_t>& row : rows) {
        for (const std::int64_t weight : row) widest = std::max(widest, std::abs(weight));
    }
    const int weight_bits = widest > 128 ? 16 : 8;
    std::optional<DigitSplit> best;
    for (const int weight_digits : {1, 2, 4}) {
        const std::int64_t weight_base = integer_power(2, weight_bits / weight_digits);
        const std::int64_t weights = greatest_sum(rows, weight_digits, weight_base);
        for (const int code_digits : {1, 2, 4}) {
            const std::int64_t code_base = integer_power(2, (bits + code_digits - 1) / code_digits);
            const std::int64_t codes = code_digits == 1 && is_signed ? code_base / 2 : code_base - 1;
            if (weights * codes >= first_inexact) continue;
            const bool better =
                !best || weight_digits * code_digits < best->weight_digits * best->code_digits;
            if (better) best = DigitSplit{code_digits, code_base, weight_digits, weight_base};
        }
    }
    if (!best) fail("sums of {} terms are too long to be exact", rows.empty() ? 0 : rows.front().size());
    return *best;
}

}  // namespace qcalib
