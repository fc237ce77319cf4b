#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "statistics/counter.h"
#include "statistics/histogram.h"

// The inner loops of Counter and MagnitudeHistogram, on the instruction set Highway chooses. They count alike
// on every one, whether or not FTZ and DAZ are set.
//
// The slot of an ordinary element is its bin, given the E of its side, plus first_negative_slot where it is
// negative: a histogram's two sides in one table of 16-bit counts. With the element scaled by 2^(-E-7) and
// rounded towards zero to float16, the slot is that number's bits shifted right by one: float16's denormals
// are the bins of equal width, and of its ten mantissa bits nine remain.
namespace qcalib {

inline constexpr std::uint16_t first_negative_slot = 1U << 14;
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
    bool constant() const { return least_bits == greatest_bits; }
};

// All of these read elements that may lie unaligned.
BlockScan scan_block(const float* elements, std::size_t count);

// The count of each slot, in turns: neighbouring elements are often equal, and a count that was just written
// is slow to read again. The second table lies in the gap between the sides of the first; the padding keeps
// what is alike in both from meeting in the same cache sets.
struct SlotTables {
    static constexpr std::size_t padding = 32;
    static constexpr std::size_t second =
        MagnitudeHistogram::bins + padding;  // from a first count to its second
    std::array<std::uint16_t, first_negative_slot + 2 * MagnitudeHistogram::bins + padding> counts = {};
};

// Counts slots, and fetches `next` (elements, or null) meanwhile. Not
// done while slots are made: loads of elements would wait for the stores to counts whose addresses agree with
// theirs in the lowest 12 bits.
void count_slots(std::span<const std::uint16_t> of_elements, SlotTables& tables, const float* next);

// As scan_block, and writes the slots of the nonzero elements, in any order. Slots of elements that are not
// below their side's 2^E, or not finite, mean nothing. `out` has room for count + index_padding.
BlockScan index_block(const float* elements, std::size_t count, SideExponents exponents, std::uint16_t* out);

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

// Adds what both tables hold of the first `blocks` blocks of bins to `counts`, marks
// blocks with a count, and clears the tables there; answers the sum, which must be below 2^16.
std::uint64_t take_counts(std::uint16_t* first, std::uint16_t* second, std::size_t blocks,
                          std::uint32_t* counts, MagnitudeHistogram::OccupiedBlocks& occupied);

// lowest[bin] = what falls into that bin of the lowest group when E grows by `steps` (1 to 16).
void fold_groups(const std::uint32_t* counts, const MagnitudeHistogram::OccupiedBlocks& occupied,
                 std::uint32_t steps, std::uint32_t* lowest);

// Adds a group of counts to the lowest group, and marks blocks with a count.
void add_run(std::span<const std::uint32_t, MagnitudeHistogram::group> lowest, std::uint32_t* counts,
             MagnitudeHistogram::OccupiedBlocks& occupied);

// Adds source[i + distance] to target[i] for the bins i of these blocks.
void add_blocks(const MagnitudeHistogram::OccupiedBlocks& blocks, const std::uint32_t* source,
                std::uint32_t* target, std::size_t distance = 0);

// Sets the bins of these blocks to 0.
void clear_blocks(const MagnitudeHistogram::OccupiedBlocks& blocks, std::uint32_t* counts);

}  // namespace qcalib
