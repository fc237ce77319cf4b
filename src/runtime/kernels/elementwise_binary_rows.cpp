#include "runtime/kernels/elementwise_binary_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise_binary_rows.cpp"  // NOLINT: read by foreach_target.h
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

struct Sum {
    HWY_INLINE V operator()(V a, V b) const { return hn::Add(a, b); }
};
struct Difference {
    HWY_INLINE V operator()(V a, V b) const { return hn::Sub(a, b); }
};
struct Product {
    HWY_INLINE V operator()(V a, V b) const { return hn::Mul(a, b); }
};
struct Quotient {
    HWY_INLINE V operator()(V a, V b) const { return hn::Div(a, b); }
};
struct Maximum {
    HWY_INLINE V operator()(V a, V b) const { return maximum_of(a, b); }
};
struct Minimum {
    HWY_INLINE V operator()(V a, V b) const { return minimum_of(a, b); }
};
struct ParametricRelu {
    HWY_INLINE V operator()(V x, V slope) const {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(FloatTag())), hn::Mul(slope, x), x);
    }
};

template <bool repeated>
HWY_INLINE V load(const float* from, std::size_t i) {
    if constexpr (repeated)
        return constant(*from);
    else
        return hn::LoadU(FloatTag(), from + i);
}

template <bool repeated>
HWY_INLINE V load_last(const float* from, std::size_t i, std::size_t count) {
    if constexpr (repeated)
        return constant(*from);
    else
        return load_part(from + i, count);
}

template <typename Function, bool a_repeated, bool b_repeated>
void block_of(const BinaryBlock& block) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    const Function function;
    const auto* a = reinterpret_cast<const float*>(block.a);
    const auto* b = reinterpret_cast<const float*>(block.b);
    auto* out = reinterpret_cast<float*>(block.out);
    const std::size_t columns = block.columns;
    for (std::size_t row = 0; row < block.rows; ++row) {
        std::size_t i = 0;
        for (; i + lanes <= columns; i += lanes) {
            hn::StoreU(function(load<a_repeated>(a, i), load<b_repeated>(b, i)), d, out + i);
        }
        if (const std::size_t rest = columns - i; rest != 0) {
            store_part(function(load_last<a_repeated>(a, i, rest), load_last<b_repeated>(b, i, rest)),
                       out + i, rest);
        }
        a += block.a_row;
        b += block.b_row;
        out += columns;
    }
}

// x / divisor as x r with r = 1 / divisor, put right by two fused operations (Markstein, "Computation of
// elementary functions on the IBM RISC System/6000 processor", 1990); where that gives NaN, by a real
// division.
struct DivideByOne {
    explicit DivideByOne(float by) : divisor(constant(by)), reciprocal(constant(1.0F / by)) {}

    HWY_INLINE V operator()(V x) const {
        const V q = hn::Mul(x, reciprocal);
        const V corrected = hn::MulAdd(hn::NegMulAdd(q, divisor, x), reciprocal, q);
        const auto failed = hn::IsNaN(corrected);
        if (HWY_UNLIKELY(!hn::AllFalse(FloatTag(), failed))) return hn::Div(x, divisor);
        return hn::CopySign(corrected, q);
    }

    V divisor;
    V reciprocal;
};

struct Square {
    HWY_INLINE V operator()(V x) const { return hn::Mul(x, x); }
};
struct Cube {
    HWY_INLINE V operator()(V x) const { return hn::Mul(hn::Mul(x, x), x); }
};
// As pow does it: +Inf for -Inf, +0 for -0.
struct SquareRoot {
    HWY_INLINE V operator()(V x) const {
        const V infinity = hn::Inf(FloatTag());
        const V root = hn::Sqrt(hn::Add(x, hn::Zero(FloatTag())));
        return hn::IfThenElse(hn::Eq(x, hn::Neg(infinity)), infinity, root);
    }
};

template <typename Function>
void row_of(const Function& function, const float* in, float* out, std::size_t count) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(function(hn::LoadU(d, in + i)), d, out + i);
    if (i < count) store_part(function(load_part(in + i, count - i)), out + i, count - i);
}

void divide_row(const float* in, float divisor, float* out, std::size_t count) {
    const float magnitude = std::fabs(divisor);
    if (HWY_NATIVE_FMA && magnitude > 0x1p-100F && magnitude < 0x1p100F) {
        row_of(DivideByOne(divisor), in, out, count);
    } else {
        const V by = constant(divisor);
        row_of([by](V x) HWY_ATTR { return hn::Div(x, by); }, in, out, count);
    }
}

void power_row(const float* in, float exponent, float* out, std::size_t count) {
    if (exponent == 2.0F) return row_of(Square(), in, out, count);
    if (exponent == 3.0F) return row_of(Cube(), in, out, count);
    if (exponent == 0.5F) return row_of(SquareRoot(), in, out, count);
    for (std::size_t i = 0; i < count; ++i) out[i] = std::pow(in[i], exponent);
}

// For each row one value of b.
template <void (*row_function)(const float*, float, float*, std::size_t)>
void block_by_rows(const BinaryBlock& block) {
    const auto* a = reinterpret_cast<const float*>(block.a);
    const auto* b = reinterpret_cast<const float*>(block.b);
    auto* out = reinterpret_cast<float*>(block.out);
    for (std::size_t row = 0; row < block.rows; ++row) {
        row_function(a, *b, out, block.columns);
        a += block.a_row;
        b += block.b_row;
        out += block.columns;
    }
}

template <typename Function>
BinaryBlockFunction choose(bool a_repeated, bool b_repeated) {
    if (a_repeated) return b_repeated ? nullptr : &block_of<Function, true, false>;
    return b_repeated ? &block_of<Function, false, true> : &block_of<Function, false, false>;
}

BinaryBlockFunction block_for(BinaryFunction function, bool a_repeated, bool b_repeated) {
    const bool by_rows = b_repeated && !a_repeated;
    switch (function) {
        case BinaryFunction::none:
            return nullptr;
        case BinaryFunction::add:
            return choose<Sum>(a_repeated, b_repeated);
        case BinaryFunction::subtract:
            return choose<Difference>(a_repeated, b_repeated);
        case BinaryFunction::multiply:
            return choose<Product>(a_repeated, b_repeated);
        case BinaryFunction::divide:
            return by_rows ? &block_by_rows<divide_row> : choose<Quotient>(a_repeated, b_repeated);
        case BinaryFunction::maximum:
            return choose<Maximum>(a_repeated, b_repeated);
        case BinaryFunction::minimum:
            return choose<Minimum>(a_repeated, b_repeated);
        case BinaryFunction::power:
            return by_rows ? &block_by_rows<power_row> : nullptr;
        case BinaryFunction::parametric_relu:
            return choose<ParametricRelu>(a_repeated, b_repeated);
    }
    return nullptr;
}

}  // namespace

// NOLINTNEXTLINE(misc-use-internal-linkage): reached through the table that HWY_EXPORT makes
BinaryBlockFunction binary_block_for(BinaryFunction function, bool a_repeated, bool b_repeated) {
    return block_for(function, a_repeated, b_repeated);
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(binary_block_for);

BinaryBlockFunction fast_binary_block(BinaryFunction function, bool a_repeated, bool b_repeated) {
    return HWY_DYNAMIC_DISPATCH(binary_block_for)(function, a_repeated, b_repeated);
}

}  // namespace qcalib
#endif
