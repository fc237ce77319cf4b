#pragma once

#include <cstddef>

namespace qcalib {

// Rows of floats, each `step` behind the one before (0: the same row again).
struct FloatRows {
    const float* data = nullptr;
    std::size_t step = 0;
};

// A matrix [inner, columns] as panels of RecurrentFunctions::panel_columns columns, one after the other: each
// row by row, the last filled up with zeros.
struct PanelMatrix {
    const float* panels = nullptr;
    std::size_t inner = 0;
    std::size_t columns = 0;
};

// What recurrent kernels do to float32 rows, with the best instructions in force. Sigmoids and tanhs are
// those of the operators' defaults; their inputs are held in [-clip, clip].
struct RecurrentFunctions {
    std::size_t panel_columns = 0;

    // y[r, j] = start[r, j] + sum over k of a[r, k] b[k, j]; start.data may be nullptr for zeros. A row's
    // sums are taken in an order that depends on `rows` alone.
    void (*multiply_add)(const FloatRows& a, const PanelMatrix& b, const FloatRows& start, std::size_t rows,
                         float* y, std::size_t y_step) = nullptr;
    // From the sums of gates i, o, f, c, each `count` long: cell = sigmoid(f) cell + sigmoid(i) tanh(c),
    // hidden = sigmoid(o) tanh(cell).
    void (*lstm)(const float* gates, float* cell, float* hidden, std::size_t count, float clip) = nullptr;
    // y = sigmoid(gate) x + added; `y` may be `x`, `added` may be nullptr.
    void (*gated)(const float* gate, const float* x, const float* added, float* y, std::size_t count,
                  float clip) = nullptr;
    // hidden = (1 - sigmoid(gate)) tanh(candidate) + sigmoid(gate) hidden
    void (*gru)(const float* gate, const float* candidate, float* hidden, std::size_t count,
                float clip) = nullptr;
    // hidden = tanh(sum)
    void (*rnn)(const float* sum, float* hidden, std::size_t count, float clip) = nullptr;
};

RecurrentFunctions fast_recurrent();

// The floats that a matrix takes in panels.
std::size_t panel_floats(std::size_t inner, std::size_t columns, std::size_t panel_columns);

// Packs the transpose of `rows`, [columns, inner] row-major at any alignment, as a PanelMatrix.
void pack_panels(const std::byte* rows, std::size_t inner, std::size_t columns, std::size_t panel_columns,
                 float* panels);

}  // namespace qcalib
