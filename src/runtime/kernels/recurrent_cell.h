#pragma once

#include <array>

#include "runtime/kernels/elementwise_unary_rows.h"
#include "runtime/kernels/recurrent_form.h"
#include "runtime/kernels/recurrent_rows.h"

namespace qcalib {

// An activation with its clip, made ready to be applied to rows.
class RecurrentRowFunction {
  public:
    RecurrentRowFunction() = default;
    RecurrentRowFunction(const RecurrentActivation& activation, float clip);
    void operator()(float* row, std::size_t count) const;

  private:
    RecurrentActivation activation_;
    UnaryRow row_ = nullptr;   // of the functions that are one
    UnaryRow clip_ = nullptr;  // where there is something to clip
    float bound_ = 0;
};

// What the cells of one direction do with a step's sums, one row (a sequence) at a time: in one pass where
// the node has the operator's default activations, else function by function.
class RecurrentCellRows {
  public:
    RecurrentCellRows(const RecurrentForm& form, std::int64_t direction, const RecurrentFunctions& functions);

    // `gates` are the sums of i, o, f, c (overwritten); `peepholes` those of i, o, f or nullptr.
    void lstm(float* gates, const float* peepholes, float* cell, float* hidden) const;
    // y = f(gate) x + added; `added` may be nullptr, `gate` is overwritten.
    void gated(float* gate, const float* x, const float* added, float* y) const;
    // hidden = (1 - f(gate)) g(candidate) + f(gate) hidden; gate and candidate are overwritten.
    void gru(float* gate, float* candidate, float* hidden) const;
    // hidden = f(sum); `sum` is overwritten.
    void rnn(float* sum, float* hidden) const;

  private:
    std::size_t count_;
    float clip_;
    bool couples_gates_;
    bool defaults_;
    RecurrentFunctions functions_;
    std::array<RecurrentRowFunction, 3> activations_;
};

}  // namespace qcalib
