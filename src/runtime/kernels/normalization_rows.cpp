#include "runtime/kernels/normalization_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/normalization_rows.cpp"  // NOLINT: read by foreach_target.h
#include <hwy/foreach_target.h>
// clang-format off: must come after foreach_target.h
#include <hwy/highway.h>

#include "runtime/kernels/vector_math-inl.h"
// clang-format on

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {
namespace {

using V = FloatVector;

struct Sums {
    double distances = 0;
    double squares = 0;
};

constexpr std::size_t strands = 4;  // for the latency of the addition

// Sums x - from, and their squares where wanted, of at most a few thousand floats: no lane grows far beyond
// what is added to it.
template <bool squares>
HWY_INLINE Sums sums_of_piece(const float* in, std::size_t count, V from) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    const V zero = hn::Zero(d);
    V distances[strands] = {zero, zero, zero, zero};
    V squared[strands] = {zero, zero, zero, zero};
    const auto add = [&](std::size_t strand, V distance) HWY_ATTR {
        distances[strand] = hn::Add(distances[strand], distance);
        if constexpr (squares) squared[strand] = hn::MulAdd(distance, distance, squared[strand]);
    };
    std::size_t i = 0;
    for (; i + strands * lanes <= count; i += strands * lanes) {
        for (std::size_t k = 0; k < strands; ++k) add(k, hn::Sub(hn::LoadU(d, in + i + k * lanes), from));
    }
    for (; i + lanes <= count; i += lanes) add(0, hn::Sub(hn::LoadU(d, in + i), from));
    if (i < count) add(1, hn::Sub(load_part_or(in + i, count - i, from), from));
    const auto total = [d](const V* sums) HWY_ATTR {
        const V all = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
        return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all)));
    };
    return {total(distances), squares ? total(squared) : 0};
}

template <bool squares>
Sums sums_from(const float* in, std::size_t count, float from) {
    constexpr std::size_t piece = 8192;
    Sums sums;
    for (std::size_t i = 0; i < count; i += piece) {
        const Sums more = sums_of_piece<squares>(in + i, std::min(piece, count - i), constant(from));
        sums.distances += more.distances;
        sums.squares += more.squares;
    }
    return sums;
}

Moments moments(const float* in, std::size_t count, double epsilon) {
    const auto elements = static_cast<double>(count);
    const auto mean = static_cast<float>(sums_from<false>(in, count, 0).distances / elements);
    const Sums sums = sums_from<true>(in, count, mean);
    const double correction = sums.distances / elements;
    const double variance = std::max(0.0, sums.squares / elements - correction * correction);
    return {mean, static_cast<float>(correction), static_cast<float>(1 / std::sqrt(variance + epsilon))};
}

template <bool has_bias>
void apply_scales(const float* in, float* out, std::size_t count, const Moments& moments, const float* scale,
                  const float* bias) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    const V mean = constant(moments.mean);
    const V factor = constant(moments.inverse_deviation);
    const V shift = constant(-moments.correction * moments.inverse_deviation);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const V x = hn::MulAdd(hn::Sub(hn::LoadU(d, in + i), mean), factor, shift);
        const V s = hn::LoadU(d, scale + i);
        hn::StoreU(has_bias ? hn::MulAdd(x, s, hn::LoadU(d, bias + i)) : hn::Mul(x, s), d, out + i);
    }
    if (const std::size_t rest = count - i; rest != 0) {
        const V x = hn::MulAdd(hn::Sub(load_part(in + i, rest), mean), factor, shift);
        const V s = load_part(scale + i, rest);
        store_part(has_bias ? hn::MulAdd(x, s, load_part(bias + i, rest)) : hn::Mul(x, s), out + i, rest);
    }
}

void apply_along_row(const float* in, float* out, std::size_t count, const Moments& moments,
                     const float* scale, const float* bias) {
    (bias != nullptr ? apply_scales<true> : apply_scales<false>)(in, out, count, moments, scale, bias);
}

void apply(const float* in, float* out, std::size_t count, const Moments& moments, float scale, float bias) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    const V mean = constant(moments.mean);
    const V factor = constant(moments.inverse_deviation * scale);
    const V shift = constant(bias - moments.correction * moments.inverse_deviation * scale);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        hn::StoreU(hn::MulAdd(hn::Sub(hn::LoadU(d, in + i), mean), factor, shift), d, out + i);
    }
    if (i < count) {
        store_part(hn::MulAdd(hn::Sub(load_part(in + i, count - i), mean), factor, shift), out + i,
                   count - i);
    }
}

void apply_to_columns(const float* in, float* out, std::size_t rows, std::size_t columns, const float* mean,
                      const float* factor, const float* shift) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t row = 0; row < rows; ++row) {
        std::size_t i = 0;
        for (; i + lanes <= columns; i += lanes) {
            const V distance = hn::Sub(hn::LoadU(d, in + i), hn::LoadU(d, mean + i));
            hn::StoreU(hn::MulAdd(distance, hn::LoadU(d, factor + i), hn::LoadU(d, shift + i)), d, out + i);
        }
        if (const std::size_t rest = columns - i; rest != 0) {
            const V distance = hn::Sub(load_part(in + i, rest), load_part(mean + i, rest));
            store_part(hn::MulAdd(distance, load_part(factor + i, rest), load_part(shift + i, rest)), out + i,
                       rest);
        }
        in += columns;
        out += columns;
    }
}

// One vector of columns (or a part of one, `count` below a whole one) over some rows.
template <typename Load, typename Store>
HWY_INLINE void distances_of_columns(const float* in, std::size_t rows, std::size_t step, const float* mean,
                                     float* sums, float* squares, const Load& load, const Store& store) {
    const V from = load(mean);
    V sum = hn::Zero(FloatTag());
    V square = sum;
    for (std::size_t row = 0; row < rows; ++row) {
        const V distance = hn::Sub(load(in), from);
        sum = hn::Add(sum, distance);
        square = hn::MulAdd(distance, distance, square);
        in += step;
    }
    store(hn::Add(load(sums), sum), sums);
    store(hn::Add(load(squares), square), squares);
}

void column_distances(const float* in, std::size_t rows, std::size_t columns, const float* mean, float* sums,
                      float* squares) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    constexpr std::size_t piece = 256;  // rows of one partial sum
    for (std::size_t start = 0; start < rows; start += piece) {
        const std::size_t some = std::min(piece, rows - start);
        const float* from = in + start * columns;
        std::size_t i = 0;
        for (; i + lanes <= columns; i += lanes) {
            distances_of_columns(
                from + i, some, columns, mean + i, sums + i, squares + i,
                [d](const float* p) HWY_ATTR { return hn::LoadU(d, p); },
                [d](V v, float* p) HWY_ATTR { hn::StoreU(v, d, p); });
        }
        if (const std::size_t rest = columns - i; rest != 0) {
            distances_of_columns(
                from + i, some, columns, mean + i, sums + i, squares + i,
                [rest](const float* p) HWY_ATTR { return load_part(p, rest); },
                [rest](V v, float* p) HWY_ATTR { store_part(v, p, rest); });
        }
    }
}

}  // namespace

// NOLINTNEXTLINE(misc-use-internal-linkage): reached through the table that HWY_EXPORT makes
NormalizationFunctions normalization_functions() {
    return {&moments, &apply_along_row, &apply, &column_distances, &apply_to_columns};
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(normalization_functions);

NormalizationFunctions fast_normalization() {
    return HWY_DYNAMIC_DISPATCH(normalization_functions)();
}

}  // namespace qcalib
#endif
