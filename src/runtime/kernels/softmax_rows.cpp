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

template <bool logarithm>
void softmax(const float* in, float* out, const AxisBlocks& blocks) {
    if (blocks.inner == 1) {
        for (std::size_t i = 0; i < blocks.outer; ++i) {
            row_softmax<logarithm>(in + i * blocks.axis, out + i * blocks.axis, blocks.axis);
        }
        return;
    }
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
