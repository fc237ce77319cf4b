#include "simulate/element_kernels.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simulate/element_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Floats = hn::Rebind<float, Doubles>;
using DoubleVector = hn::Vec<Doubles>;

// Sums in a fixed number of lanes.
constexpr std::size_t most_lanes = 16;

HWY_INLINE DoubleVector load_doubles(const float* elements) {
    return hn::PromoteTo(Doubles(), hn::LoadU(Floats(), elements));
}

// Up to a vector's elements, zeros behind them.
HWY_INLINE DoubleVector load_some(const float* elements, std::size_t count) {
    HWY_ALIGN float padded[most_lanes] = {};
    std::copy_n(elements, count, padded);
    return hn::PromoteTo(Doubles(), hn::Load(Floats(), padded));
}

// True where the element is a number below greatest_compared.
HWY_INLINE hn::Mask<Doubles> is_compared(DoubleVector value) {
    return hn::Lt(hn::Abs(value), hn::Set(Doubles(), greatest_compared));
}

template <ValueRounding rounding>
HWY_INLINE DoubleVector round_codes(DoubleVector value) {
    const auto half = hn::Set(Doubles(), 0.5);
    if constexpr (rounding == ValueRounding::half_even) return hn::Round(value);
    if constexpr (rounding == ValueRounding::half_up) return hn::Floor(hn::Add(value, half));
    return hn::CopySignToAbs(hn::Floor(hn::Add(hn::Abs(value), half)), value);
}

template <ValueRounding rounding>
struct Quantizer {
    DoubleVector scale;
    DoubleVector inverse;
    DoubleVector least;
    DoubleVector greatest;
    DoubleVector signal;
    DoubleVector error;
    std::uint64_t clipped;

    HWY_INLINE explicit Quantizer(const CodeGrid& grid)
        : scale(hn::Set(Doubles(), grid.scale)),
          inverse(hn::Set(Doubles(), 1 / grid.scale)),
          least(hn::Set(Doubles(), grid.least)),
          greatest(hn::Set(Doubles(), grid.greatest)),
          signal(hn::Zero(Doubles())),
          error(hn::Zero(Doubles())),
          clipped(0) {}

    HWY_INLINE hn::Vec<Floats> take(DoubleVector value) {
        const Doubles doubles;
        const auto half = hn::Set(doubles, 0.5);
        const auto code = hn::Mul(value, inverse);
        const auto inside = hn::Min(hn::Max(round_codes<rounding>(code), least), greatest);
        const auto moved = hn::IfThenElse(hn::Eq(value, value), hn::Mul(inside, scale), value);
        const auto result = hn::DemoteTo(Floats(), moved);
        clipped += hn::CountTrue(
            doubles, hn::Or(hn::Lt(code, hn::Sub(least, half)), hn::Gt(code, hn::Add(greatest, half))));
        const auto compared = is_compared(value);
        const auto before = hn::IfThenElseZero(compared, value);
        const auto change = hn::IfThenElseZero(compared, hn::Sub(hn::PromoteTo(doubles, result), value));
        signal = hn::MulAdd(before, before, signal);
        error = hn::MulAdd(change, change, error);
        return result;
    }
};

template <ValueRounding rounding>
ElementChanges quantize_by(float* elements, std::size_t count, const CodeGrid& grid) {
    const Doubles doubles;
    const std::size_t lanes = hn::Lanes(doubles);
    Quantizer<rounding> quantizer(grid);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        hn::StoreU(quantizer.take(load_doubles(elements + i)), Floats(), elements + i);
    }
    if (i < count) {
        HWY_ALIGN float padded[most_lanes] = {};
        hn::Store(quantizer.take(load_some(elements + i, count - i)), Floats(), padded);
        std::copy_n(padded, count - i, elements + i);
    }
    return {quantizer.clipped, hn::GetLane(hn::SumOfLanes(doubles, quantizer.signal)),
            hn::GetLane(hn::SumOfLanes(doubles, quantizer.error))};
}

ElementChanges quantize(float* elements, std::size_t count, const CodeGrid& grid, ValueRounding rounding) {
    switch (rounding) {
        case ValueRounding::half_up:
            return quantize_by<ValueRounding::half_up>(elements, count, grid);
        case ValueRounding::half_away:
            return quantize_by<ValueRounding::half_away>(elements, count, grid);
        case ValueRounding::half_even:
            return quantize_by<ValueRounding::half_even>(elements, count, grid);
    }
    return {};
}

struct Comparer {
    DoubleVector first_squares = hn::Zero(Doubles());
    DoubleVector second_squares = hn::Zero(Doubles());
    DoubleVector products = hn::Zero(Doubles());
    DoubleVector squared_error = hn::Zero(Doubles());
    DoubleVector absolute_error = hn::Zero(Doubles());
    DoubleVector greatest_error = hn::Zero(Doubles());
    std::uint64_t compared = 0;

    HWY_INLINE Comparer() {}  // NOLINT: implicit members are not compiled for the target

    HWY_INLINE void take(DoubleVector first, DoubleVector second) {
        const Doubles doubles;
        const auto both = hn::And(is_compared(first), is_compared(second));
        const auto x = hn::IfThenElseZero(both, first);
        const auto y = hn::IfThenElseZero(both, second);
        const auto error = hn::Sub(x, y);
        const auto magnitude = hn::Abs(error);
        compared += hn::CountTrue(doubles, both);
        first_squares = hn::MulAdd(x, x, first_squares);
        second_squares = hn::MulAdd(y, y, second_squares);
        products = hn::MulAdd(x, y, products);
        squared_error = hn::MulAdd(error, error, squared_error);
        absolute_error = hn::Add(magnitude, absolute_error);
        greatest_error = hn::Max(magnitude, greatest_error);
    }
};

HWY_INLINE double sum(DoubleVector lanes) {
    return hn::GetLane(hn::SumOfLanes(Doubles(), lanes));
}

ElementDifferences compare(const float* first, const float* second, std::size_t count) {
    const Doubles doubles;
    const std::size_t lanes = hn::Lanes(doubles);
    Comparer comparer;
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) comparer.take(load_doubles(first + i), load_doubles(second + i));
    std::uint64_t padding = 0;
    if (i < count) {
        comparer.take(load_some(first + i, count - i), load_some(second + i, count - i));
        padding = lanes - (count - i);
    }
    return {comparer.compared - padding,
            sum(comparer.first_squares),
            sum(comparer.second_squares),
            sum(comparer.products),
            sum(comparer.squared_error),
            sum(comparer.absolute_error),
            hn::GetLane(hn::MaxOfLanes(doubles, comparer.greatest_error))};
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(quantize);
HWY_EXPORT(compare);

ElementChanges quantize_elements(float* elements, std::size_t count, const CodeGrid& grid,
                                 ValueRounding rounding) {
    return HWY_DYNAMIC_DISPATCH(quantize)(elements, count, grid, rounding);
}

ElementDifferences compare_elements(const float* first, const float* second, std::size_t count) {
    return HWY_DYNAMIC_DISPATCH(compare)(first, second, count);
}

}  // namespace qcalib
#endif
