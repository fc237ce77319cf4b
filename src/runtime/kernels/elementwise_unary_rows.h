#pragma once

#include <cstddef>

namespace qcalib {

// What an operator's attributes say: alpha and beta, lower and upper bound, ...
struct UnaryParameters {
    double a = 0;
    double b = 0;
};

enum class UnaryFunction {
    none,
    relu,
    clip,
    leaky_relu,
    thresholded_relu,
    elu,
    celu,
    selu,
    sigmoid,
    hard_sigmoid,
    hard_swish,
    swish,
    tanh,
    softplus,
    softsign,
    mish,
    erf,
    gelu,
    gelu_tanh,
    exp,
    log,
    sqrt,
    reciprocal,
    negate,
    absolute,
    floor,
    ceil,
    round,
};

// out[i] = f(in[i]) for `count` floats; `out` may be `in`.
using UnaryRow = void (*)(const float* in, float* out, std::size_t count, const UnaryParameters& parameters);

// The function with the best instructions in force, or nullptr for `none`.
UnaryRow fast_unary_row(UnaryFunction function);

}  // namespace qcalib
