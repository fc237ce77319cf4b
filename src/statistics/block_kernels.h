#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "statistics/histogram.h"

// The inner loops of Counter, for blocks of a few thousand elements, on the instruction set Highway chooses.
// They look at nothing but bits, so FTZ and DAZ do not matter, and they count alike on every instruction set.
//
// The order number of a float is its bit pattern as an integer that ascends with the value: its bits where
// the sign is
// +, and -1 - (bits of the magnitude) where it is -. Zeros and denormals are the numbers from -2^23 to 2^23
// - 1.
//
// The key of an ordinary float is fine enough to be folded into bins later, for the E that its side turns out
// to have or any other that lets key 0 be a part of bin 0. With K >= E an exponent chosen beforehand, key 0
// holds magnitudes below 2^(K-18), and keys 1 to 9216 the eighteen binades from there on, 512 each. Both
// sides share one ascending line of 16-bit slots: negative keys downwards from 32767, positive keys upwards
// from 32768.
namespace qcalib {

inline constexpr int key_binades = 18;
inline constexpr int key_headroom = key_binades - 16;  // the greatest K - E
inline constexpr std::size_t keys_per_side = key_binades * MagnitudeHistogram::group + 1;
inline constexpr std::uint16_t first_negative_slot = 32767;  // key 0
inline constexpr std::uint16_t first_positive_slot = 32768;
inline constexpr std::uint16_t lowest_slot = first_negative_slot - (keys_per_side - 1);
inline constexpr std::size_t slots = 2 * keys_per_side;
inline constexpr std::size_t slot_padding = 64;  // what may be written beyond the last slot or element

// The key from which on keys are bins one for one: that of 2^(E-7), bin 512; `headroom` is K - E.
constexpr std::size_t first_plain_key(int headroom) {
    return 1 + static_cast<std::size_t>(key_binades - 7 - headroom) * MagnitudeHistogram::group;
}

// The key of a magnitude, given as bits.
constexpr std::int32_t key_of(std::int32_t magnitude_bits, int key_exponent) {
    const std::int32_t key = (magnitude_bits >> 14) - (key_exponent - key_binades + 127) * 512 + 1;
    return key < 0 ? 0 : key;
}

// The bin a key falls into.
constexpr std::size_t bin_of_key(std::size_t key, std::size_t plain_key) {
    if (key >= plain_key) return MagnitudeHistogram::group + (key - plain_key);
    if (key == 0) return 0;
    const std::size_t below = plain_key - 1 - key;
    const std::size_t mantissa = (key - 1) % MagnitudeHistogram::group;
    return (MagnitudeHistogram::group + mantissa) >> (below / MagnitudeHistogram::group + 1);
}

// The bits of a float as an order number.
constexpr std::int32_t order_number(std::uint32_t bits) {
    const auto value = static_cast<std::int32_t>(bits);
    return value ^ ((value >> 31) & 0x7fffffff);
}

// What is added to (order number >> 14) to make a slot, for each side's K.
struct SlotOffsets {
    std::int32_t positive = 0;
    std::int32_t negative = 0;
};
SlotOffsets slot_offsets(int positive_key_exponent, int negative_key_exponent);

// Order numbers of a block's least and greatest element, and how many elements are neither zero nor denormal.
struct BlockScan {
    std::int32_t least = INT32_MAX;
    std::int32_t greatest = INT32_MIN;
    std::size_t nonzero = 0;
};

// All of these read elements that may lie unaligned.
BlockScan scan_block(const float* elements, std::size_t count);

// As scan_block, and writes the slots of the nonzero elements, in any order. Slots of elements that are not
// below their side's 2^K, or not finite, mean nothing. `out` has room for count + slot_padding.
BlockScan index_block(const float* elements, std::size_t count, SlotOffsets offsets, std::uint16_t* out);

// The least magnitudes, as bits, that are masks.
struct MaskLimits {
    std::uint32_t positive = 0;
    std::uint32_t negative = 0;
};

// Counts NaN, infinities and masks into `statistics` and copies the other elements, in order, to `ordinary`
// (with room for count + slot_padding); answers how many.
std::size_t separate_block(const float* elements, std::size_t count, MaskLimits limits,
                           TensorStatistics& statistics, float* ordinary);

// sums[key] = first[slot of key] + second[slot of key] for the keys below `keys` of one side, and clears
// these. Both tables are indexed by slot - lowest_slot.
void take_positive_keys(std::uint16_t* first, std::uint16_t* second, std::size_t keys, std::uint32_t* sums);
void take_negative_keys(std::uint16_t* first, std::uint16_t* second, std::size_t keys, std::uint32_t* sums);

// low_bins[bin] = the sum of the keys below `plain_key` that fall into bin, for the lowest group of bins.
void fold_low_keys(const std::uint32_t* sums, std::size_t plain_key, std::uint32_t* low_bins);

// Adds whole blocks of counts to a histogram's bins, from that block on, and marks those with a count;
// answers their sum.
std::uint64_t widen_blocks(std::span<const std::uint32_t> counts, std::size_t first_block,
                           std::uint64_t* bins, MagnitudeHistogram::OccupiedBlocks& occupied);

// Adds source[i] to target[i] for the bins of these blocks.
void add_blocks(const MagnitudeHistogram::OccupiedBlocks& blocks, const std::uint64_t* source,
                std::uint64_t* target);

}  // namespace qcalib
