#pragma once

#include <cstdint>

namespace qcalib {

// Scales of TIDL: multipliers, q = round(x * scale). Of a range up to `limit` (the greatest magnitude, > 0):
// 2^(bits - 1) / limit where codes have a sign, else 2^bits / limit. A limit below 1e-15 has the scale 1.
double chain_scale(int bits, bool is_signed, double limit);

// The scale of a network's input: 2^(bits - 1) / 2^ceil(log2(limit)).
double network_input_scale(int bits, double limit);

// The greatest scale of a weight, not above `weight`, for which `input * weight` is `output` times a power of
// two.
double aligned_weight_scale(double weight, double input, double output);

// What a bias is at the accumulator's scale `sums`: round(bias * sums) in BiasForm::int32.
struct SplitBias {
    double unit = 1;  // biasB
    double value(double bias, double sums) const;
};
// How TIDL keeps a layer's biases: as 16-bit integers times a unit up to 255 (127 where the input has a
// sign). The unit is 1 where a bias of `bits` bits at its own scale, 2^(bits-1) / limit, reaches the
// accumulator's scale with a factor no greater.
SplitBias split_bias(double limit, double sums, int bits, bool signed_input);

}  // namespace qcalib
