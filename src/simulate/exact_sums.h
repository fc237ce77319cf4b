#pragma once

#include <cstdint>
#include <vector>

namespace qcalib {

// How codes and weights are split so that float32 sums of their products stay exact, below 2^24.
struct DigitSplit {
    int code_digits = 1;
    std::int64_t code_base = 0;    // where there are several
    int weight_digits = 1;         // each from -base/2 to base/2 - 1, but the highest
    std::int64_t weight_base = 0;  // where there are several
};

// The digits of a weight, the lowest first: weight = sum of digit[i] * base^i.
std::vector<std::int64_t> digits_of(std::int64_t weight, int digits, std::int64_t base);

// The split with the fewest products of digits. `rows` are whole numbers, the weights of each output channel
// one after the other, all of the same length; codes have `bits` bits. An Error where none is exact (sums of
// more than half a million terms).
DigitSplit split_for_exact_sums(const std::vector<std::vector<std::int64_t>>& rows, int bits, bool is_signed);

}  // namespace qcalib
