#include "runtime/kernels/channel_loops.h"

#include <algorithm>
#include <limits>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/channel_loops.cpp"  // NOLINT: read by foreach_target.h
#include <hwy/foreach_target.h>
// clang-format off: must come after foreach_target.h
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Vector = hn::ScalableTag<float>;
using Single = hn::CappedTag<float, 1>;

// Rows of a block are added up in float, blocks in double.
constexpr std::size_t block_rows = 128;
constexpr std::size_t block_elements = 4096;

template <typename D>
HWY_INLINE void scale_at(D d, const float* x, const float* scale, const float* shift, float* y) {
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x), hn::LoadU(d, scale), hn::LoadU(d, shift)), d, y);
}

void scale_periodic(const float* x, const float* scale, const float* shift, std::size_t period, float* y,
                    std::size_t count) {
    const Vector d;
    const std::size_t width = hn::Lanes(d);
    for (std::size_t begin = 0; begin < count; begin += period) {
        const std::size_t length = std::min(period, count - begin);
        std::size_t i = 0;
        for (; i + width <= length; i += width)
            scale_at(d, x + begin + i, scale + i, shift + i, y + begin + i);
        for (; i < length; ++i) scale_at(Single(), x + begin + i, scale + i, shift + i, y + begin + i);
    }
}

void scale_uniform(const float* x, float scale, float shift, float* y, std::size_t count) {
    const Vector d;
    const std::size_t width = hn::Lanes(d);
    const auto factors = hn::Set(d, scale);
    const auto terms = hn::Set(d, shift);
    std::size_t i = 0;
    for (; i + width <= count; i += width)
        hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), factors, terms), d, y + i);
    for (; i < count; ++i) scale_at(Single(), x + i, &scale, &shift, y + i);
}

struct Sum {
    static constexpr double start = 0;
    template <typename V>
    HWY_INLINE V operator()(V a, V b) const {
        return hn::Add(a, b);
    }
    HWY_INLINE float operator()(float a, float b) const { return a + b; }
    HWY_INLINE double operator()(double a, double b) const { return a + b; }
};

struct Greatest {
    static constexpr double start = -std::numeric_limits<float>::infinity();
    template <typename V>
    HWY_INLINE V operator()(V a, V b) const {
        return hn::Max(a, b);
    }
    HWY_INLINE float operator()(float a, float b) const { return std::max(a, b); }
    HWY_INLINE double operator()(double a, double b) const { return std::max(a, b); }
};

// One block of a row, in four running vectors.
template <typename F>
HWY_INLINE double fold_block(F fold, const float* x, std::size_t count) {
    const Vector d;
    const std::size_t width = hn::Lanes(d);
    constexpr auto start = static_cast<float>(F::start);
    auto a = hn::Set(d, start);
    auto b = a;
    auto c = a;
    auto e = a;
    std::size_t i = 0;
    for (; i + 4 * width <= count; i += 4 * width) {
        a = fold(a, hn::LoadU(d, x + i));
        b = fold(b, hn::LoadU(d, x + i + width));
        c = fold(c, hn::LoadU(d, x + i + 2 * width));
        e = fold(e, hn::LoadU(d, x + i + 3 * width));
    }
    for (; i + width <= count; i += width) a = fold(a, hn::LoadU(d, x + i));
    HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(fold(fold(a, b), fold(c, e)), d, lanes);
    double total = F::start;
    for (std::size_t lane = 0; lane < width; ++lane) total = fold(total, static_cast<double>(lanes[lane]));
    for (; i < count; ++i) total = fold(total, static_cast<double>(x[i]));
    return total;
}

template <typename F>
double fold_whole_row(F fold, const float* x, std::size_t count) {
    double total = F::start;
    for (std::size_t begin = 0; begin < count; begin += block_elements) {
        total = fold(total, fold_block(fold, x + begin, std::min(block_elements, count - begin)));
    }
    return total;
}

// lanes[j] = fold over `repeats` stretches of `length` floats that follow each other.
template <typename F>
HWY_INLINE void fold_stretches(F fold, const float* x, std::size_t repeats, std::size_t length,
                               float* lanes) {
    const Vector d;
    const std::size_t width = hn::Lanes(d);
    std::fill_n(lanes, length, static_cast<float>(F::start));
    std::size_t r = 0;
    for (; r + 4 <= repeats; r += 4, x += 4 * length) {
        std::size_t j = 0;
        for (; j + width <= length; j += width) {
            const auto low = fold(hn::LoadU(d, x + j), hn::LoadU(d, x + length + j));
            const auto high = fold(hn::LoadU(d, x + 2 * length + j), hn::LoadU(d, x + 3 * length + j));
            hn::StoreU(fold(hn::LoadU(d, lanes + j), fold(low, high)), d, lanes + j);
        }
        for (; j < length; ++j) {
            lanes[j] =
                fold(lanes[j], fold(fold(x[j], x[length + j]), fold(x[2 * length + j], x[3 * length + j])));
        }
    }
    for (; r < repeats; ++r, x += length) {
        std::size_t j = 0;
        for (; j + width <= length; j += width) {
            hn::StoreU(fold(hn::LoadU(d, lanes + j), hn::LoadU(d, x + j)), d, lanes + j);
        }
        for (; j < length; ++j) lanes[j] = fold(lanes[j], x[j]);
    }
}

// Rows are taken several at a time, so that a stretch of them fills whole vectors whatever the columns.
template <typename F>
void fold_all_columns(F fold, const float* x, std::size_t rows, std::size_t columns, float* lanes,
                      double* totals) {
    std::fill_n(totals, columns, F::start);
    const std::size_t joined = fold_lanes(columns) / columns;
    std::size_t row = 0;
    while (row < rows) {
        const std::size_t each = rows - row >= joined ? joined : 1;
        const std::size_t repeats = std::min(block_rows, (rows - row) / each);
        fold_stretches(fold, x + row * columns, repeats, each * columns, lanes);
        for (std::size_t j = 0; j < each * columns; ++j) {
            totals[j % columns] = fold(totals[j % columns], static_cast<double>(lanes[j]));
        }
        row += repeats * each;
    }
}

double fold_row_of(Fold fold, const float* x, std::size_t count) {
    return fold == Fold::sum ? fold_whole_row(Sum(), x, count) : fold_whole_row(Greatest(), x, count);
}

void fold_columns_of(Fold fold, const float* x, std::size_t rows, std::size_t columns, float* lanes,
                     double* totals) {
    if (fold == Fold::sum) {
        fold_all_columns(Sum(), x, rows, columns, lanes, totals);
    } else {
        fold_all_columns(Greatest(), x, rows, columns, lanes, totals);
    }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(scale_periodic);
HWY_EXPORT(scale_uniform);
HWY_EXPORT(fold_row_of);
HWY_EXPORT(fold_columns_of);

void scale_and_shift(const float* x, const float* scale, const float* shift, std::size_t period, float* y,
                     std::size_t count) {
    HWY_DYNAMIC_DISPATCH(scale_periodic)(x, scale, shift, period, y, count);
}

void scale_and_shift(const float* x, float scale, float shift, float* y, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(scale_uniform)(x, scale, shift, y, count);
}

// Channels-last, bias and factors of 1 are repeated up to a period that fills vectors.
void add_bias(const float* bias, MutableTensorView tensor, float* scratch) {
    const Shape& shape = tensor.descriptor->shape;
    float* y = tensor.as<float>().data();
    const std::size_t count = tensor.elements();
    const auto channels = static_cast<std::size_t>(shape[1]);
    if (tensor.descriptor->order == MemoryOrder::channels_last && !same_in_both_orders(shape)) {
        const std::size_t period = bias_scratch(channels) / 2;
        std::fill_n(scratch, period, 1.0F);
        for (std::size_t i = 0; i < period; i += channels) std::copy_n(bias, channels, scratch + period + i);
        scale_and_shift(y, scratch, scratch + period, period, y, count);
        return;
    }
    const std::size_t pixels = count / (static_cast<std::size_t>(shape[0]) * channels);
    for (std::size_t row = 0; row * pixels < count; ++row) {
        scale_and_shift(y + row * pixels, 1.0F, bias[row % channels], y + row * pixels, pixels);
    }
}

std::size_t bias_scratch(std::size_t channels) {
    constexpr std::size_t least_period = 256;
    return 2 * ((least_period + channels - 1) / channels * channels);
}

double fold_row(Fold fold, const float* x, std::size_t count) {
    return HWY_DYNAMIC_DISPATCH(fold_row_of)(fold, x, count);
}

void fold_columns(Fold fold, const float* x, std::size_t rows, std::size_t columns, float* lanes,
                  double* totals) {
    HWY_DYNAMIC_DISPATCH(fold_columns_of)(fold, x, rows, columns, lanes, totals);
}

// 16 floats fill every vector there is; beyond 256 columns a partly filled one costs little.
std::size_t fold_lanes(std::size_t columns) {
    constexpr std::size_t widest = 16;
    return columns >= 256 ? columns : std::lcm(columns, widest);
}

}  // namespace qcalib
#endif
