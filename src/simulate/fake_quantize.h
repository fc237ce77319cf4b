#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "encoding/encoding.h"
#include "target/simulation_rule.h"
#include "tensor/tensor.h"

namespace qcalib {

// What quantizing elements did to them. Elements that are no numbers or beyond 1e30 (masks) are in none of
// the sums.
struct QuantizationSums {
    std::uint64_t elements = 0;  // all
    std::uint64_t clipped = 0;   // beyond the grid by more than half a step
    double signal = 0;           // squares of the elements before
    double error = 0;            // squares of what they were moved by

    void add(const QuantizationSums& other);
};

// Replaces each element x by clamp(round(x / scale), offset, offset + 2^bits - 1) * scale, computed in
// double and rounded to float at the end; `encoding` is of integers. NaN stays as it is.
void fake_quantize(std::span<float> elements, const Encoding& encoding, ValueRounding rounding,
                   QuantizationSums& sums);

// Makes of a tensor what it is on the grids of its encoding: one, one a channel, one a block, or a floating
// point type of 16 bits.
class TensorQuantizer {
  public:
    // Error, starting with the tensor's name, where the encoding is of a kind that cannot be computed.
    TensorQuantizer(TensorEncoding encoding, ValueRounding rounding);

    // `view` is float32 in any memory order. Error, starting with the tensor's name, where the encoding does
    // not fit its shape.
    QuantizationSums apply(MutableTensorView view) const;

    // The mean step of its grids; 0 where there is none (floating point).
    double step() const { return step_; }
    const TensorEncoding& encoding() const { return encoding_; }

  private:
    TensorEncoding encoding_;
    ValueRounding rounding_;
    double step_ = 0;
};

}  // namespace qcalib
