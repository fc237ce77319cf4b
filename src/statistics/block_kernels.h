#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "statistics/counter.h"
#include "statistics/histogram.h"

// The inner loops of Counter, on the instruction set Highway chooses. They count alike on every one, whether
// or not FTZ and DAZ are set.
//
// The slot of an ordinary element is its bin, given the E of its side, plus first_negative_slot where it is
// negative. With the element scaled by 2^(-E-7) and rounded towards zero to float16, the bin is that number's
// bits shifted right by one: float16's denormals are the bins of equal width, and of its ten mantissa bits
// nine remain.
namespace qcalib {

inline constexpr std::uint16_t first_negative_slot = MagnitudeHistogram::bins;
inline constexpr std::size_t index_padding = 64;  // elements that may be written beyond the last

// E of each side.
struct SideExponents {
    int positive = 0;
    int negative = 0;
};

// Extremes of a block's elements as bits, compared as signed and as unsigned integers, and how many elements
// are neither zero nor denormal.
struct BlockScan {
    std::int32_t greatest = INT32_MIN;  // >= 0: the greatest of the elements whose sign is +, NaN above all
    std::uint32_t least_bits =
        UINT32_MAX;  // the one nearest zero of those with +, or where none has it, with -
    std::uint32_t greatest_bits =
        0;  // the one furthest from zero of those with -, or where none has it, with +
    std::size_t nonzero = 0;

    void take_extremes(const BlockScan& other);
    // The greatest magnitude of either side, as bits; 0 where the side has no element.
    std::uint32_t positive_bits() const { return greatest < 0 ? 0U : static_cast<std::uint32_t>(greatest); }
    std::uint32_t negative_bits() const {
        return greatest_bits >> 31 == 0 ? 0U : greatest_bits & 0x7fffffffU;
    }
    // The least and the greatest element as bits; of zeros and denormals any.
    std::uint32_t least_element() const { return greatest_bits >> 31 != 0 ? greatest_bits : least_bits; }
    std::uint32_t greatest_element() const {
        return greatest >= 0 ? static_cast<std::uint32_t>(greatest) : least_bits;
    }
    bool both_signs() const { return greatest > 0 && greatest_bits >> 31 != 0; }
    bool constant() const { return least_bits == greatest_bits; }
};

// All of these read elements that may lie unaligned.
BlockScan scan_block(const float* elements, std::size_t count);
// As scan_block, but `greatest` and `greatest_bits` alone.
BlockScan scan_greatest(const float* elements, std::size_t count);

// Counts slots, and fetches `next` (elements, or null) meanwhile. Not done while slots are made: loads of
// elements would wait for the stores to counts whose addresses agree with theirs in the lowest 12 bits.
void count_slots(std::span<const std::uint16_t> of_elements, std::uint32_t* counts, const float* next);

// As scan_block, and writes the slots of the nonzero elements, in any order. Slots of elements that are not
// below their side's 2^E, or not finite, mean nothing. `out` has room for count + index_padding. `dense`: no
// element is likely to be zero, and `least_bits` is not wanted.
BlockScan index_block(const float* elements, std::size_t count, SideExponents exponents, bool dense,
                      std::uint16_t* out);

// The least magnitudes, as bits, that are masks.
struct MaskLimits {
    std::uint32_t positive = 0;
    std::uint32_t negative = 0;
};
// 1e30, or on the negative side the first magnitude beyond `mask_below`; Error where that is no negative
// number.
MaskLimits mask_limits(const CounterSettings& settings);

// Counts NaN, infinities and masks into `statistics` and copies the other elements, in order, to `ordinary`
// (with room for count + index_padding); answers how many.
std::size_t separate_block(const float* elements, std::size_t count, MaskLimits limits,
                           TensorStatistics& statistics, float* ordinary);

}  // namespace qcalib
