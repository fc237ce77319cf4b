#include "runtime/kernels/recurrent_reference.h"

#include <algorithm>
#include <cmath>

namespace qcalib {

namespace {

double applied(const RecurrentActivation& activation, double x) {
    const double alpha = activation.alpha;
    const double beta = activation.beta;
    switch (activation.function) {
        case RecurrentFunction::relu:
            return x < 0 ? 0 : x;
        case RecurrentFunction::tanh:
            return std::tanh(x);
        case RecurrentFunction::sigmoid:
            return 1 / (1 + std::exp(-x));
        case RecurrentFunction::affine:
            return alpha * x + beta;
        case RecurrentFunction::leaky_relu:
            return x < 0 ? alpha * x : x;
        case RecurrentFunction::thresholded_relu:
            return x < alpha ? 0 : x;
        case RecurrentFunction::scaled_tanh:
            return alpha * std::tanh(beta * x);
        case RecurrentFunction::hard_sigmoid:
            return std::clamp(alpha * x + beta, 0.0, 1.0);
        case RecurrentFunction::elu:
            return x < 0 ? alpha * std::expm1(x) : x;
        case RecurrentFunction::softsign:
            return x / (1 + std::abs(x));
        case RecurrentFunction::softplus:
            return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    }
    return x;
}

// The elements of an input from `offset`, or nullptr where it is left out.
template <typename T>
const T* elements(std::span<const TensorView> inputs, std::size_t input, std::int64_t offset) {
    if (input >= inputs.size() || !inputs[input].present()) return nullptr;
    return reinterpret_cast<const T*>(inputs[input].data) + offset;
}

// One sequence in one direction.
template <typename T>
class Sequence {
  public:
    Sequence(const RecurrentForm& form, std::span<const TensorView> inputs, std::int64_t direction,
             double* scratch)
        : form_(form), activations_(form.activations.at(static_cast<std::size_t>(direction))) {
        const std::int64_t rows = form.gates() * form.hidden;
        w_ = elements<T>(inputs, RecurrentInput::w, direction * rows * form.inputs);
        r_ = elements<T>(inputs, RecurrentInput::r, direction * rows * form.hidden);
        bias_ = elements<T>(inputs, RecurrentInput::bias, direction * 2 * rows);
        peepholes_ = elements<T>(inputs, RecurrentInput::peepholes, direction * 3 * form.hidden);
        hidden = scratch;
        cell = hidden + form.hidden;
        next_ = cell + form.hidden;
        reset_ = next_ + form.hidden;
        gates_ = reset_ + form.hidden;
    }

    static std::size_t scratch_bytes(const RecurrentForm& form) {
        return static_cast<std::size_t>((4 + form.gates()) * form.hidden) * sizeof(double);
    }

    void step(const T* x) {
        switch (form_.cell) {
            case RecurrentCell::rnn:
                for (std::int64_t j = 0; j < form_.hidden; ++j) {
                    next_[j] = activate(0, from_input(x, 0, j) + from_state(hidden, 0, j));
                }
                break;
            case RecurrentCell::gru:
                step_gru(x);
                break;
            case RecurrentCell::lstm:
                step_lstm(x);
                break;
        }
        std::copy_n(next_, form_.hidden, hidden);
    }

    double* hidden;
    double* cell;

  private:
    double activate(std::size_t which, double x) const {
        return applied(activations_[which], std::clamp(x, -double{form_.clip}, double{form_.clip}));
    }

    // X W^T + Wb of unit j of a gate.
    double from_input(const T* x, std::int64_t gate, std::int64_t j) const {
        const std::int64_t row = gate * form_.hidden + j;
        double sum = bias_ == nullptr ? 0 : bias_[row];
        for (std::int64_t k = 0; k < form_.inputs; ++k) sum += double{x[k]} * w_[row * form_.inputs + k];
        return sum;
    }

    // state R^T + Rb of unit j of a gate.
    double from_state(const double* state, std::int64_t gate, std::int64_t j) const {
        const std::int64_t row = gate * form_.hidden + j;
        double sum = bias_ == nullptr ? 0 : bias_[form_.gates() * form_.hidden + row];
        for (std::int64_t k = 0; k < form_.hidden; ++k) sum += state[k] * r_[row * form_.hidden + k];
        return sum;
    }

    void step_gru(const T* x) {
        double* update = gates_;
        for (std::int64_t j = 0; j < form_.hidden; ++j) {
            update[j] = activate(0, from_input(x, 0, j) + from_state(hidden, 0, j));
            reset_[j] = activate(0, from_input(x, 1, j) + from_state(hidden, 1, j));
            if (!form_.linear_before_reset) reset_[j] *= hidden[j];
        }
        for (std::int64_t j = 0; j < form_.hidden; ++j) {
            const double recurrent =
                form_.linear_before_reset ? reset_[j] * from_state(hidden, 2, j) : from_state(reset_, 2, j);
            const double candidate = activate(1, from_input(x, 2, j) + recurrent);
            next_[j] = (1 - update[j]) * candidate + update[j] * hidden[j];
        }
    }

    double peephole(std::int64_t gate, std::int64_t j) const {
        return peepholes_ == nullptr ? 0 : peepholes_[gate * form_.hidden + j] * cell[j];
    }

    void step_lstm(const T* x) {
        for (std::int64_t j = 0; j < form_.hidden; ++j) {
            const auto sum = [&](std::int64_t gate) {
                return from_input(x, gate, j) + from_state(hidden, gate, j);
            };
            const double input = activate(0, sum(0) + peephole(0, j));
            const double forget = form_.couples_gates ? 1 - input : activate(0, sum(2) + peephole(2, j));
            cell[j] = forget * cell[j] + input * activate(1, sum(3));
            next_[j] = activate(0, sum(1) + peephole(1, j)) * activate(2, cell[j]);
        }
    }

    const RecurrentForm& form_;
    std::span<const RecurrentActivation> activations_;
    const T* w_;
    const T* r_;
    const T* bias_;
    const T* peepholes_;
    double* next_;
    double* reset_;
    double* gates_;
};

template <typename T>
void run_sequence(const RecurrentForm& form, std::span<const TensorView> inputs,
                  std::span<const MutableTensorView> outputs, std::int64_t direction, std::int64_t sequence,
                  double* scratch) {
    Sequence<T> state(form, inputs, direction, scratch);
    const std::int64_t offset = form.state_offset(direction, sequence);
    const auto start = [&](double* to, const T* from) {
        if (from == nullptr)
            std::fill_n(to, form.hidden, 0.0);
        else
            std::copy_n(from, form.hidden, to);
    };
    start(state.hidden, elements<T>(inputs, RecurrentInput::hidden, offset));
    start(state.cell, elements<T>(inputs, RecurrentInput::cell, offset));
    const auto output = [&](std::size_t i, std::int64_t at) -> T* {
        if (i >= outputs.size() || outputs[i].data == nullptr) return nullptr;
        return reinterpret_cast<T*>(outputs[i].data) + at;
    };
    const auto write = [&](const double* from, T* to) {
        if (to == nullptr) return;
        for (std::int64_t j = 0; j < form.hidden; ++j) to[j] = static_cast<T>(from[j]);
    };
    const std::int64_t length = recurrent_length(form, inputs, sequence);
    for (std::int64_t i = 0; i < form.steps; ++i) {
        const std::int64_t step = i < length && form.is_reversed(direction) ? length - 1 - i : i;
        T* y = output(0, form.y_offset(step, direction, sequence));
        if (i < length) {
            state.step(elements<T>(inputs, RecurrentInput::x, form.x_row(step, sequence) * form.inputs));
            write(state.hidden, y);
        } else if (y != nullptr) {
            std::fill_n(y, form.hidden, T{0});
        }
    }
    write(state.hidden, output(1, offset));
    write(state.cell, output(2, offset));
}

}  // namespace

Prepared RecurrentReference::prepare(const NodeContext& context) {
    form_ = read_recurrent_form(context, cell_);
    Prepared prepared;
    prepared.outputs = form_.outputs(context.node.outputs.size());
    prepared.scratch_bytes = Sequence<float>::scratch_bytes(form_);
    return prepared;
}

void RecurrentReference::run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
                             Workspace& workspace) const {
    auto* scratch = reinterpret_cast<double*>(workspace.scratch.data());
    for (std::int64_t direction = 0; direction < form_.directions; ++direction) {
        for (std::int64_t sequence = 0; sequence < form_.batch; ++sequence) {
            if (form_.type == DataType::float32)
                run_sequence<float>(form_, inputs, outputs, direction, sequence, scratch);
            else
                run_sequence<double>(form_, inputs, outputs, direction, sequence, scratch);
        }
    }
}

}  // namespace qcalib
