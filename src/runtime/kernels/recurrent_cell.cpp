#include "runtime/kernels/recurrent_cell.h"

#include <algorithm>
#include <cmath>

namespace qcalib {

namespace {

UnaryFunction unary_function(RecurrentFunction function) {
    switch (function) {
        case RecurrentFunction::relu:
            return UnaryFunction::relu;
        case RecurrentFunction::tanh:
        case RecurrentFunction::scaled_tanh:
            return UnaryFunction::tanh;
        case RecurrentFunction::sigmoid:
            return UnaryFunction::sigmoid;
        case RecurrentFunction::leaky_relu:
            return UnaryFunction::leaky_relu;
        case RecurrentFunction::hard_sigmoid:
            return UnaryFunction::hard_sigmoid;
        case RecurrentFunction::elu:
            return UnaryFunction::elu;
        case RecurrentFunction::softsign:
            return UnaryFunction::softsign;
        case RecurrentFunction::softplus:
            return UnaryFunction::softplus;
        case RecurrentFunction::affine:
        case RecurrentFunction::thresholded_relu:
            return UnaryFunction::none;
    }
    return UnaryFunction::none;
}

bool has_default_activations(const RecurrentForm& form, std::int64_t direction) {
    const auto& given = form.activations.at(static_cast<std::size_t>(direction));
    if (form.cell == RecurrentCell::rnn) return given[0].function == RecurrentFunction::tanh;
    return given[0].function == RecurrentFunction::sigmoid && given[1].function == RecurrentFunction::tanh &&
           (form.cell == RecurrentCell::gru || given[2].function == RecurrentFunction::tanh);
}

}  // namespace

RecurrentRowFunction::RecurrentRowFunction(const RecurrentActivation& activation, float clip)
    : activation_(activation), row_(fast_unary_row(unary_function(activation.function))), bound_(clip) {
    if (std::isfinite(clip)) clip_ = fast_unary_row(UnaryFunction::clip);
}

void RecurrentRowFunction::operator()(float* row, std::size_t count) const {
    const auto [function, alpha, beta] = activation_;
    if (clip_ != nullptr) clip_(row, row, count, {-bound_, bound_});
    const std::span values(row, count);
    switch (function) {
        case RecurrentFunction::affine:
            for (float& x : values) x = alpha * x + beta;
            return;
        case RecurrentFunction::thresholded_relu:
            for (float& x : values) x = x < alpha ? 0 : x;
            return;
        case RecurrentFunction::scaled_tanh:
            for (float& x : values) x *= beta;
            row_(row, row, count, {});
            for (float& x : values) x *= alpha;
            return;
        default:
            row_(row, row, count, {alpha, beta});
    }
}

RecurrentCellRows::RecurrentCellRows(const RecurrentForm& form, std::int64_t direction,
                                     const RecurrentFunctions& functions)
    : count_(static_cast<std::size_t>(form.hidden)),
      clip_(form.clip),
      couples_gates_(form.couples_gates),
      defaults_(has_default_activations(form, direction)),
      functions_(functions) {
    for (std::size_t i = 0; i < activations_.size(); ++i) {
        activations_.at(i) = {form.activations.at(static_cast<std::size_t>(direction)).at(i), form.clip};
    }
}

void RecurrentCellRows::lstm(float* gates, const float* peepholes, float* cell, float* hidden) const {
    if (defaults_ && !couples_gates_ && peepholes == nullptr) {
        return functions_.lstm(gates, cell, hidden, count_, clip_);
    }
    float* input = gates;
    float* output = input + count_;
    float* forget = output + count_;
    float* candidate = forget + count_;
    const auto add_peephole = [&](float* gate, std::size_t which) {
        if (peepholes == nullptr) return;
        for (std::size_t j = 0; j < count_; ++j) gate[j] += peepholes[which * count_ + j] * cell[j];
    };
    add_peephole(input, 0);
    activations_[0](input, count_);
    if (couples_gates_) {
        for (std::size_t j = 0; j < count_; ++j) forget[j] = 1 - input[j];
    } else {
        add_peephole(forget, 2);
        activations_[0](forget, count_);
    }
    activations_[1](candidate, count_);
    for (std::size_t j = 0; j < count_; ++j) cell[j] = forget[j] * cell[j] + input[j] * candidate[j];
    add_peephole(output, 1);
    activations_[0](output, count_);
    std::copy_n(cell, count_, candidate);
    activations_[2](candidate, count_);
    for (std::size_t j = 0; j < count_; ++j) hidden[j] = output[j] * candidate[j];
}

void RecurrentCellRows::gated(float* gate, const float* x, const float* added, float* y) const {
    if (defaults_) return functions_.gated(gate, x, added, y, count_, clip_);
    activations_[0](gate, count_);
    for (std::size_t j = 0; j < count_; ++j) y[j] = gate[j] * x[j] + (added == nullptr ? 0 : added[j]);
}

void RecurrentCellRows::gru(float* gate, float* candidate, float* hidden) const {
    if (defaults_) return functions_.gru(gate, candidate, hidden, count_, clip_);
    activations_[0](gate, count_);
    activations_[1](candidate, count_);
    for (std::size_t j = 0; j < count_; ++j) {
        hidden[j] = (1 - gate[j]) * candidate[j] + gate[j] * hidden[j];
    }
}

void RecurrentCellRows::rnn(float* sum, float* hidden) const {
    if (defaults_) return functions_.rnn(sum, hidden, count_, clip_);
    activations_[0](sum, count_);
    std::copy_n(sum, count_, hidden);
}

}  // namespace qcalib
