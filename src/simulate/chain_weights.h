#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulate/chain_layers.h"
#include "simulate/encodings.h"
#include "simulate/integer_chain.h"
#include "target/simulation_rule.h"

namespace qcalib {

// The weights of a layer, channel by channel in the order of their elements, in float and in double, with a
// batch normalization behind it taken in; and its biases.
struct LayerWeights {
    ValueId value = no_value;           // the weight in the model; none in a Clip alone
    Shape shape;                        // of the weight
    std::vector<double> weights;        // in the order of the file
    std::vector<std::size_t> channels;  // of each weight
    std::vector<double> biases;         // one a channel, or none
    ValueId bias_value = no_value;      // where a value of the model holds them as they are
    std::size_t channel_count = 1;
    std::int64_t axis = 1;  // of the channels in the layer's output, from the end where negative

    double greatest_weight() const;
    double greatest_bias() const;
};
// Of a convolution, an inner product, a batch norm, or a Clip (one weight, 1). Nothing
// where the operands are no such thing.
std::optional<LayerWeights> layer_weights(const SimulatedModel& model, const ChainLayer& layer);

// The codes of weights at a scale: rounded half away from zero, saturated to -2^(bits-1) ... 2^(bits-1) - 1,
// or 2^(bits-1) where `top` keeps it.
std::vector<std::int64_t> weight_codes(const std::vector<double>& weights, double scale, int bits,
                                       TopWeight top);

// Biases at the accumulator's scale `sums`, whole numbers.
std::vector<double> bias_codes(const std::vector<double>& biases, double sums, int bits, bool signed_input,
                               BiasForm form);

// What became of a constant: `codes` at `scale` beside what it was.
QuantizedConstant quantized_constant(const std::vector<double>& before, const std::vector<double>& codes,
                                     double scale);

}  // namespace qcalib
