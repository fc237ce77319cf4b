#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "tensor/tensor.h"

namespace qcalib {

// What stays of a tensor's values whatever their order: sums, extremes and order statistics of the finite
// ones. Tensors with the same values in another layout have the same fingerprint but for rounding.
struct Fingerprint {
    static constexpr std::size_t orders = 16;

    std::size_t elements = 0;
    std::size_t nonfinite = 0;
    double sum = 0;
    double squares = 0;
    double magnitude = 0;  // sum of |x|
    float min = 0;
    float max = 0;
    std::array<float, orders> order{};  // evenly spaced order statistics, without the extremes

    float largest() const;  // the largest |x|
};

// Of a float32 or float64 tensor.
Fingerprint fingerprint(TensorView tensor);

// Whether two may be of the same values: each figure to `tolerance` of its own scale.
bool alike(const Fingerprint& a, const Fingerprint& b, double tolerance);

// Whether the values of several samples of one tensor are too poor to recognise it by: nearly one number, or
// two numbers alone (all zeros, a saturated or one-hot activation).
bool is_poor(std::span<const Fingerprint> samples);

}  // namespace qcalib
