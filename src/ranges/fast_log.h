#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace qcalib {

// The natural logarithm of a normal number > 0, to an absolute error of 1e-11: 256 values in a table, and
// three terms of the series about the nearest.
class FastLog {
  public:
    FastLog() {
        for (std::size_t i = 0; i < entries; ++i) {
            const double middle = 1 + (static_cast<double>(i) + 0.5) / static_cast<double>(entries);
            table_[i] = {1 / middle, std::log(middle)};
        }
    }

    double operator()(double value) const {
        constexpr double log_two = 0.69314718055994530942;
        constexpr std::uint64_t mantissa_mask = (std::uint64_t{1} << mantissa_bits) - 1;
        const auto bits = std::bit_cast<std::uint64_t>(value);
        const auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> mantissa_bits) - 1023);
        const Entry& entry = table_[(bits >> (mantissa_bits - index_bits)) % entries];
        const auto mantissa = std::bit_cast<double>((bits & mantissa_mask) | 0x3ff0000000000000U);
        const double rest = mantissa * entry.inverse - 1;  // below 2^-9
        return exponent * log_two + entry.logarithm + rest * (1 - rest * (0.5 - rest * (1.0 / 3)));
    }

  private:
    static constexpr unsigned mantissa_bits = 52;
    static constexpr unsigned index_bits = 8;
    static constexpr std::size_t entries = std::size_t{1} << index_bits;
    struct Entry {
        double inverse = 1;  // of the middle of an interval of [1, 2)
        double logarithm = 0;
    };
    std::array<Entry, entries> table_;
};

}  // namespace qcalib
