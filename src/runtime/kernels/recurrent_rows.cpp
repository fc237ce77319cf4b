#include "runtime/kernels/recurrent_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/recurrent_rows.cpp"  // NOLINT: read by foreach_target.h
#include <hwy/foreach_target.h>
// clang-format off: must come after foreach_target.h
#include <hwy/highway.h>

#include "runtime/kernels/vector_math-inl.h"
// clang-format on

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace qcalib {
namespace HWY_NAMESPACE {
namespace {

using V = FloatVector;

// A panel is this many vectors wide, and this many rows go through it at once: their sums, a row of the panel
// and a factor fill the registers (32, else 16).
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t vectors = 4;
#else
constexpr std::size_t vectors = 2;
#endif
constexpr std::size_t most_rows = 6;

// Sums over even and odd k and so on apart where few rows would leave the latency of an addition uncovered.
constexpr std::size_t strands_for(std::size_t rows) {
    return rows == 1 ? 8 / vectors : rows == 2 ? 8 / vectors / 2 : 1;
}

// The first `count` floats, at most a vector.
HWY_INLINE V load_some(const float* from, std::size_t count) {
    const FloatTag d;
    if (count >= hn::Lanes(d)) return hn::LoadU(d, from);
    return count == 0 ? hn::Zero(d) : load_part(from, count);
}

HWY_INLINE void store_some(V value, float* to, std::size_t count) {
    const FloatTag d;
    if (count >= hn::Lanes(d)) {
        hn::StoreU(value, d, to);
    } else if (count != 0) {
        store_part(value, to, count);
    }
}

HWY_INLINE std::size_t columns_of_vector(std::size_t columns, std::size_t vector) {
    const std::size_t before = vector * hn::Lanes(FloatTag());
    return columns > before ? columns - before : 0;
}

// `rows` rows through one panel, of which `columns` are wanted.
template <std::size_t rows>
void multiply_panel(const float* a, std::size_t a_step, const float* panel, std::size_t inner,
                    const FloatRows& start, std::size_t columns, float* y, std::size_t y_step) {
    constexpr std::size_t strands = strands_for(rows);
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    V sums[strands][rows][vectors];
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t v = 0; v < vectors; ++v) {
            const float* from = start.data + r * start.step + v * lanes;
            sums[0][r][v] =
                start.data == nullptr ? hn::Zero(d) : load_some(from, columns_of_vector(columns, v));
            for (std::size_t s = 1; s < strands; ++s) sums[s][r][v] = hn::Zero(d);
        }
    }
    const auto add = [&](std::size_t k, V(&to)[rows][vectors]) HWY_ATTR {
        const float* row = panel + k * vectors * lanes;
        V b[vectors];
        for (std::size_t v = 0; v < vectors; ++v) b[v] = hn::LoadU(d, row + v * lanes);
        for (std::size_t r = 0; r < rows; ++r) {
            const V factor = constant(a[r * a_step + k]);
            for (std::size_t v = 0; v < vectors; ++v) to[r][v] = hn::MulAdd(factor, b[v], to[r][v]);
        }
    };
    std::size_t k = 0;
    for (; k + strands <= inner; k += strands) {
        add(k, sums[0]);
        if constexpr (strands > 1) add(k + 1, sums[1]);
        if constexpr (strands > 2) {
            add(k + 2, sums[2]);
            add(k + 3, sums[3]);
        }
    }
    for (; k < inner; ++k) add(k, sums[0]);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t v = 0; v < vectors; ++v) {
            V sum = sums[0][r][v];
            for (std::size_t s = 1; s < strands; ++s) sum = hn::Add(sum, sums[s][r][v]);
            store_some(sum, y + r * y_step + v * lanes, columns_of_vector(columns, v));
        }
    }
}

using MultiplyPanel = void (*)(const float*, std::size_t, const float*, std::size_t, const FloatRows&,
                               std::size_t, float*, std::size_t);
constexpr MultiplyPanel multiply_panels[most_rows] = {&multiply_panel<1>, &multiply_panel<2>,
                                                      &multiply_panel<3>, &multiply_panel<4>,
                                                      &multiply_panel<5>, &multiply_panel<6>};

void multiply_add(const FloatRows& a, const PanelMatrix& b, const FloatRows& start, std::size_t rows,
                  float* y, std::size_t y_step) {
    const std::size_t width = vectors * hn::Lanes(FloatTag());
    const float* panel = b.panels;
    for (std::size_t j = 0; j < b.columns; j += width, panel += width * b.inner) {
        for (std::size_t r = 0; r < rows; r += most_rows) {
            const std::size_t some = std::min(most_rows, rows - r);
            const FloatRows from{start.data == nullptr ? nullptr : start.data + r * start.step + j,
                                 start.step};
            multiply_panels[some - 1](a.data + r * a.step, a.step, panel, b.inner, from, b.columns - j,
                                      y + r * y_step + j, y_step);
        }
    }
}

// Calls work(i, lanes) for whole vectors, then work(i, rest) for what is left.
template <typename Work>
HWY_INLINE void for_each_vector(std::size_t count, const Work& work) {
    const std::size_t lanes = hn::Lanes(FloatTag());
    for (std::size_t i = 0; i < count; i += lanes) work(i, std::min(lanes, count - i));
}

struct Clip {
    explicit Clip(float clip) : high(constant(clip)), low(constant(-clip)) {}
    HWY_INLINE V operator()(V x) const { return at_most(high, at_least(low, x)); }
    V high;
    V low;
};

void lstm(const float* gates, float* cell, float* hidden, std::size_t count, float clip) {
    const Clip clipped(clip);
    for_each_vector(count, [&](std::size_t i, std::size_t some) HWY_ATTR {
        const auto sum = [&](std::size_t gate)
                             HWY_ATTR { return clipped(load_some(gates + gate * count + i, some)); };
        const V input = hn::Mul(sigmoid_of(sum(0)), tanh_of(sum(3)));
        const V next = hn::MulAdd(sigmoid_of(sum(2)), load_some(cell + i, some), input);
        store_some(next, cell + i, some);
        store_some(hn::Mul(sigmoid_of(sum(1)), tanh_of(clipped(next))), hidden + i, some);
    });
}

void gated(const float* gate, const float* x, const float* added, float* y, std::size_t count, float clip) {
    const Clip clipped(clip);
    for_each_vector(count, [&](std::size_t i, std::size_t some) HWY_ATTR {
        const V g = sigmoid_of(clipped(load_some(gate + i, some)));
        const V more = added == nullptr ? hn::Zero(FloatTag()) : load_some(added + i, some);
        store_some(hn::MulAdd(g, load_some(x + i, some), more), y + i, some);
    });
}

void gru(const float* gate, const float* candidate, float* hidden, std::size_t count, float clip) {
    const Clip clipped(clip);
    for_each_vector(count, [&](std::size_t i, std::size_t some) HWY_ATTR {
        const V z = sigmoid_of(clipped(load_some(gate + i, some)));
        const V n = tanh_of(clipped(load_some(candidate + i, some)));
        const V before = load_some(hidden + i, some);
        store_some(hn::MulAdd(z, hn::Sub(before, n), n), hidden + i, some);
    });
}

void rnn(const float* sum, float* hidden, std::size_t count, float clip) {
    const Clip clipped(clip);
    for_each_vector(count, [&](std::size_t i, std::size_t some) HWY_ATTR {
        store_some(tanh_of(clipped(load_some(sum + i, some))), hidden + i, some);
    });
}

}  // namespace

// NOLINTNEXTLINE(misc-use-internal-linkage): reached through the table that HWY_EXPORT makes
RecurrentFunctions recurrent_functions() {
    return {vectors * hn::Lanes(FloatTag()), &multiply_add, &lstm, &gated, &gru, &rnn};
}

}  // namespace HWY_NAMESPACE
}  // namespace qcalib
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qcalib {

HWY_EXPORT(recurrent_functions);

RecurrentFunctions fast_recurrent() {
    return HWY_DYNAMIC_DISPATCH(recurrent_functions)();
}

std::size_t panel_floats(std::size_t inner, std::size_t columns, std::size_t panel_columns) {
    return (columns + panel_columns - 1) / panel_columns * panel_columns * inner;
}

void pack_panels(const std::byte* rows, std::size_t inner, std::size_t columns, std::size_t panel_columns,
                 float* panels) {
    for (std::size_t first = 0; first < columns; first += panel_columns, panels += panel_columns * inner) {
        for (std::size_t i = 0; i < panel_columns; ++i) {
            const std::size_t column = first + i;
            for (std::size_t k = 0; k < inner; ++k) {
                float value = 0;
                if (column < columns) {
                    std::memcpy(&value, rows + (column * inner + k) * sizeof(float), sizeof(float));
                }
                panels[k * panel_columns + i] = value;
            }
        }
    }
}

}  // namespace qcalib
#endif
