#include "runtime/kernels/elementwise_unary_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise_unary_rows.cpp"  // NOLINT: read by foreach_target.h
#include <hwy/foreach_target.h>
// clang-format off: must come after foreach_target.h
#include <hwy/highway.h>

#include "runtime/kernels/vector_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {
namespace {

// One class per function: made from the parameters before a row, then applied to each vector.
using V = FloatVector;

template <V (*function)(V)>
struct Plain {
    explicit Plain(const UnaryParameters& /*parameters*/) {}
    HWY_INLINE V operator()(V x) const { return function(x); }
};

struct WithParameters {
    explicit WithParameters(const UnaryParameters& parameters)
        : a(constant(static_cast<float>(parameters.a))), b(constant(static_cast<float>(parameters.b))) {}
    V a;
    V b;
};

HWY_INLINE V zero() {
    return hn::Zero(FloatTag());
}
HWY_INLINE V one() {
    return constant(1.0F);
}

HWY_INLINE V relu_of(V x) {
    return at_least(zero(), x);
}
HWY_INLINE V swish_of(V x) {
    return hn::Mul(x, sigmoid_of(x));
}
HWY_INLINE V softsign_of(V x) {
    return hn::Div(x, hn::Add(one(), hn::Abs(x)));
}
HWY_INLINE V sqrt_of(V x) {
    return hn::Sqrt(x);
}
HWY_INLINE V reciprocal_of(V x) {
    return hn::Div(one(), x);
}
HWY_INLINE V negative_of(V x) {
    return hn::Neg(x);
}
HWY_INLINE V absolute_of(V x) {
    return hn::Abs(x);
}
HWY_INLINE V floor_of(V x) {
    return hn::Floor(x);
}
HWY_INLINE V ceil_of(V x) {
    return hn::Ceil(x);
}
HWY_INLINE V round_of(V x) {
    return hn::Round(x);
}

// max(x, 0) + log(1 + e^-|x|)
HWY_INLINE V softplus_of(V x) {
    const V tail = log1p_of(exp_up_to_89(hn::Or(x, hn::SignBit(FloatTag()))));
    return hn::Add(at_least(zero(), x), tail);
}

HWY_INLINE V hard_swish_of(V x) {
    const V gate = hn::MulAdd(x, constant(1.0F / 6), constant(0.5F));
    return hn::Mul(x, at_most(one(), at_least(zero(), gate)));
}

// x tanh(log(1 + e^x)) = x w / (w + 2) with w = e^x (e^x + 2); past 20 the quotient is 1.
HWY_INLINE V mish_of(V x) {
    const V e = exp_of(at_most(constant(20.0F), x));
    const V w = hn::Mul(e, hn::Add(e, constant(2.0F)));
    return hn::Mul(x, hn::Div(w, hn::Add(w, constant(2.0F))));
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
HWY_INLINE V gelu_tanh_of(V x) {
    const V cube = hn::Mul(hn::Mul(x, x), x);
    const V inner = hn::Mul(constant(0.7978845608F), hn::MulAdd(cube, constant(0.044715F), x));
    return hn::Mul(hn::Mul(constant(0.5F), x), hn::Add(one(), tanh_of(inner)));
}

struct ErfFunction {
    explicit ErfFunction(const UnaryParameters& /*parameters*/) {}
    HWY_INLINE V operator()(V x) const { return erf(x); }
    Erf erf;
};

// 0.5 x (1 + erf(x / sqrt(2)))
struct Gelu : ErfFunction {
    using ErfFunction::ErfFunction;
    HWY_INLINE V operator()(V x) const {
        const V inner = erf(hn::Mul(x, constant(0.7071067812F)));
        return hn::Mul(hn::Mul(constant(0.5F), x), hn::Add(one(), inner));
    }
};

struct Clip : WithParameters {
    using WithParameters::WithParameters;
    HWY_INLINE V operator()(V x) const { return at_most(b, at_least(a, x)); }
};

struct LeakyRelu : WithParameters {
    using WithParameters::WithParameters;
    HWY_INLINE V operator()(V x) const { return hn::IfThenElse(hn::Lt(x, zero()), hn::Mul(a, x), x); }
};

struct ThresholdedRelu : WithParameters {
    using WithParameters::WithParameters;
    HWY_INLINE V operator()(V x) const { return hn::IfThenZeroElse(hn::Le(x, a), x); }
};

struct HardSigmoid : WithParameters {
    using WithParameters::WithParameters;
    HWY_INLINE V operator()(V x) const { return at_most(one(), at_least(zero(), hn::MulAdd(a, x, b))); }
};

// a (e^x - 1) below zero
struct Elu : WithParameters {
    using WithParameters::WithParameters;
    HWY_INLINE V operator()(V x) const {
        return hn::IfThenElse(hn::Lt(x, zero()), hn::Mul(a, expm1_of(x)), x);
    }
};

// a (e^(x / a) - 1) where x / a is below zero
struct Celu : WithParameters {
    using WithParameters::WithParameters;
    HWY_INLINE V operator()(V x) const {
        const V below = hn::Mul(a, expm1_of(hn::Div(x, a)));
        return hn::Add(at_least(zero(), x), at_most(zero(), below));
    }
};

// b x, b a (e^x - 1) below zero
struct Selu : Elu {
    using Elu::Elu;
    HWY_INLINE V operator()(V x) const { return hn::Mul(b, Elu::operator()(x)); }
};

template <typename Function>
void row(const float* in, float* out, std::size_t count, const UnaryParameters& parameters) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    const Function function(parameters);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(function(hn::LoadU(d, in + i)), d, out + i);
    if (i < count) store_part(function(load_part(in + i, count - i)), out + i, count - i);
}

UnaryRow row_for(UnaryFunction function) {
    switch (function) {
        case UnaryFunction::none:
            return nullptr;
        case UnaryFunction::relu:
            return &row<Plain<relu_of>>;
        case UnaryFunction::clip:
            return &row<Clip>;
        case UnaryFunction::leaky_relu:
            return &row<LeakyRelu>;
        case UnaryFunction::thresholded_relu:
            return &row<ThresholdedRelu>;
        case UnaryFunction::elu:
            return &row<Elu>;
        case UnaryFunction::celu:
            return &row<Celu>;
        case UnaryFunction::selu:
            return &row<Selu>;
        case UnaryFunction::sigmoid:
            return &row<Plain<sigmoid_of>>;
        case UnaryFunction::hard_sigmoid:
            return &row<HardSigmoid>;
        case UnaryFunction::hard_swish:
            return &row<Plain<hard_swish_of>>;
        case UnaryFunction::swish:
            return &row<Plain<swish_of>>;
        case UnaryFunction::tanh:
            return &row<Plain<tanh_of>>;
        case UnaryFunction::softplus:
            return &row<Plain<softplus_of>>;
        case UnaryFunction::softsign:
            return &row<Plain<softsign_of>>;
        case UnaryFunction::mish:
            return &row<Plain<mish_of>>;
        case UnaryFunction::erf:
            return &row<ErfFunction>;
        case UnaryFunction::gelu:
            return &row<Gelu>;
        case UnaryFunction::gelu_tanh:
            return &row<Plain<gelu_tanh_of>>;
        case UnaryFunction::exp:
            return &row<Plain<exp_of>>;
        case UnaryFunction::log:
            return &row<Plain<log_of>>;
        case UnaryFunction::sqrt:
            return &row<Plain<sqrt_of>>;
        case UnaryFunction::reciprocal:
            return &row<Plain<reciprocal_of>>;
        case UnaryFunction::negate:
            return &row<Plain<negative_of>>;
        case UnaryFunction::absolute:
            return &row<Plain<absolute_of>>;
        case UnaryFunction::floor:
            return &row<Plain<floor_of>>;
        case UnaryFunction::ceil:
            return &row<Plain<ceil_of>>;
        case UnaryFunction::round:
            return &row<Plain<round_of>>;
    }
    return nullptr;
}

}  // namespace

// NOLINTNEXTLINE(misc-use-internal-linkage): reached through the table that HWY_EXPORT makes
UnaryRow unary_row_for(UnaryFunction function) {
    return row_for(function);
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(unary_row_for);

UnaryRow fast_unary_row(UnaryFunction function) {
    return HWY_DYNAMIC_DISPATCH(unary_row_for)(function);
}

}  // namespace qcalib
#endif
