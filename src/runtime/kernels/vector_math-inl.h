// Float32 functions on Highway vectors, included once per target by the *_rows.cpp files. All answer NaN for
// NaN. Polynomials are least-maximum-error fits made for this file; the error bounds are checked by
// elementwise_unary_test.
#if defined(QCALIB_RUNTIME_KERNELS_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QCALIB_RUNTIME_KERNELS_VECTOR_MATH_INL_H
#undef QCALIB_RUNTIME_KERNELS_VECTOR_MATH_INL_H
#else
#define QCALIB_RUNTIME_KERNELS_VECTOR_MATH_INL_H
#endif

#include <cstddef>
#include <limits>

#include <hwy/highway.h>

#include "runtime/kernels/erf_table.h"

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;

HWY_INLINE FloatVector constant(float value) {
    return hn::Set(FloatTag(), value);
}

// The first `count` (below a whole vector) floats, zeros above; reads nothing beyond them.
HWY_INLINE FloatVector load_part(const float* from, std::size_t count) {
    const FloatTag d;
#if HWY_TARGET <= HWY_AVX2
    return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#else
    HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
    for (std::size_t i = 0; i < count; ++i) lanes[i] = from[i];
    return hn::Load(d, lanes);
#endif
}

// The same with `otherwise` above.
HWY_INLINE FloatVector load_part_or(const float* from, std::size_t count, FloatVector otherwise) {
    return hn::IfThenElse(hn::FirstN(FloatTag(), count), load_part(from, count), otherwise);
}

// Stores the first `count` (below a whole vector) floats; touches nothing beyond them.
HWY_INLINE void store_part(FloatVector value, float* to, std::size_t count) {
    const FloatTag d;
#if HWY_TARGET <= HWY_AVX2
    hn::BlendedStore(value, hn::FirstN(d, count), d, to);
#else
    HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
    hn::Store(value, d, lanes);
    for (std::size_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

// max(x, low) and min(x, high) that keep a NaN in `x`: x86 answers the second operand where either is NaN,
// Arm the NaN.
HWY_INLINE FloatVector at_least(FloatVector low, FloatVector x) {
    return hn::Max(low, x);
}
HWY_INLINE FloatVector at_most(FloatVector high, FloatVector x) {
    return hn::Min(high, x);
}

// p * 2^n for whole n in [-252, 252].
HWY_INLINE FloatVector times_power_of_two(FloatVector p, FloatVector n) {
#if HWY_TARGET <= HWY_AVX3
    return FloatVector{_mm512_scalef_ps(p.raw, n.raw)};
#else
    const hn::Rebind<std::int32_t, FloatTag> di;
    const FloatTag d;
    const auto whole = hn::ConvertTo(di, n);
    const auto half = hn::ShiftRight<1>(whole);
    const auto bias = hn::Set(di, 127);
    const auto first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
    const auto second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
    return hn::Mul(hn::Mul(p, first), second);
#endif
}

// The greater and the less of the two; NaN where either is.
HWY_INLINE FloatVector maximum_of(FloatVector a, FloatVector b) {
    return hn::IfThenElse(hn::IsNaN(a), a, at_least(a, b));
}
HWY_INLINE FloatVector minimum_of(FloatVector a, FloatVector b) {
    return hn::IfThenElse(hn::IsNaN(a), a, at_most(a, b));
}

// 2^n e^r with x = n ln 2 + r, |r| <= ln 2 / 2 and ln 2 in two parts (Cody and Waite). Within 2 ulp; 0 for
// -Inf.
HWY_INLINE FloatVector exp_up_to_89(FloatVector x) {
    x = at_least(constant(-104.0F), x);
    // Adding 3/2 2^23 leaves no bits behind the point: the nearest whole number.
    const FloatVector shift = constant(0x1.8p23F);
    const FloatVector n = hn::Sub(hn::MulAdd(x, constant(1.44269504088896341F), shift), shift);
    FloatVector r = hn::NegMulAdd(n, constant(0.693145751953125F), x);
    r = hn::NegMulAdd(n, constant(1.42860682030941723e-6F), r);
    const FloatVector square = hn::Mul(r, r);  // pairs of terms side by side: a shorter chain than Horner's
    const FloatVector low = hn::MulAdd(constant(0.166665183F), r, constant(0.5000000096F));
    FloatVector high = hn::MulAdd(constant(0.0083689537F), r, constant(0.0416662042F));
    high = hn::MulAdd(constant(0.00139506F), square, high);
    const FloatVector p = hn::MulAdd(hn::MulAdd(high, square, low), square, r);
    return times_power_of_two(hn::Add(p, constant(1.0F)), n);
}

HWY_INLINE FloatVector exp_of(FloatVector x) {
    return exp_up_to_89(at_most(constant(89.0F), x));
}

// a / b for b in [1, 2^60].
HWY_INLINE FloatVector quotient(FloatVector a, FloatVector b) {
#if HWY_TARGET <= HWY_AVX3
    // A 14-bit reciprocal and one Newton step on the quotient.
    const FloatVector r = hn::ApproximateReciprocal(b);
    const FloatVector q = hn::Mul(a, r);
    return hn::MulAdd(hn::NegMulAdd(b, q, a), r, q);
#else
    return hn::Div(a, b);
#endif
}

// 1 / (1 + e^-x), by e^-|x| so that nothing overflows.
HWY_INLINE FloatVector sigmoid_of(FloatVector x) {
    const FloatTag d;
    const FloatVector e = exp_up_to_89(hn::Or(x, hn::SignBit(d)));
    const FloatVector numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, constant(1.0F));
    return quotient(numerator, hn::Add(e, constant(1.0F)));
}

// x + x^3 P(x^2) up to 5/8, beyond it (1 - e^-2|x|) / (1 + e^-2|x|).
HWY_INLINE FloatVector tanh_of(FloatVector x) {
    const FloatVector magnitude = hn::Abs(x);
    const FloatVector square = hn::Mul(x, x);
    const FloatVector fourth = hn::Mul(square, square);
    const FloatVector low = hn::MulAdd(constant(0.1333320976F), square, constant(-0.3333333091F));
    const FloatVector middle = hn::MulAdd(constant(0.0217029671F), square, constant(-0.0539472043F));
    const FloatVector high = hn::MulAdd(constant(0.0021475369F), square, constant(-0.0081826739F));
    const FloatVector p = hn::MulAdd(hn::MulAdd(high, fourth, middle), fourth, low);
    const FloatVector small = hn::MulAdd(hn::Mul(p, square), x, x);
    const FloatVector e = exp_up_to_89(hn::Mul(magnitude, constant(-2.0F)));
    const FloatVector large = quotient(hn::Sub(constant(1.0F), e), hn::Add(e, constant(1.0F)));
    return hn::IfThenElse(hn::Lt(magnitude, constant(0.625F)), small, hn::CopySign(large, x));
}

// The error function. Made once per row, so that its table stays in registers.
class Erf {
  public:
#if HWY_TARGET <= HWY_AVX3
    // ErfTable: 32 polynomials of degree 4, their coefficients picked by a permutation of two registers.
    Erf() {
        for (std::size_t i = 0; i < 5; ++i) {
            low_[i] = _mm512_loadu_ps(erf_table().coefficients[i].data());
            high_[i] = _mm512_loadu_ps(erf_table().coefficients[i].data() + 16);
        }
    }

    HWY_INLINE FloatVector operator()(FloatVector x) const {
        const FloatVector magnitude = at_most(constant(ErfTable::end), hn::Abs(x));
        const FloatVector scaled = hn::Mul(magnitude, constant(1.0F / ErfTable::width));
        const __m512i segment = _mm512_min_epu32(_mm512_cvttps_epi32(scaled.raw), _mm512_set1_epi32(31));
        const FloatVector t = hn::Sub(scaled, FloatVector{_mm512_cvtepi32_ps(segment)});
        FloatVector p = pick(4, segment);
        for (std::size_t i = 4; i-- > 0;) p = hn::MulAdd(p, t, pick(i, segment));
        return hn::CopySign(p, x);
    }

  private:
    HWY_INLINE FloatVector pick(std::size_t i, __m512i segment) const {
        return FloatVector{_mm512_permutex2var_ps(low_[i], segment, high_[i])};
    }

    __m512 low_[5];
    __m512 high_[5];
#else
    // x P(x^2) below 1, beyond it 1 - e^-Q(|x|), where Q fits -log(erfc).
    HWY_INLINE FloatVector operator()(FloatVector x) const {
        const FloatVector magnitude = at_most(constant(4.0F), hn::Abs(x));
        const FloatVector square = hn::Mul(magnitude, magnitude);
        FloatVector p = constant(7.8538541580e-05F);
        p = hn::MulAdd(p, square, constant(-8.0101913598e-04F));
        p = hn::MulAdd(p, square, constant(5.1883274137e-03F));
        p = hn::MulAdd(p, square, constant(-2.6853811780e-02F));
        p = hn::MulAdd(p, square, constant(1.1283585144e-01F));
        p = hn::MulAdd(p, square, constant(-3.7612625824e-01F));
        p = hn::MulAdd(p, square, constant(1.1283791657e+00F));
        FloatVector q = constant(-1.8557489330e-04F);
        q = hn::MulAdd(q, magnitude, constant(2.9396157365e-03F));
        q = hn::MulAdd(q, magnitude, constant(-2.1805351159e-02F));
        q = hn::MulAdd(q, magnitude, constant(1.0303743553e-01F));
        q = hn::MulAdd(q, magnitude, constant(6.3822560236e-01F));
        q = hn::MulAdd(q, magnitude, constant(1.1270400800e+00F));
        q = hn::MulAdd(q, magnitude, constant(3.5370892675e-04F));
        const FloatVector large = hn::Sub(constant(1.0F), exp_up_to_89(hn::Neg(q)));
        const FloatVector result =
            hn::IfThenElse(hn::Lt(magnitude, constant(1.0F)), hn::Mul(p, magnitude), large);
        return hn::CopySign(result, x);
    }
#endif
};

// log(m) + e ln 2 with x = m 2^e, m in [sqrt(1/2), sqrt(2)): log(m) = 2 atanh(s), s = (m - 1) / (m + 1).
// -Inf for 0, NaN below.
HWY_INLINE FloatVector log_of(FloatVector x) {
    const FloatTag d;
    const hn::Rebind<std::int32_t, FloatTag> di;
    const auto denormal = hn::Lt(x, constant(std::numeric_limits<float>::min()));
    const FloatVector normal = hn::IfThenElse(denormal, hn::Mul(x, constant(0x1p24F)), x);
    const auto root = hn::Set(di, 0x3f3504f3);  // the bits of sqrt(1/2)
    const auto bits = hn::Sub(hn::BitCast(di, normal), root);
    const auto exponent = hn::ShiftRight<23>(bits);
    const FloatVector m = hn::BitCast(d, hn::Add(hn::And(bits, hn::Set(di, 0x7fffff)), root));
    const FloatVector e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(denormal, constant(24.0F)));
    const FloatVector f = hn::Sub(m, constant(1.0F));
    const FloatVector s = hn::Div(f, hn::Add(f, constant(2.0F)));
    const FloatVector z = hn::Mul(s, s);
    FloatVector p = constant(2.0F / 11);
    p = hn::MulAdd(p, z, constant(2.0F / 9));
    p = hn::MulAdd(p, z, constant(2.0F / 7));
    p = hn::MulAdd(p, z, constant(2.0F / 5));
    p = hn::MulAdd(p, z, constant(2.0F / 3));
    // 2 s = f - s f exactly, so log(m) = f - s (f - z p): the leading term is not rounded.
    const FloatVector low = hn::MulAdd(e, constant(9.0580006145e-6F), hn::Mul(hn::Mul(s, z), p));
    FloatVector result = hn::Sub(f, hn::Sub(hn::Mul(s, f), low));
    result = hn::MulAdd(e, constant(0.69313812256F), result);
    const FloatVector infinity = hn::Inf(d);
    result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
    result = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::NaN(d), result);
    result = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
    return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// log(1 + x) for x in [0, 1]: log(u) x / (u - 1) with u = 1 + x rounded takes the rounding back (Goldberg,
// "What every computer scientist should know about floating-point arithmetic", theorem 4).
HWY_INLINE FloatVector log1p_of(FloatVector x) {
    const FloatVector one = constant(1.0F);
    const FloatVector u = hn::Add(x, one);
    const FloatVector rounded = hn::Sub(u, one);
    const auto tiny = hn::Eq(rounded, hn::Zero(FloatTag()));
    const FloatVector ratio = hn::Div(x, hn::IfThenElse(tiny, one, rounded));
    return hn::IfThenElse(tiny, x, hn::Mul(log_of(u), ratio));
}

// e^x - 1 for x <= 0: a polynomial near 0, where the difference would cancel.
HWY_INLINE FloatVector expm1_of(FloatVector x) {
    FloatVector p = constant(1.0F / 5040);
    p = hn::MulAdd(p, x, constant(1.0F / 720));
    p = hn::MulAdd(p, x, constant(1.0F / 120));
    p = hn::MulAdd(p, x, constant(1.0F / 24));
    p = hn::MulAdd(p, x, constant(1.0F / 6));
    p = hn::MulAdd(p, x, constant(0.5F));
    const FloatVector small = hn::MulAdd(hn::Mul(x, x), p, x);
    const FloatVector large = hn::Sub(exp_of(x), constant(1.0F));
    return hn::IfThenElse(hn::Gt(x, constant(-0.5F)), small, large);
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#endif
