#include "runtime/kernels/softmax_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/softmax_rows.cpp"  // NOLINT: read by foreach_target.h
#include <hwy/foreach_target.h>
// clang-format off: must come after foreach_target.h
#include <hwy/highway.h>

#include "runtime/kernels/vector_math-inl.h"
// clang-format on

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {
namespace {

using V = FloatVector;

// Calls whole(i) for each whole vector of `count` floats and part(i, rest) for what is left.
template <typename Whole, typename Part>
HWY_INLINE void for_each_vector(std::size_t count, const Whole& whole, const Part& part) {
    const std::size_t lanes = hn::Lanes(FloatTag());
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) whole(i);
    if (i < count) part(i, count - i);
}

HWY_INLINE V greatest_of_row(const float* in, std::size_t count) {
    const FloatTag d;
    const V least = hn::Neg(hn::Inf(d));
    V greatest = least;
    for_each_vector(
        count, [&](std::size_t i) HWY_ATTR { greatest = hn::Max(greatest, hn::LoadU(d, in + i)); },
        [&](std::size_t i, std::size_t rest)
            HWY_ATTR { greatest = hn::Max(greatest, load_part_or(in + i, rest, least)); });
    return hn::MaxOfLanes(d, greatest);
}

// Sums e^(x - greatest) over a row; `keep` says whether the terms are written to `out`.
template <bool keep>
HWY_INLINE V sum_of_exponentials(const float* in, float* out, std::size_t count, V greatest) {
    const FloatTag d;
    V sum = hn::Zero(d);
    for_each_vector(
        count,
        [&](std::size_t i) HWY_ATTR {
            const V term = exp_up_to_89(hn::Sub(hn::LoadU(d, in + i), greatest));
            if constexpr (keep) hn::StoreU(term, d, out + i);
            sum = hn::Add(sum, term);
        },
        [&](std::size_t i, std::size_t rest) HWY_ATTR {
            const V term = exp_up_to_89(hn::Sub(load_part(in + i, rest), greatest));
            if constexpr (keep) store_part(term, out + i, rest);
            sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, rest), term));
        });
    return hn::SumOfLanes(d, sum);
}

template <bool logarithm>
void row_softmax(const float* in, float* out, std::size_t count) {
    const FloatTag d;
    const V greatest = greatest_of_row(in, count);
    const V sum = sum_of_exponentials<!logarithm>(in, out, count, greatest);
    if constexpr (logarithm) {
        const V shift = log_of(sum);
        for_each_vector(
            count,
            [&](std::size_t i)
                HWY_ATTR { hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, in + i), greatest), shift), d, out + i); },
            [&](std::size_t i, std::size_t rest) HWY_ATTR {
                store_part(hn::Sub(hn::Sub(load_part(in + i, rest), greatest), shift), out + i, rest);
            });
    } else {
        const V factor = hn::Div(constant(1.0F), sum);
        for_each_vector(
            count,
            [&](std::size_t i) HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, out + i), factor), d, out + i); },
            [&](std::size_t i, std::size_t rest)
                HWY_ATTR { store_part(hn::Mul(load_part(out + i, rest), factor), out + i, rest); });
    }
}

// The same for a row of `vectors` vectors, the last of which may be a part: what is computed stays in
// registers.
template <std::size_t vectors>
HWY_INLINE void short_row_softmax(const float* in, float* out, std::size_t count) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    const std::size_t rest = count - (vectors - 1) * lanes;
    const V least = hn::Neg(hn::Inf(d));
    V terms[vectors];
    for (std::size_t i = 0; i + 1 < vectors; ++i) terms[i] = hn::LoadU(d, in + i * lanes);
    const float* last = in + (vectors - 1) * lanes;
    terms[vectors - 1] = rest == lanes ? hn::LoadU(d, last) : load_part_or(last, rest, least);
    V greatest = terms[0];
    for (std::size_t i = 1; i < vectors; ++i) greatest = hn::Max(greatest, terms[i]);
    greatest = hn::MaxOfLanes(d, greatest);
    V sum = hn::Zero(d);
    for (std::size_t i = 0; i < vectors; ++i) {
        terms[i] = exp_up_to_89(hn::Sub(terms[i], greatest));
        if (i + 1 == vectors && rest != lanes) terms[i] = hn::IfThenElseZero(hn::FirstN(d, rest), terms[i]);
        sum = hn::Add(sum, terms[i]);
    }
    const V factor = hn::Div(constant(1.0F), hn::SumOfLanes(d, sum));
    for (std::size_t i = 0; i + 1 < vectors; ++i) hn::StoreU(hn::Mul(terms[i], factor), d, out + i * lanes);
    const V end = hn::Mul(terms[vectors - 1], factor);
    float* to = out + (vectors - 1) * lanes;
    if (rest == lanes) {
        hn::StoreU(end, d, to);
    } else {
        store_part(end, to, rest);
    }
}

template <std::size_t vectors>
void short_rows_softmax(const float* in, float* out, std::size_t rows, std::size_t count) {
    for (std::size_t i = 0; i < rows; ++i) short_row_softmax<vectors>(in + i * count, out + i * count, count);
}

// One vector of neighbouring columns, each a softmax along `axis` rows that lie `step` floats apart. `Access`
// loads and stores a whole vector or a part of one.
template <bool logarithm, typename Access>
HWY_INLINE void column_softmax(const float* in, float* out, std::size_t axis, std::size_t step,
                               const Access& access) {
    const FloatTag d;
    V greatest = hn::Neg(hn::Inf(d));
    for (std::size_t k = 0; k < axis; ++k) greatest = hn::Max(greatest, access.load(in + k * step));
    V sum = hn::Zero(d);
    for (std::size_t k = 0; k < axis; ++k) {
        const V term = exp_up_to_89(hn::Sub(access.load(in + k * step), greatest));
        if constexpr (!logarithm) access.store(term, out + k * step);
        sum = hn::Add(sum, term);
    }
    const V last = logarithm ? log_of(sum) : hn::Div(constant(1.0F), sum);
    for (std::size_t k = 0; k < axis; ++k) {
        if constexpr (logarithm) {
            access.store(hn::Sub(hn::Sub(access.load(in + k * step), greatest), last), out + k * step);
        } else {
            access.store(hn::Mul(access.load(out + k * step), last), out + k * step);
        }
    }
}

struct WholeAccess {
    HWY_INLINE V load(const float* from) const { return hn::LoadU(FloatTag(), from); }
    HWY_INLINE void store(V value, float* to) const { hn::StoreU(value, FloatTag(), to); }
};

struct PartAccess {
    std::size_t count;
    HWY_INLINE V load(const float* from) const { return load_part(from, count); }
    HWY_INLINE void store(V value, float* to) const { store_part(value, to, count); }
};

// One float of each of a vector's worth of rows that lie `count` floats apart.
struct RowsAccess {
    hn::Vec<hn::Rebind<std::int32_t, FloatTag>> offsets;
    explicit HWY_INLINE RowsAccess(std::size_t count)
        : offsets(hn::Mul(hn::Iota(hn::Rebind<std::int32_t, FloatTag>(), 0),
                          hn::Set(hn::Rebind<std::int32_t, FloatTag>(), static_cast<std::int32_t>(count)))) {}
    HWY_INLINE V load(const float* from) const { return hn::GatherIndex(FloatTag(), from, offsets); }
    HWY_INLINE void store(V value, float* to) const { hn::ScatterIndex(value, FloatTag(), to, offsets); }
};

template <bool logarithm>
void row_by_row(const float* in, float* out, std::size_t rows, std::size_t count) {
    for (std::size_t i = 0; i < rows; ++i) row_softmax<logarithm>(in + i * count, out + i * count, count);
}

// Rows of at most half a vector side by side, those of up to four vectors in registers.
template <bool logarithm>
void rows_softmax(const float* in, float* out, std::size_t rows, std::size_t count) {
    const std::size_t lanes = hn::Lanes(FloatTag());
    if (2 * count <= lanes) {
        std::size_t i = 0;
        for (; i + lanes <= rows; i += lanes) {
            column_softmax<logarithm>(in + i * count, out + i * count, count, 1, RowsAccess(count));
        }
        return row_by_row<logarithm>(in + i * count, out + i * count, rows - i, count);
    }
    if constexpr (!logarithm) {
        switch ((count + lanes - 1) / lanes) {
            case 1:
                return short_rows_softmax<1>(in, out, rows, count);
            case 2:
                return short_rows_softmax<2>(in, out, rows, count);
            case 3:
                return short_rows_softmax<3>(in, out, rows, count);
            case 4:
                return short_rows_softmax<4>(in, out, rows, count);
            default:
                break;
        }
    }
    row_by_row<logarithm>(in, out, rows, count);
}

template <bool logarithm>
void softmax(const float* in, float* out, const AxisBlocks& blocks) {
    if (blocks.inner == 1) return rows_softmax<logarithm>(in, out, blocks.outer, blocks.axis);
    for (std::size_t i = 0; i < blocks.outer; ++i) {
        const std::size_t start = i * blocks.axis * blocks.inner;
        for_each_vector(
            blocks.inner,
            [&](std::size_t j) HWY_ATTR {
                column_softmax<logarithm>(in + start + j, out + start + j, blocks.axis, blocks.inner,
                                          WholeAccess{});
            },
            [&](std::size_t j, std::size_t rest) HWY_ATTR {
                column_softmax<logarithm>(in + start + j, out + start + j, blocks.axis, blocks.inner,
                                          PartAccess{rest});
            });
    }
}

}  // namespace

// NOLINTNEXTLINE(misc-use-internal-linkage): reached through the table that HWY_EXPORT makes
SoftmaxFunction softmax_for(bool logarithm) {
    return logarithm ? &softmax<true> : &softmax<false>;
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(softmax_for);

SoftmaxFunction fast_softmax(bool logarithm) {
    return HWY_DYNAMIC_DISPATCH(softmax_for)(logarithm);
}

}  // namespace qcalib
#endif
