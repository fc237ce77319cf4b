#include "statistics/block_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
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

constexpr std::uint32_t infinity_bits = 0x7f800000U;
constexpr std::int32_t least_normal = 0x00800000;
constexpr std::size_t block = MagnitudeHistogram::block;

HWY_INLINE std::uint32_t bits_at(const float* elements, std::size_t i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const std::byte*>(elements) + i * sizeof bits, sizeof bits);
    return bits;
}

HWY_INLINE bool is_zero(std::uint32_t bits) {
    return (bits & 0x7fffffffU) < static_cast<std::uint32_t>(least_normal);
}

HWY_INLINE void take_element(std::uint32_t bits, BlockScan& scan) {
    scan.greatest = std::max(scan.greatest, static_cast<std::int32_t>(bits));
    scan.least_bits = std::min(scan.least_bits, bits);
    scan.greatest_bits = std::max(scan.greatest_bits, bits);
}

// The elements from `begin` on, one by one: a block's tail.
HWY_INLINE void scan_tail(const float* elements, std::size_t begin, std::size_t count, BlockScan& scan) {
    for (std::size_t i = begin; i < count; ++i) {
        const std::uint32_t bits = bits_at(elements, i);
        take_element(bits, scan);
        scan.nonzero += is_zero(bits) ? 0 : 1;
    }
}

HWY_INLINE std::uint16_t slot_of(std::uint32_t bits, SideExponents exponents) {
    const bool negative = bits >> 31 != 0;
    const int exponent = negative ? exponents.negative : exponents.positive;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (static_cast<int>(magnitude >> 23) - 127 >= exponent) return 0;
    const std::size_t bin = MagnitudeHistogram::bin_of(std::bit_cast<float>(magnitude), exponent);
    return static_cast<std::uint16_t>(bin + (negative ? first_negative_slot : 0));
}

HWY_INLINE std::uint16_t* index_tail(const float* elements, std::size_t begin, std::size_t count,
                                     SideExponents exponents, std::uint16_t* out, BlockScan& scan) {
    for (std::size_t i = begin; i < count; ++i) {
        const std::uint32_t bits = bits_at(elements, i);
        take_element(bits, scan);
        if (!is_zero(bits)) *out++ = slot_of(bits, exponents);
    }
    return out;
}

#if HWY_TARGET != HWY_SCALAR

using Words = hn::ScalableTag<std::int32_t>;
using Unsigned = hn::ScalableTag<std::uint32_t>;
using Floats = hn::ScalableTag<float>;
using Halves = hn::Repartition<std::int16_t, Words>;
using WordVector = hn::Vec<Words>;
using HalfVector = hn::Vec<Halves>;

HWY_INLINE WordVector load_words(const float* elements, std::size_t i) {
    return hn::LoadU(Words(), reinterpret_cast<const std::int32_t*>(elements) + i);
}

// A BlockScan's extremes, lane by lane.
struct LaneExtremes {
    WordVector greatest;
    hn::Vec<Unsigned> least_bits;
    hn::Vec<Unsigned> greatest_bits;

    HWY_INLINE LaneExtremes()  // written out: implicit members are not compiled for the target
        : greatest(hn::Set(Words(), INT32_MIN)),
          least_bits(hn::Set(Unsigned(), UINT32_MAX)),
          greatest_bits(hn::Zero(Unsigned())) {}
    HWY_INLINE void take(WordVector value) {
        const auto bits = hn::BitCast(Unsigned(), value);
        greatest = hn::Max(greatest, value);
        least_bits = hn::Min(least_bits, bits);
        greatest_bits = hn::Max(greatest_bits, bits);
    }
    HWY_INLINE void finish(BlockScan& scan) const {
        scan.greatest = hn::GetLane(hn::MaxOfLanes(Words(), greatest));
        scan.least_bits = hn::GetLane(hn::MinOfLanes(Unsigned(), least_bits));
        scan.greatest_bits = hn::GetLane(hn::MaxOfLanes(Unsigned(), greatest_bits));
    }
};

// What makes slots of elements. `pair` takes two vectors of elements; the slots come in the order in which
// ReorderDemote2To puts the lanes.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
struct Indexer {
    hn::Vec<Floats> positive;  // 2^(-E-7)
    hn::Vec<Floats> negative;

    HWY_INLINE explicit Indexer(SideExponents exponents)
        : positive(hn::Set(Floats(), scale_of(exponents.positive))),
          negative(hn::Set(Floats(), scale_of(exponents.negative))) {}

    static HWY_INLINE float scale_of(int exponent) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(127 - exponent - 7) << 23);
    }
    HWY_INLINE hn::Vec<Floats> scaled(WordVector value) const {
        const auto number = hn::BitCast(Floats(), value);
#if HWY_TARGET <= HWY_AVX3
        return {_mm512_mul_ps(
            number.raw, _mm512_mask_mov_ps(positive.raw, _mm512_movepi32_mask(value.raw), negative.raw))};
#else
        return {_mm256_mul_ps(number.raw, _mm256_blendv_ps(positive.raw, negative.raw, number.raw))};
#endif
    }
    HWY_INLINE HalfVector pair(WordVector a, WordVector b) const {
#if HWY_TARGET <= HWY_AVX3
        const __m256i low = _mm512_cvtps_ph(scaled(a).raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        const __m256i high = _mm512_cvtps_ph(scaled(b).raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        return {_mm512_srli_epi16(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1), 1)};
#else
        const __m128i low = _mm256_cvtps_ph(scaled(a).raw, _MM_FROUND_TO_ZERO);
        const __m128i high = _mm256_cvtps_ph(scaled(b).raw, _MM_FROUND_TO_ZERO);
        const __m256i both = _mm256_set_m128i(_mm_unpackhi_epi64(low, high), _mm_unpacklo_epi64(low, high));
        return {_mm256_srli_epi16(both, 1)};
#endif
    }
};
#else
struct Indexer {
    hn::Vec<Floats> positive;  // 2^-E
    hn::Vec<Floats> negative;
    WordVector positive_offset;  // from the top bits to the bin, in the binades above
    WordVector negative_offset;

    HWY_INLINE explicit Indexer(SideExponents exponents)
        : positive(hn::Set(Floats(), scale_of(exponents.positive))),
          negative(hn::Set(Floats(), scale_of(exponents.negative))),
          positive_offset(hn::Set(Words(), offset_of(exponents.positive))),
          negative_offset(hn::Set(Words(), offset_of(exponents.negative))) {}

    static HWY_INLINE float scale_of(int exponent) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(127 - exponent) << 23);
    }
    static HWY_INLINE std::int32_t offset_of(int exponent) { return (exponent - 7 + 126) * 512; }
    HWY_INLINE WordVector slots(WordVector value) const {
        const Words words;
        const auto is_negative = hn::Lt(value, hn::Zero(words));
        const auto magnitude = hn::And(value, hn::Set(words, 0x7fffffff));
        const auto scale = hn::IfThenElse(hn::RebindMask(Floats(), is_negative), negative, positive);
        const auto part = hn::Mul(hn::BitCast(Floats(), magnitude), scale);
        const auto equal = hn::ConvertTo(words, hn::Mul(part, hn::Set(Floats(), 0x1p16F)));
        const auto above = hn::Sub(hn::ShiftRight<14>(magnitude),
                                   hn::IfThenElse(is_negative, negative_offset, positive_offset));
        const auto bin = hn::IfThenElse(hn::Gt(above, hn::Set(words, 511)), above, equal);
        return hn::Add(bin, hn::IfThenElseZero(is_negative, hn::Set(words, first_negative_slot)));
    }
    HWY_INLINE HalfVector pair(WordVector a, WordVector b) const {
        return hn::ReorderDemote2To(Halves(), slots(a), slots(b));
    }
};
#endif

// True where an element of the two vectors is neither zero nor denormal, in the order of Indexer::pair.
HWY_INLINE hn::Mask<Halves> nonzero_mask(WordVector a, WordVector b) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    const __m512i exponent = _mm512_set1_epi32(0x7f800000);
    return hn::Mask<Halves>{
        _mm512_kunpackw(_mm512_test_epi32_mask(b.raw, exponent), _mm512_test_epi32_mask(a.raw, exponent))};
#else
    const Words words;
    const auto ones = hn::Set(words, 0x7fffffff);
    const auto zeros = hn::Set(words, least_normal - 1);
    const auto of_a = hn::VecFromMask(words, hn::Gt(hn::And(a, ones), zeros));
    const auto of_b = hn::VecFromMask(words, hn::Gt(hn::And(b, ones), zeros));
    return hn::MaskFromVec(hn::ReorderDemote2To(Halves(), of_a, of_b));
#endif
}

#if HWY_TARGET == HWY_AVX2
// The shuffle that moves the 16-bit lanes of these bits to the front.
constexpr auto lanes_to_front = [] {
    std::array<std::array<std::uint8_t, 16>, 256> shuffles = {};
    for (std::size_t bits = 0; bits < shuffles.size(); ++bits) {
        std::size_t to = 0;
        for (std::size_t lane = 0; lane < 8; ++lane) {
            if ((bits >> lane & 1U) == 0) continue;
            shuffles[bits][to++] = static_cast<std::uint8_t>(2 * lane);
            shuffles[bits][to++] = static_cast<std::uint8_t>(2 * lane + 1);
        }
    }
    return shuffles;
}();

HWY_INLINE std::size_t store_eight(__m128i values, std::uint32_t kept, std::uint16_t* out) {
    const __m128i shuffle = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes_to_front[kept].data()));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(values, shuffle));
    return hwy::PopCount(kept);
}
#endif

// Writes the lanes of `values` where `mask` is set; may write a whole vector. Answers their number.
HWY_INLINE std::size_t store_masked(HalfVector values, hn::Mask<Halves> mask, std::uint16_t* out) {
    const Halves halves;
#if HWY_TARGET == HWY_AVX3_DL
    hn::StoreU(hn::Compress(values, mask), halves, reinterpret_cast<std::int16_t*>(out));
    return hn::CountTrue(halves, mask);
#else
    if (hn::AllTrue(halves, mask)) {
        hn::StoreU(values, halves, reinterpret_cast<std::int16_t*>(out));
        return hn::Lanes(halves);
    }
#if HWY_TARGET == HWY_AVX2
    const __m128i low = _mm256_castsi256_si128(mask.raw);
    const __m128i high = _mm256_extracti128_si256(mask.raw, 1);
    const auto kept = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
    const std::size_t first = store_eight(_mm256_castsi256_si128(values.raw), kept & 0xffU, out);
    return first + store_eight(_mm256_extracti128_si256(values.raw, 1), kept >> 8, out + first);
#else
    return hn::CompressStore(values, mask, halves, reinterpret_cast<std::int16_t*>(out));
#endif
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
    const auto zeros = hn::Set(words, least_normal - 1);
    LaneExtremes extremes;
    auto negated = hn::Zero(words);  // minus the nonzero elements, lane by lane
    for (; i + lanes <= count; i += lanes) {
        const auto value = load_words(elements, i);
        extremes.take(value);
        negated = hn::Add(negated, hn::VecFromMask(words, hn::Gt(hn::And(value, ones), zeros)));
    }
    extremes.finish(scan);
    scan.nonzero = static_cast<std::size_t>(-std::int64_t{hn::GetLane(hn::SumOfLanes(words, negated))});
#endif
    scan_tail(elements, i, count, scan);
    return scan;
}

BlockScan index_block(const float* elements, std::size_t count, SideExponents exponents, std::uint16_t* out) {
    BlockScan scan;
    std::uint16_t* const first = out;
    std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const std::size_t lanes = hn::Lanes(Words());
    const Indexer indexer(exponents);
    LaneExtremes extremes;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        const auto a = load_words(elements, i);
        const auto b = load_words(elements, i + lanes);
        extremes.take(a);
        extremes.take(b);
        out += store_masked(indexer.pair(a, b), nonzero_mask(a, b), out);
    }
    extremes.finish(scan);
#endif
    out = index_tail(elements, i, count, exponents, out, scan);
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

std::uint64_t take_counts(std::uint16_t* HWY_RESTRICT first, std::uint16_t* HWY_RESTRICT second,
                          std::size_t blocks, std::uint32_t* HWY_RESTRICT counts,
                          std::uint64_t* HWY_RESTRICT occupied) {
    const hn::CappedTag<std::uint32_t, block> wide;
    const hn::Rebind<std::uint16_t, decltype(wide)> narrow;
    const std::size_t lanes = hn::Lanes(wide);
    auto sums = hn::Zero(wide);
    for (std::size_t index = 0; index < blocks;) {
        std::uint64_t marks = 0;
        for (std::uint64_t bit = 1; bit != 0 && index < blocks; bit <<= 1, ++index) {
            auto any = hn::Zero(wide);
            for (std::size_t i = index * block; i < (index + 1) * block; i += lanes) {
                const auto both = hn::Add(hn::LoadU(narrow, first + i), hn::LoadU(narrow, second + i));
                const auto values = hn::PromoteTo(wide, both);
                hn::StoreU(hn::Zero(narrow), narrow, first + i);
                hn::StoreU(hn::Zero(narrow), narrow, second + i);
                hn::StoreU(hn::Add(hn::LoadU(wide, counts + i), values), wide, counts + i);
                sums = hn::Add(sums, values);
                any = hn::Or(any, values);
            }
            marks |= hn::AllTrue(wide, hn::Eq(any, hn::Zero(wide))) ? 0 : bit;
        }
        occupied[(index - 1) / 64] |= marks;
    }
    return hn::GetLane(hn::SumOfLanes(wide, sums));
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
    for_each_run(
        blocks, [=](std::size_t first, std::size_t bins) HWY_ATTR { std::fill_n(counts + first, bins, 0U); });
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(scan_block);
HWY_EXPORT(index_block);
HWY_EXPORT(separate_block);
HWY_EXPORT(take_counts);
HWY_EXPORT(fold_groups);
HWY_EXPORT(add_run);
HWY_EXPORT(add_blocks);
HWY_EXPORT(clear_blocks);

void BlockScan::take_extremes(const BlockScan& other) {
    greatest = std::max(greatest, other.greatest);
    least_bits = std::min(least_bits, other.least_bits);
    greatest_bits = std::max(greatest_bits, other.greatest_bits);
}

BlockScan scan_block(const float* elements, std::size_t count) {
    return HWY_DYNAMIC_DISPATCH(scan_block)(elements, count);
}

BlockScan index_block(const float* elements, std::size_t count, SideExponents exponents, std::uint16_t* out) {
    return HWY_DYNAMIC_DISPATCH(index_block)(elements, count, exponents, out);
}

void count_slots(std::span<const std::uint16_t> of_elements, SlotTables& tables, const float* next) {
    std::uint16_t* const first = tables.counts.data();
    std::uint16_t* const second = first + SlotTables::second;
    const auto* const fetched = reinterpret_cast<const char*>(next);
    std::size_t i = 0;
    for (; i + 16 <= of_elements.size(); i += 16) {
        if (next != nullptr) __builtin_prefetch(fetched + i * sizeof(float));
        for (std::size_t k = 0; k < 16; k += 4) {
            std::uint64_t four = 0;
            std::memcpy(&four, &of_elements[i + k], sizeof four);
            ++first[four & 0xffff];
            ++second[(four >> 16) & 0xffff];
            ++first[(four >> 32) & 0xffff];
            ++second[four >> 48];
        }
    }
    for (; i < of_elements.size(); ++i) ++first[of_elements[i]];
}

std::size_t separate_block(const float* elements, std::size_t count, MaskLimits limits,
                           TensorStatistics& statistics, float* ordinary) {
    return HWY_DYNAMIC_DISPATCH(separate_block)(elements, count, limits, statistics, ordinary);
}

std::uint64_t take_counts(std::uint16_t* first, std::uint16_t* second, std::size_t blocks,
                          std::uint32_t* counts, MagnitudeHistogram::OccupiedBlocks& occupied) {
    return HWY_DYNAMIC_DISPATCH(take_counts)(first, second, blocks, counts, occupied.data());
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
