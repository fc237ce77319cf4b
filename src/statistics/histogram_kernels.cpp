#include "statistics/histogram_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "statistics/histogram_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t block = MagnitudeHistogram::block;

// pairs[i] = values[2 i] + values[2 i + 1] for half a group; in place where pairs == values.
HWY_INLINE void add_pairs(const std::uint32_t* values, std::uint32_t* pairs) {
    constexpr std::size_t half = MagnitudeHistogram::group / 2;
    std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::ScalableTag<std::uint32_t> tag;
    const std::size_t lanes = hn::Lanes(tag);
    for (; i + lanes <= half; i += lanes) {
        const auto low = hn::LoadU(tag, values + 2 * i);
        const auto high = hn::LoadU(tag, values + 2 * i + lanes);
        hn::StoreU(hn::Add(hn::ConcatEven(tag, high, low), hn::ConcatOdd(tag, high, low)), tag, pairs + i);
    }
#endif
    for (; i < half; ++i) pairs[i] = values[2 * i] + values[2 * i + 1];
}

// A step at a time: the lowest group and the one above add pairwise into the new lowest group.
void fold_groups(const std::uint32_t* HWY_RESTRICT counts, const std::uint64_t* occupied, std::uint32_t steps,
                 std::uint32_t* HWY_RESTRICT lowest) {
    constexpr std::size_t group = MagnitudeHistogram::group;
    constexpr std::size_t groups = MagnitudeHistogram::bins / group;
    std::copy_n(counts, group, lowest);
    for (std::size_t step = 1; step <= steps; ++step) {
        add_pairs(lowest, lowest);
        const bool any = step < groups && (occupied[step / 2] >> (step % 2 * 32) & 0xffffffffU) != 0;
        if (any) {
            add_pairs(counts + step * group, lowest + group / 2);
        } else {
            std::fill_n(lowest + group / 2, group / 2, 0U);
        }
    }
}

using Words = hn::CappedTag<std::int32_t, block>;
using WordVector = hn::Vec<Words>;

// The OR of a block's counts, lane by lane; adds them to `sums` if that is wanted.
template <bool summed>
HWY_INLINE WordVector any_of_block(const std::uint32_t* counts, WordVector& sums) {
    auto any = hn::Zero(Words());
    for (std::size_t i = 0; i < block; i += hn::MaxLanes(Words())) {
        const auto values = hn::LoadU(Words(), reinterpret_cast<const std::int32_t*>(counts) + i);
        if constexpr (summed) sums = hn::Add(sums, values);
        any = hn::Or(any, values);
    }
    return any;
}

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
using Bytes = hn::Repartition<std::int8_t, Words>;

// Narrows 16-bit lanes with signed saturation, in each part of 128 bits first those of `a`, then those of
// `b`.
HWY_INLINE WordVector narrow(WordVector a, WordVector b) {
#if HWY_TARGET <= HWY_AVX3
    return {_mm512_packs_epi16(a.raw, b.raw)};
#elif HWY_TARGET <= HWY_AVX2
    return {_mm256_packs_epi16(a.raw, b.raw)};
#else
    return {_mm_packs_epi16(a.raw, b.raw)};
#endif
}

// In each part of 128 bits, a 32-bit lane for each of four vectors, not zero where that part of the vector is
// not: saturation makes only zeros zero.
HWY_INLINE WordVector narrow_four(WordVector a, WordVector b, WordVector c, WordVector d) {
    const hn::Repartition<std::int16_t, Words> halves;
    const auto first = hn::BitCast(Words(), hn::ReorderDemote2To(halves, a, b));
    return narrow(first, hn::BitCast(Words(), hn::ReorderDemote2To(halves, c, d)));
}

template <bool summed>
HWY_INLINE WordVector any_of_four(const std::uint32_t* counts, WordVector& sums) {
    const auto a = any_of_block<summed>(counts, sums);
    const auto b = any_of_block<summed>(counts + block, sums);
    const auto c = any_of_block<summed>(counts + 2 * block, sums);
    const auto d = any_of_block<summed>(counts + 3 * block, sums);
    return narrow_four(a, b, c, d);
}

// Bit i is set where block i of 16 has a count.
template <bool summed>
HWY_INLINE std::uint64_t mark_sixteen(const std::uint32_t* counts, WordVector& sums) {
    const auto a = any_of_four<summed>(counts, sums);
    const auto b = any_of_four<summed>(counts + 4 * block, sums);
    const auto c = any_of_four<summed>(counts + 8 * block, sums);
    const auto d = any_of_four<summed>(counts + 12 * block, sums);
    const auto parts = hn::BitCast(Bytes(), narrow_four(a, b, c, d));  // byte i of each part: block i
    std::array<std::uint8_t, 8> bits = {};
    hn::StoreMaskBits(Bytes(), hn::Ne(parts, hn::Zero(Bytes())), bits.data());
    std::uint64_t marks = 0;
    std::memcpy(&marks, bits.data(), sizeof marks);
    for (std::size_t width = 2 * hn::MaxLanes(Words()); width >= 16; width /= 2) marks |= marks >> width;
    return marks & 0xffffU;
}
#else
template <bool summed>
HWY_INLINE std::uint64_t mark_sixteen(const std::uint32_t* counts, WordVector& sums) {
    std::uint64_t marks = 0;
    for (std::size_t index = 0; index < 16; ++index) {
        const auto any = any_of_block<summed>(counts + index * block, sums);
        const bool none = hn::AllTrue(Words(), hn::Eq(any, hn::Zero(Words())));
        marks |= static_cast<std::uint64_t>(!none) << index;
    }
    return marks;
}
#endif

template <bool summed>
HWY_INLINE void mark_all(const std::uint32_t* counts, std::size_t blocks,
                         std::uint64_t* HWY_RESTRICT occupied, WordVector& sums) {
    for (std::size_t first = 0; first < blocks; first += 16) {
        occupied[first / 64] |= mark_sixteen<summed>(counts + first * block, sums) << (first % 64);
    }
}

void mark_counts(const std::uint32_t* HWY_RESTRICT counts, std::size_t blocks,
                 std::uint64_t* HWY_RESTRICT occupied) {
    auto unused = hn::Zero(Words());
    mark_all<false>(counts, blocks, occupied, unused);
}

std::uint64_t sum_counts(const std::uint32_t* HWY_RESTRICT counts, std::size_t blocks,
                         std::uint64_t* HWY_RESTRICT occupied) {
    auto sums = hn::Zero(Words());
    mark_all<true>(counts, blocks, occupied, sums);
    return static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(Words(), sums)));
}

void add_run(const std::uint32_t* HWY_RESTRICT lowest, std::uint32_t* HWY_RESTRICT counts,
             std::uint64_t* HWY_RESTRICT occupied) {
    std::uint64_t marks = 0;
    for (std::size_t index = 0; index < MagnitudeHistogram::group / block; ++index) {
        std::uint32_t any = 0;
        for (std::size_t k = index * block; k < (index + 1) * block; ++k) {
            counts[k] += lowest[k];
            any |= lowest[k];
        }
        marks |= static_cast<std::uint64_t>(any != 0) << index;
    }
    occupied[0] |= marks;
}

// Calls visit(first bin, bins) for the occupied blocks: for whole groups of them at once where most are.
template <typename Visit>
HWY_INLINE void for_each_run(const std::uint64_t* blocks, Visit visit) {
    constexpr std::size_t group_bins = MagnitudeHistogram::group;
    constexpr std::size_t groups = MagnitudeHistogram::bins / group_bins;
    constexpr std::size_t in_group = group_bins / block;
    static_assert(in_group == 32);
    std::size_t first = 0;  // of the filled groups right before this one
    for (std::size_t group = 0; group < groups; ++group) {
        std::uint64_t bits = (blocks[group / 2] >> (group % 2 * 32)) & 0xffffffffU;
        if (hwy::PopCount(bits) > in_group / 4) continue;
        if (first < group) visit(first * group_bins, (group - first) * group_bins);
        first = group + 1;
        for (; bits != 0; bits &= bits - 1) {
            visit(group * group_bins + hwy::Num0BitsBelowLS1Bit_Nonzero64(bits) * block, block);
        }
    }
    if (first < groups) visit(first * group_bins, (groups - first) * group_bins);
}

void add_blocks(const std::uint64_t* blocks, const std::uint32_t* HWY_RESTRICT source,
                std::uint32_t* HWY_RESTRICT target, std::size_t distance) {
    for_each_run(blocks, [=](std::size_t first, std::size_t bins) HWY_ATTR {
        const std::uint32_t* HWY_RESTRICT from = source + distance;
        for (std::size_t k = first; k < first + bins; ++k) target[k] += from[k];
    });
}

void clear_blocks(const std::uint64_t* blocks, std::uint32_t* counts) {
    // memset: a loop of vector stores takes twice as long.
    for_each_run(blocks, [=](std::size_t first, std::size_t bins)
                             HWY_ATTR { std::memset(counts + first, 0, bins * sizeof *counts); });
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(mark_counts);
HWY_EXPORT(sum_counts);
HWY_EXPORT(fold_groups);
HWY_EXPORT(add_run);
HWY_EXPORT(add_blocks);
HWY_EXPORT(clear_blocks);

void mark_counts(const std::uint32_t* counts, std::size_t blocks,
                 MagnitudeHistogram::OccupiedBlocks& occupied) {
    HWY_DYNAMIC_DISPATCH(mark_counts)(counts, blocks, occupied.data());
}

std::uint64_t sum_counts(const std::uint32_t* counts, std::size_t blocks,
                         MagnitudeHistogram::OccupiedBlocks& occupied) {
    return HWY_DYNAMIC_DISPATCH(sum_counts)(counts, blocks, occupied.data());
}

void fold_groups(const std::uint32_t* counts, const MagnitudeHistogram::OccupiedBlocks& occupied,
                 std::uint32_t steps, std::uint32_t* lowest) {
    HWY_DYNAMIC_DISPATCH(fold_groups)(counts, occupied.data(), steps, lowest);
}

void add_run(std::span<const std::uint32_t, MagnitudeHistogram::group> lowest, std::uint32_t* counts,
             MagnitudeHistogram::OccupiedBlocks& occupied) {
    HWY_DYNAMIC_DISPATCH(add_run)(lowest.data(), counts, occupied.data());
}

void add_blocks(const MagnitudeHistogram::OccupiedBlocks& blocks, const std::uint32_t* source,
                std::uint32_t* target, std::size_t distance) {
    HWY_DYNAMIC_DISPATCH(add_blocks)(blocks.data(), source, target, distance);
}

void clear_blocks(const MagnitudeHistogram::OccupiedBlocks& blocks, std::uint32_t* counts) {
    HWY_DYNAMIC_DISPATCH(clear_blocks)(blocks.data(), counts);
}

}  // namespace qcalib
#endif  // HWY_ONCE
