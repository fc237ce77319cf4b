#include "statistics/block_kernels.h"

#include <algorithm>
#include <cstring>

#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL 1  // its 16-bit compress
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "statistics/block_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The order numbers, >> 14, of zeros and denormals lie from -zero_slots to below zero_slots.
constexpr std::int32_t zero_slots = 512;
constexpr std::uint32_t infinity_bits = 0x7f800000U;
constexpr std::int32_t least_normal = 0x00800000;

HWY_INLINE std::uint32_t bits_at(const float* elements, std::size_t i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const std::byte*>(elements) + i * sizeof bits, sizeof bits);
    return bits;
}

// The elements from `begin` on, one by one: a block's tail.
HWY_INLINE void scan_tail(const float* elements, std::size_t begin, std::size_t count, BlockScan& scan) {
    for (std::size_t i = begin; i < count; ++i) {
        const std::int32_t order = order_number(bits_at(elements, i));
        scan.least = std::min(scan.least, order);
        scan.greatest = std::max(scan.greatest, order);
        scan.nonzero += order < -least_normal || order >= least_normal ? 1 : 0;
    }
}

HWY_INLINE std::uint16_t* index_tail(const float* elements, std::size_t begin, std::size_t count,
                                     SlotOffsets offsets, std::uint16_t* out, BlockScan& scan) {
    for (std::size_t i = begin; i < count; ++i) {
        const std::int32_t order = order_number(bits_at(elements, i));
        scan.least = std::min(scan.least, order);
        scan.greatest = std::max(scan.greatest, order);
        if (order >= -least_normal && order < least_normal) continue;
        const std::int32_t slot = (order >> 14) + (order < 0 ? offsets.negative : offsets.positive);
        *out++ = static_cast<std::uint16_t>(std::clamp(slot, -32768, 32767));
    }
    return out;
}

#if HWY_TARGET != HWY_SCALAR

using Words = hn::ScalableTag<std::int32_t>;
using Halves = hn::Repartition<std::int16_t, Words>;
using WordVector = hn::Vec<Words>;

HWY_INLINE WordVector load_words(const float* elements, std::size_t i) {
    return hn::LoadU(Words(), reinterpret_cast<const std::int32_t*>(elements) + i);
}

// Least and greatest order numbers, lane by lane.
struct LaneExtremes {
    WordVector least;
    WordVector greatest;

    HWY_INLINE LaneExtremes()  // written out: implicit members are not compiled for the target
        : least(hn::Set(Words(), INT32_MAX)), greatest(hn::Set(Words(), INT32_MIN)) {}
    HWY_INLINE void take(WordVector order) {
        least = hn::Min(least, order);
        greatest = hn::Max(greatest, order);
    }
    HWY_INLINE void finish(BlockScan& scan) const {
        scan.least = hn::GetLane(hn::MinOfLanes(Words(), least));
        scan.greatest = hn::GetLane(hn::MaxOfLanes(Words(), greatest));
    }
};

// Order numbers >> 14, narrowed with saturation: true where the element is neither zero nor denormal. The
// comparison of (x + 512) as unsigned is made signed by moving both ends by 2^15.
HWY_INLINE hn::Mask<Halves> nonzero_mask(hn::Vec<Halves> shifted) {
    const Halves halves;
    const auto moved = hn::Add(shifted, hn::Set(halves, static_cast<std::int16_t>(zero_slots - 32768)));
    return hn::Gt(moved, hn::Set(halves, static_cast<std::int16_t>(2 * zero_slots - 1 - 32768)));
}

// Writes the lanes of `values` where `mask` is set, in any order; may write a whole vector. Answers their
// number.
HWY_INLINE std::size_t store_masked(hn::Vec<Halves> values, hn::Mask<Halves> mask, std::uint16_t* out) {
    const Halves halves;
#if HWY_TARGET == HWY_AVX3_DL
    hn::StoreU(hn::Compress(values, mask), halves, reinterpret_cast<std::int16_t*>(out));
    return hn::CountTrue(halves, mask);
#else
    return hn::CompressStore(values, mask, halves, reinterpret_cast<std::int16_t*>(out));
#endif
}

#endif  // HWY_TARGET != HWY_SCALAR

BlockScan scan_block(const float* elements, std::size_t count) {
    BlockScan scan;
    std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const Words words;
    const std::size_t lanes = hn::Lanes(words);
    const auto ones = hn::Set(words, 0x7fffffff);
    const auto magnitude_of_normal = hn::Set(words, least_normal - 1);
    LaneExtremes extremes;
    for (; i + lanes <= count; i += lanes) {
        const auto value = load_words(elements, i);
        const auto magnitude = hn::And(value, ones);
        extremes.take(hn::Xor(value, hn::And(hn::ShiftRight<31>(value), ones)));
        scan.nonzero += hn::CountTrue(words, hn::Gt(magnitude, magnitude_of_normal));
    }
    extremes.finish(scan);
#endif
    scan_tail(elements, i, count, scan);
    return scan;
}

BlockScan index_block(const float* elements, std::size_t count, SlotOffsets offsets, std::uint16_t* out) {
    BlockScan scan;
    std::uint16_t* const first = out;
    std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const Words words;
    const Halves halves;
    const std::size_t lanes = hn::Lanes(words);
    const auto ones = hn::Set(words, 0x7fffffff);
    const auto positive = hn::Set(words, offsets.positive);
    const auto difference = hn::Set(words, offsets.positive ^ offsets.negative);
    LaneExtremes extremes_a;
    LaneExtremes extremes_b;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        const auto a = load_words(elements, i);
        const auto b = load_words(elements, i + lanes);
        const auto sign_a = hn::ShiftRight<31>(a);
        const auto sign_b = hn::ShiftRight<31>(b);
        const auto order_a = hn::Xor(a, hn::And(sign_a, ones));
        const auto order_b = hn::Xor(b, hn::And(sign_b, ones));
        extremes_a.take(order_a);
        extremes_b.take(order_b);
        const auto shifted_a = hn::ShiftRight<14>(order_a);
        const auto shifted_b = hn::ShiftRight<14>(order_b);
        const auto offset_a = hn::Xor(positive, hn::And(sign_a, difference));
        const auto offset_b = hn::Xor(positive, hn::And(sign_b, difference));
        const auto slot =
            hn::ReorderDemote2To(halves, hn::Add(shifted_a, offset_a), hn::Add(shifted_b, offset_b));
        const auto nonzero = nonzero_mask(hn::ReorderDemote2To(halves, shifted_a, shifted_b));
        out += store_masked(slot, nonzero, out);
    }
    extremes_a.take(extremes_b.least);
    extremes_a.take(extremes_b.greatest);
    if (i > 0) extremes_a.finish(scan);
#endif
    out = index_tail(elements, i, count, offsets, out, scan);
    scan.nonzero = static_cast<std::size_t>(out - first);
    return scan;
}

std::size_t separate_block(const float* elements, std::size_t count, MaskLimits limits,
                           TensorStatistics& statistics, float* ordinary) {
    std::size_t kept = 0;
    std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const Words words;
    const std::size_t lanes = hn::Lanes(words);
    const auto ones = hn::Set(words, 0x7fffffff);
    const auto infinity = hn::Set(words, static_cast<std::int32_t>(infinity_bits));
    // The order numbers between which all is ordinary.
    const auto above = hn::Set(words, -1 - static_cast<std::int32_t>(limits.negative));
    const auto below = hn::Set(words, static_cast<std::int32_t>(limits.positive));
    for (; i + lanes <= count; i += lanes) {
        const auto value = load_words(elements, i);
        const auto magnitude = hn::And(value, ones);
        const auto order = hn::Xor(value, hn::And(hn::ShiftRight<31>(value), ones));
        const auto keep = hn::And(hn::Gt(order, above), hn::Gt(below, order));
        kept += hn::CompressStore(value, keep, words, reinterpret_cast<std::int32_t*>(ordinary) + kept);
        if (hn::AllTrue(words, keep)) continue;
        const auto negative = hn::Gt(hn::Zero(words), value);
        const auto finite = hn::Gt(infinity, magnitude);
        const auto infinite = hn::Eq(magnitude, infinity);
        const auto mask = hn::AndNot(keep, finite);
        statistics.nans += hn::CountTrue(words, hn::Gt(magnitude, infinity));
        statistics.positive_infinities += hn::CountTrue(words, hn::AndNot(negative, infinite));
        statistics.negative_infinities += hn::CountTrue(words, hn::And(negative, infinite));
        statistics.positive_masks += hn::CountTrue(words, hn::AndNot(negative, mask));
        statistics.negative_masks += hn::CountTrue(words, hn::And(negative, mask));
    }
#endif
    for (; i < count; ++i) {
        const std::uint32_t bits = bits_at(elements, i);
        const std::uint32_t magnitude = bits & 0x7fffffffU;
        const bool negative = bits >> 31 != 0;
        if (magnitude < (negative ? limits.negative : limits.positive)) {
            std::memcpy(ordinary + kept++, &bits, sizeof bits);
        } else if (magnitude > infinity_bits) {
            ++statistics.nans;
        } else if (magnitude == infinity_bits) {
            ++(negative ? statistics.negative_infinities : statistics.positive_infinities);
        } else {
            ++(negative ? statistics.negative_masks : statistics.positive_masks);
        }
    }
    return kept;
}

void take_positive_keys(std::uint16_t* HWY_RESTRICT first, std::uint16_t* HWY_RESTRICT second,
                        std::size_t keys, std::uint32_t* HWY_RESTRICT sums) {
    constexpr std::size_t base = first_positive_slot - lowest_slot;
    for (std::size_t key = 0; key < keys; ++key) {
        sums[key] = static_cast<std::uint32_t>(first[base + key]) + second[base + key];
    }
    std::fill_n(first + base, keys, std::uint16_t{0});
    std::fill_n(second + base, keys, std::uint16_t{0});
}

void take_negative_keys(std::uint16_t* HWY_RESTRICT first, std::uint16_t* HWY_RESTRICT second,
                        std::size_t keys, std::uint32_t* HWY_RESTRICT sums) {
    constexpr std::size_t base = first_negative_slot - lowest_slot;
    for (std::size_t key = 0; key < keys; ++key) {
        sums[key] = static_cast<std::uint32_t>(first[base - key]) + second[base - key];
    }
    std::fill_n(first + base + 1 - keys, keys, std::uint16_t{0});
    std::fill_n(second + base + 1 - keys, keys, std::uint16_t{0});
}

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

// A binade at a time: as when E grows, the group below and the binade add pairwise into the new lowest group.
void fold_low_keys(const std::uint32_t* sums, std::size_t plain_key, std::uint32_t* low_bins) {
    std::fill_n(low_bins, MagnitudeHistogram::group, 0U);
    low_bins[0] = sums[0];
    for (std::size_t key = 1; key < plain_key; key += MagnitudeHistogram::group) {
        add_pairs(low_bins, low_bins);
        add_pairs(sums + key, low_bins + MagnitudeHistogram::group / 2);
    }
}

std::uint64_t widen_blocks(const std::uint32_t* HWY_RESTRICT counts, std::size_t count,
                           std::size_t first_block, std::uint64_t* HWY_RESTRICT bins,
                           std::uint64_t* HWY_RESTRICT occupied) {
    constexpr std::size_t block = MagnitudeHistogram::block;
    const hn::CappedTag<std::uint64_t, block> wide;
    const hn::Rebind<std::uint32_t, decltype(wide)> narrow;
    const std::size_t lanes = hn::Lanes(wide);
    auto sums = hn::Zero(wide);
    for (std::size_t i = 0; i < count; i += block) {
        const std::size_t index = first_block + i / block;
        auto any = hn::Zero(wide);
        for (std::size_t k = 0; k < block; k += lanes) {
            const auto values = hn::PromoteTo(wide, hn::LoadU(narrow, counts + i + k));
            std::uint64_t* const target = bins + index * block + k;
            hn::StoreU(hn::Add(hn::LoadU(wide, target), values), wide, target);
            any = hn::Or(any, values);
            sums = hn::Add(sums, values);
        }
        const bool marked = !hn::AllTrue(wide, hn::Eq(any, hn::Zero(wide)));
        occupied[index / 64] |= static_cast<std::uint64_t>(marked) << (index % 64);
    }
    return hn::GetLane(hn::SumOfLanes(wide, sums));
}

void add_blocks(const std::uint64_t* blocks, const std::uint64_t* HWY_RESTRICT source,
                std::uint64_t* HWY_RESTRICT target) {
    constexpr std::size_t block = MagnitudeHistogram::block;
    for (std::size_t word = 0; word < MagnitudeHistogram::OccupiedBlocks().size(); ++word) {
        for (std::uint64_t bits = blocks[word]; bits != 0; bits &= bits - 1) {
            const std::size_t first = (word * 64 + hwy::Num0BitsBelowLS1Bit_Nonzero64(bits)) * block;
            for (std::size_t k = first; k < first + block; ++k) target[k] += source[k];
        }
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(scan_block);
HWY_EXPORT(index_block);
HWY_EXPORT(separate_block);
HWY_EXPORT(take_positive_keys);
HWY_EXPORT(take_negative_keys);
HWY_EXPORT(fold_low_keys);
HWY_EXPORT(widen_blocks);
HWY_EXPORT(add_blocks);

SlotOffsets slot_offsets(int positive_key_exponent, int negative_key_exponent) {
    const auto lowest = [](int exponent) { return (exponent - key_binades + 127) * 512; };
    return {-32768 + 1 - lowest(positive_key_exponent), 32767 + lowest(negative_key_exponent)};
}

BlockScan scan_block(const float* elements, std::size_t count) {
    return HWY_DYNAMIC_DISPATCH(scan_block)(elements, count);
}

BlockScan index_block(const float* elements, std::size_t count, SlotOffsets offsets, std::uint16_t* out) {
    return HWY_DYNAMIC_DISPATCH(index_block)(elements, count, offsets, out);
}

std::size_t separate_block(const float* elements, std::size_t count, MaskLimits limits,
                           TensorStatistics& statistics, float* ordinary) {
    return HWY_DYNAMIC_DISPATCH(separate_block)(elements, count, limits, statistics, ordinary);
}

void take_positive_keys(std::uint16_t* first, std::uint16_t* second, std::size_t keys, std::uint32_t* sums) {
    HWY_DYNAMIC_DISPATCH(take_positive_keys)(first, second, keys, sums);
}

void take_negative_keys(std::uint16_t* first, std::uint16_t* second, std::size_t keys, std::uint32_t* sums) {
    HWY_DYNAMIC_DISPATCH(take_negative_keys)(first, second, keys, sums);
}

void fold_low_keys(const std::uint32_t* sums, std::size_t plain_key, std::uint32_t* low_bins) {
    HWY_DYNAMIC_DISPATCH(fold_low_keys)(sums, plain_key, low_bins);
}

std::uint64_t widen_blocks(std::span<const std::uint32_t> counts, std::size_t first_block,
                           std::uint64_t* bins, MagnitudeHistogram::OccupiedBlocks& occupied) {
    return HWY_DYNAMIC_DISPATCH(widen_blocks)(counts.data(), counts.size(), first_block, bins,
                                              occupied.data());
}

void add_blocks(const MagnitudeHistogram::OccupiedBlocks& blocks, const std::uint64_t* source,
                std::uint64_t* target) {
    HWY_DYNAMIC_DISPATCH(add_blocks)(blocks.data(), source, target);
}

}  // namespace qcalib
#endif  // HWY_ONCE
