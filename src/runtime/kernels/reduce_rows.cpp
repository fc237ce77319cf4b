#include "runtime/kernels/reduce_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/reduce_rows.cpp"  // NOLINT: read by foreach_target.h
#include <hwy/foreach_target.h>
// clang-format off: must come after foreach_target.h
#include <hwy/highway.h>

#include "runtime/kernels/vector_math-inl.h"
// clang-format on

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {
namespace {

using V = FloatVector;

HWY_INLINE V zero() {
    return hn::Zero(FloatTag());
}

struct Add {
    static V none() { return zero(); }
    static HWY_INLINE V combine(V a, V b) { return hn::Add(a, b); }
};
struct Multiply {
    static V none() { return constant(1.0F); }
    static HWY_INLINE V combine(V a, V b) { return hn::Mul(a, b); }
};
struct Greatest {
    static V none() { return hn::Neg(hn::Inf(FloatTag())); }
    static HWY_INLINE V combine(V a, V b) { return maximum_of(a, b); }
};
struct Least {
    static V none() { return hn::Inf(FloatTag()); }
    static HWY_INLINE V combine(V a, V b) { return minimum_of(a, b); }
};

struct Itself {
    static HWY_INLINE V map(V x) { return x; }
};
struct Magnitude {
    static HWY_INLINE V map(V x) { return hn::Abs(x); }
};
struct Square {
    static HWY_INLINE V map(V x) { return hn::Mul(x, x); }
};

// All lanes of `lanes` put together, in every lane.
template <typename Combine>
HWY_INLINE V across(V lanes) {
    const FloatTag d;
    HWY_ALIGN float values[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(lanes, d, values);
    std::size_t count = hn::Lanes(d);
    while (count > 1) {  // halves, so that sums keep their precision
        count /= 2;
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = hn::GetLane(Combine::combine(constant(values[i]), constant(values[i + count])));
        }
    }
    return constant(values[0]);
}

template <>
HWY_INLINE V across<Add>(V lanes) {
    return hn::SumOfLanes(FloatTag(), lanes);
}

// One row, in four strands for the latency of the combination.
template <typename Map, typename Combine>
HWY_INLINE V row(const float* in, std::size_t columns) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    V strands[4] = {Combine::none(), Combine::none(), Combine::none(), Combine::none()};
    std::size_t i = 0;
    for (; i + 4 * lanes <= columns; i += 4 * lanes) {
        for (std::size_t k = 0; k < 4; ++k) {
            strands[k] = Combine::combine(strands[k], Map::map(hn::LoadU(d, in + i + k * lanes)));
        }
    }
    for (; i + lanes <= columns; i += lanes) {
        strands[0] = Combine::combine(strands[0], Map::map(hn::LoadU(d, in + i)));
    }
    if (i < columns) {
        const V last = Map::map(load_part(in + i, columns - i));
        const V masked = hn::IfThenElse(hn::FirstN(d, columns - i), last, Combine::none());
        strands[1] = Combine::combine(strands[1], masked);
    }
    const V even = Combine::combine(strands[0], strands[2]);
    const V odd = Combine::combine(strands[1], strands[3]);
    return across<Combine>(Combine::combine(even, odd));
}

// Long rows in pieces, each piece a partial result: no lane of a sum grows far beyond what is added to it.
template <typename Map, typename Combine>
void along_rows(const float* in, float* out, std::size_t rows, std::size_t columns) {
    constexpr std::size_t piece = 8192;
    for (std::size_t r = 0; r < rows; ++r) {
        V result = constant(out[r]);
        for (std::size_t i = 0; i < columns; i += piece) {
            result = Combine::combine(result, row<Map, Combine>(in + i, std::min(piece, columns - i)));
        }
        out[r] = hn::GetLane(result);
        in += columns;
    }
}

// `count` vectors of neighbouring columns over `rows` rows that lie `step` floats apart; the last may be a
// part.
template <typename Map, typename Combine, std::size_t count>
HWY_INLINE void columns_of(const float* in, float* out, std::size_t rows, std::size_t step) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    V results[count];
    for (std::size_t k = 0; k < count; ++k) results[k] = Combine::none();
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t k = 0; k < count; ++k) {
            results[k] = Combine::combine(results[k], Map::map(hn::LoadU(d, in + k * lanes)));
        }
        in += step;
    }
    for (std::size_t k = 0; k < count; ++k) {
        hn::StoreU(Combine::combine(hn::LoadU(d, out + k * lanes), results[k]), d, out + k * lanes);
    }
}

template <typename Map, typename Combine>
HWY_INLINE void part_of_columns(const float* in, float* out, std::size_t rows, std::size_t step,
                                std::size_t count) {
    V result = Combine::none();
    for (std::size_t r = 0; r < rows; ++r) {
        result = Combine::combine(result, Map::map(load_part(in, count)));
        in += step;
    }
    store_part(Combine::combine(load_part(out, count), result), out, count);
}

template <typename Map, typename Combine>
void along_columns(const float* in, float* out, std::size_t rows, std::size_t columns) {
    constexpr std::size_t piece = 256;  // rows of one partial result
    const std::size_t lanes = hn::Lanes(FloatTag());
    for (std::size_t r = 0; r < rows; r += piece) {
        const std::size_t some = std::min(piece, rows - r);
        const float* from = in + r * columns;
        std::size_t i = 0;
        for (; i + 4 * lanes <= columns; i += 4 * lanes)
            columns_of<Map, Combine, 4>(from + i, out + i, some, columns);
        for (; i + lanes <= columns; i += lanes)
            columns_of<Map, Combine, 1>(from + i, out + i, some, columns);
        if (i < columns) part_of_columns<Map, Combine>(from + i, out + i, some, columns, columns - i);
    }
}

template <typename Map, typename Combine>
ReduceFunctions functions() {
    return {&along_rows<Map, Combine>, &along_columns<Map, Combine>};
}

ReduceFunctions functions_for(Reduction reduction) {
    switch (reduction) {
        case Reduction::none:
            return {};
        case Reduction::sum:
            return functions<Itself, Add>();
        case Reduction::sum_of_magnitudes:
            return functions<Magnitude, Add>();
        case Reduction::sum_of_squares:
            return functions<Square, Add>();
        case Reduction::greatest:
            return functions<Itself, Greatest>();
        case Reduction::least:
            return functions<Itself, Least>();
        case Reduction::product:
            return functions<Itself, Multiply>();
    }
    return {};
}

}  // namespace

// NOLINTNEXTLINE(misc-use-internal-linkage): reached through the table that HWY_EXPORT makes
ReduceFunctions reduction_for(Reduction reduction) {
    return functions_for(reduction);
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(reduction_for);

ReduceFunctions fast_reduction(Reduction reduction) {
    return HWY_DYNAMIC_DISPATCH(reduction_for)(reduction);
}

}  // namespace qcalib
#endif
