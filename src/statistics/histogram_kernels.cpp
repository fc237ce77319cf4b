#include "statistics/histogram_kernels.h"

#include <algorithm>

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

// True where a lane is not zero.
HWY_INLINE bool has_lane(hn::Vec<hn::CappedTag<std::uint32_t, block>> values) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    return _mm512_test_epi32_mask(values.raw, values.raw) != 0;
#else
    const hn::CappedTag<std::uint32_t, block> tag;
    return !hn::AllTrue(tag, hn::Eq(values, hn::Zero(tag)));
#endif
}

std::uint64_t sum_counts(const std::uint32_t* HWY_RESTRICT counts, std::size_t blocks,
                         std::uint64_t* HWY_RESTRICT occupied) {
    const hn::CappedTag<std::uint32_t, block> tag;
    constexpr std::size_t lanes = hn::MaxLanes(tag);
    auto sums = hn::Zero(tag);
    for (std::size_t first = 0; first < blocks; first += 64) {
        std::uint64_t marks = 0;
        const std::size_t end = HWY_MIN(blocks, first + 64);
        for (std::size_t index = first; index < end; ++index) {
            auto any = hn::Zero(tag);
            for (std::size_t i = 0; i < block; i += lanes) {
                const auto values = hn::LoadU(tag, counts + index * block + i);
                sums = hn::Add(sums, values);
                any = hn::Or(any, values);
            }
            marks |= std::uint64_t{has_lane(any)} << (index - first);
        }
        occupied[first / 64] |= marks;
    }
    return hn::GetLane(hn::SumOfLanes(tag, sums));
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

// Calls visit(first bin, bins) for the occupied blocks: for a whole group of them at once where most are.
template <typename Visit>
HWY_INLINE void for_each_run(const std::uint64_t* blocks, Visit visit) {
    constexpr std::size_t in_group = MagnitudeHistogram::group / block;
    static_assert(in_group == 32);
    for (std::size_t group = 0; group < MagnitudeHistogram::bins / MagnitudeHistogram::group; ++group) {
        std::uint64_t bits = (blocks[group / 2] >> (group % 2 * 32)) & 0xffffffffU;
        if (hwy::PopCount(bits) > in_group / 4) {
            visit(group * MagnitudeHistogram::group, MagnitudeHistogram::group);
            continue;
        }
        for (; bits != 0; bits &= bits - 1) {
            visit((group * in_group + hwy::Num0BitsBelowLS1Bit_Nonzero64(bits)) * block, block);
        }
    }
}

void add_blocks(const std::uint64_t* blocks, const std::uint32_t* HWY_RESTRICT source,
                std::uint32_t* HWY_RESTRICT target, std::size_t distance) {
    for_each_run(blocks, [=](std::size_t first, std::size_t bins) HWY_ATTR {
        const std::uint32_t* HWY_RESTRICT from = source + distance;
        for (std::size_t k = first; k < first + bins; ++k) target[k] += from[k];
    });
}

void clear_blocks(const std::uint64_t* blocks, std::uint32_t* counts) {
    const hn::CappedTag<std::uint32_t, block> tag;
    for_each_run(blocks, [=](std::size_t first, std::size_t bins) HWY_ATTR {
        for (std::size_t k = first; k < first + bins; k += hn::Lanes(tag)) {
            hn::StoreU(hn::Zero(tag), tag, counts + k);
        }
    });
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(sum_counts);
HWY_EXPORT(fold_groups);
HWY_EXPORT(add_run);
HWY_EXPORT(add_blocks);
HWY_EXPORT(clear_blocks);

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
