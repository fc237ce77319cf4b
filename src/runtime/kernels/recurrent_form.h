#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/kernel.h"

namespace qcalib {

enum class RecurrentCell : std::uint8_t { rnn, gru, lstm };

enum class RecurrentFunction : std::uint8_t {
    relu,
    tanh,
    sigmoid,
    affine,
    leaky_relu,
    thresholded_relu,
    scaled_tanh,
    hard_sigmoid,
    elu,
    softsign,
    softplus,
};

// f, g or h of a cell with the numbers it takes from activation_alpha and activation_beta.
struct RecurrentActivation {
    RecurrentFunction function = RecurrentFunction::tanh;
    float alpha = 0;
    float beta = 0;
};

// Where the operators have their inputs; RNN and GRU end with initial_h.
struct RecurrentInput {
    static constexpr std::size_t x = 0;
    static constexpr std::size_t w = 1;
    static constexpr std::size_t r = 2;
    static constexpr std::size_t bias = 3;
    static constexpr std::size_t lengths = 4;
    static constexpr std::size_t hidden = 5;
    static constexpr std::size_t cell = 6;
    static constexpr std::size_t peepholes = 7;
};

// What an LSTM, GRU or RNN node says, checked (ONNX operators of opset 7; `layout` since 14).
struct RecurrentForm {
    RecurrentCell cell = RecurrentCell::rnn;
    DataType type = DataType::float32;
    std::int64_t steps = 0;
    std::int64_t batch = 0;
    std::int64_t inputs = 0;                              // features of X
    std::int64_t hidden = 0;                              // units
    std::int64_t directions = 1;                          // 2: forward, then reverse
    bool reversed = false;                                // of the first direction
    bool batch_first = false;                             // layout 1
    float clip = std::numeric_limits<float>::infinity();  // inputs of activations are held in [-clip, clip]
    bool couples_gates = false;                           // LSTM's input_forget: f = 1 - i
    bool linear_before_reset = false;                     // GRU
    std::array<std::array<RecurrentActivation, 3>, 2> activations{};  // f, g, h of each direction

    // LSTM: i, o, f, c; GRU: z, r, h; RNN: i.
    std::int64_t gates() const {
        return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
    }
    bool is_reversed(std::int64_t direction) const { return reversed || direction == 1; }

    // Offsets in elements: of one step of one sequence in X (as a row) and in Y, and of a state.
    std::int64_t x_row(std::int64_t step, std::int64_t sequence) const {
        return batch_first ? sequence * steps + step : step * batch + sequence;
    }
    std::int64_t y_offset(std::int64_t step, std::int64_t direction, std::int64_t sequence) const {
        return (batch_first ? x_row(step, sequence) * directions + direction
                            : (step * directions + direction) * batch + sequence) *
               hidden;
    }
    std::int64_t state_offset(std::int64_t direction, std::int64_t sequence) const {
        return (batch_first ? sequence * directions + direction : direction * batch + sequence) * hidden;
    }

    // Y, Y_h and, of an LSTM, Y_c.
    std::vector<TensorDescriptor> outputs(std::size_t count) const;
};

// Reads and checks a node; refuses shapes, types and attributes that do not fit, naming the node.
RecurrentForm read_recurrent_form(const NodeContext& context, RecurrentCell cell);

// The steps of a sequence: all, or what sequence_lens says. Error where that is not in [0, steps].
std::int64_t recurrent_length(const RecurrentForm& form, std::span<const TensorView> inputs,
                              std::int64_t sequence);

}  // namespace qcalib
