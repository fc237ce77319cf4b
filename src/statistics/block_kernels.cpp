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

// What makes slots of elements; faster where both sides have one E. `pair` takes two vectors of elements; the
// slots come in the order in which ReorderDemote2To puts the lanes.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
template <bool same_exponent>
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
        if constexpr (same_exponent) return hn::Mul(number, positive);
#if HWY_TARGET <= HWY_AVX3
        const __mmask16 sign = _mm512_test_epi32_mask(value.raw, _mm512_set1_epi32(INT32_MIN));
        return {_mm512_mul_ps(number.raw, _mm512_mask_mov_ps(positive.raw, sign, negative.raw))};
#else
        return {_mm256_mul_ps(number.raw, _mm256_blendv_ps(positive.raw, negative.raw, number.raw))};
#endif
    }
    HWY_INLINE HalfVector pair(WordVector a, WordVector b) const {
#if HWY_TARGET <= HWY_AVX3
        const __m256i low = _mm512_cvtps_ph(scaled(a).raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        const __m256i high = _mm512_cvtps_ph(scaled(b).raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        return side_by_side({_mm512_srli_epi16(both, 1)});
#else
        const __m128i low = _mm256_cvtps_ph(scaled(a).raw, _MM_FROUND_TO_ZERO);
        const __m128i high = _mm256_cvtps_ph(scaled(b).raw, _MM_FROUND_TO_ZERO);
        const __m256i both = _mm256_set_m128i(_mm_unpackhi_epi64(low, high), _mm_unpacklo_epi64(low, high));
        return side_by_side({_mm256_srli_epi16(both, 1)});
#endif
    }
    // From float16's sign bit, here bit 14, to first_negative_slot.
    static HWY_INLINE HalfVector side_by_side(HalfVector slots) {
        const hn::Rebind<std::uint16_t, Halves> tag;
        const auto bits = hn::BitCast(tag, slots);
        const auto moved = hn::Sub(bits, hn::Set(tag, (1U << 14) - first_negative_slot));
        return hn::BitCast(Halves(), hn::Min(bits, moved));  // positive ones wrap around
    }
};
#else
template <bool same_exponent>
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

// True where a value has none of these bits.
HWY_INLINE hn::Mask<Words> lacks_bits(WordVector value, WordVector bits) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    return hn::Mask<Words>{_mm512_testn_epi32_mask(value.raw, bits.raw)};
#else
    return hn::Eq(hn::And(value, bits), hn::Zero(Words()));
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

BlockScan scan_greatest(const float* elements, std::size_t count) {
    BlockScan scan;
    std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const Words words;
    const std::size_t lanes = hn::Lanes(words);
    auto greatest = hn::Set(words, INT32_MIN);
    auto greatest_bits = hn::Zero(Unsigned());
    for (; i + lanes <= count; i += lanes) {
        const auto value = load_words(elements, i);
        greatest = hn::Max(greatest, value);
        greatest_bits = hn::Max(greatest_bits, hn::BitCast(Unsigned(), value));
    }
    scan.greatest = hn::GetLane(hn::MaxOfLanes(words, greatest));
    scan.greatest_bits = hn::GetLane(hn::MaxOfLanes(Unsigned(), greatest_bits));
#endif
    for (; i < count; ++i) take_element(bits_at(elements, i), scan);
    return scan;
}

#if HWY_TARGET != HWY_SCALAR
// The slots of all elements up to the last whole pair of vectors, and their extremes but least_bits;
// answers how many elements that is, or 0 where one is zero.
template <bool same_exponent>
HWY_INLINE std::size_t index_dense(const float* elements, std::size_t count,
                                   const Indexer<same_exponent>& indexer, std::uint16_t* out,
                                   BlockScan& scan) {
    const Words words;
    const std::size_t lanes = hn::Lanes(words);
    const auto exponent = hn::Set(words, static_cast<std::int32_t>(infinity_bits));
    auto greatest = hn::Set(words, INT32_MIN);
    auto greatest_bits = hn::Zero(Unsigned());
    auto zero = hn::FirstN(words, 0);
    std::size_t i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        const auto a = load_words(elements, i);
        const auto b = load_words(elements, i + lanes);
        greatest = hn::Max(hn::Max(greatest, a), b);
        greatest_bits =
            hn::Max(hn::Max(greatest_bits, hn::BitCast(Unsigned(), a)), hn::BitCast(Unsigned(), b));
        zero = hn::Or(zero, hn::Or(lacks_bits(a, exponent), lacks_bits(b, exponent)));
        hn::StoreU(indexer.pair(a, b), Halves(), reinterpret_cast<std::int16_t*>(out + i));
    }
    if (!hn::AllFalse(words, zero)) return 0;
    scan.least_bits = 0;  // below all: what comes after cannot make the block look constant
    scan.greatest = hn::GetLane(hn::MaxOfLanes(words, greatest));
    scan.greatest_bits = hn::GetLane(hn::MaxOfLanes(Unsigned(), greatest_bits));
    return i;
}
#endif

#if HWY_TARGET != HWY_SCALAR
// The slots of the elements that are not zero, up to the last whole pair of vectors; answers their end.
template <bool same_exponent>
HWY_INLINE std::uint16_t* index_sparse(const float* elements, std::size_t count,
                                       const Indexer<same_exponent>& indexer, std::uint16_t* out,
                                       BlockScan& scan) {
    const std::size_t lanes = hn::Lanes(Words());
    LaneExtremes extremes;
    for (std::size_t i = 0; i + 2 * lanes <= count; i += 2 * lanes) {
        const auto a = load_words(elements, i);
        const auto b = load_words(elements, i + lanes);
        extremes.take(a);
        extremes.take(b);
        out += store_masked(indexer.pair(a, b), nonzero_mask(a, b), out);
    }
    extremes.finish(scan);
    return out;
}

template <bool same_exponent>
HWY_INLINE std::uint16_t* index_pairs(const float* elements, std::size_t count, SideExponents exponents,
                                      bool dense, std::uint16_t* out, BlockScan& scan) {
    const Indexer<same_exponent> indexer(exponents);
    if (dense) {
        const std::size_t done = index_dense(elements, count, indexer, out, scan);
        if (done > 0) return out + done;
    }
    return index_sparse(elements, count, indexer, out, scan);
}
#endif

BlockScan index_block(const float* elements, std::size_t count, SideExponents exponents,
                      [[maybe_unused]] bool dense, std::uint16_t* out) {
    BlockScan scan;
    std::uint16_t* const first = out;
    std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    out = exponents.positive == exponents.negative
              ? index_pairs<true>(elements, count, exponents, dense, out, scan)
              : index_pairs<false>(elements, count, exponents, dense, out, scan);
    const std::size_t pair = 2 * hn::Lanes(Words());
    i = count / pair * pair;
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

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(scan_block);
HWY_EXPORT(scan_greatest);
HWY_EXPORT(index_block);
HWY_EXPORT(separate_block);

void BlockScan::take_extremes(const BlockScan& other) {
    greatest = std::max(greatest, other.greatest);
    least_bits = std::min(least_bits, other.least_bits);
    greatest_bits = std::max(greatest_bits, other.greatest_bits);
}

BlockScan scan_block(const float* elements, std::size_t count) {
    return HWY_DYNAMIC_DISPATCH(scan_block)(elements, count);
}

BlockScan scan_greatest(const float* elements, std::size_t count) {
    return HWY_DYNAMIC_DISPATCH(scan_greatest)(elements, count);
}

BlockScan index_block(const float* elements, std::size_t count, SideExponents exponents, bool dense,
                      std::uint16_t* out) {
    return HWY_DYNAMIC_DISPATCH(index_block)(elements, count, exponents, dense, out);
}

// Adds 1 by a load and a store of their own: a processor hands what was just stored to a plain load without
// delay, but not to an instruction that adds to memory, and neighbouring elements are often equal (7 times as
// fast there).
inline void count_one(std::uint32_t& count) {
    std::uint32_t value = count;
    __asm__("" : "+r"(value));
    count = value + 1;
}

void count_slots(std::span<const std::uint16_t> of_elements, std::uint32_t* counts, const float* next) {
    constexpr std::size_t of_line = 64 / sizeof(float);
    const auto* const fetched = reinterpret_cast<const char*>(next);
    std::size_t i = 0;
    for (; i + of_line <= of_elements.size(); i += of_line) {
        if (next != nullptr) __builtin_prefetch(fetched + i * sizeof(float));
        const std::uint16_t* const slots = &of_elements[i];
        for (std::size_t k = 0; k < of_line; ++k) count_one(counts[slots[k]]);
    }
    for (; i < of_elements.size(); ++i) count_one(counts[of_elements[i]]);
}

std::size_t separate_block(const float* elements, std::size_t count, MaskLimits limits,
                           TensorStatistics& statistics, float* ordinary) {
    return HWY_DYNAMIC_DISPATCH(separate_block)(elements, count, limits, statistics, ordinary);
}

}  // namespace qcalib
#endif  // HWY_ONCE
