#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "simulate/model.h"
#include "target/tidl_layers.h"
#include "tensor/range.h"

namespace qcalib {

// What the integer chain makes of a layer.
struct ChainLayer {
    enum class Kind : std::uint8_t {
        convolution,    // Conv, ConvTranspose with constant weights
        inner_product,  // Gemm, MatMul with constant weights
        batch_norm,     // BatchNormalization alone, arithmetic with one number a channel
        clip,           // a Relu or Clip alone: a batch norm of weight 1
        sum,            // Add, Sub, Sum of activations
        product,        // Mul of activations
        average,        // GlobalAveragePool, AveragePool
        maximum,        // MaxPool with a Relu or Clip behind
        concat,         // Concat of activations
        passed,         // moves codes or takes the greatest: scale and sign of its input
        function,       // anything else: computed in float, then rounded to codes
        constant,       // makes no activation
    };
    Kind kind = Kind::function;
    std::vector<NodeIndex> nodes;  // in order; the first is the one that `kind` tells of
    NodeIndex norm = no_node;      // a batch normalization that a convolution takes in
    ValueId weight = no_value;
    ValueId bias = no_value;
    ValueId output = no_value;
    TidlActivation activation;
    bool is_unsigned = false;  // its codes, by the graph
    bool leading = false;      // a clip of a network's input
    bool whole = false;        // an average over all pixels
    bool stays_float = false;  // a Softmax that the network ends in

    NodeIndex node() const { return nodes.front(); }
    // What its Relu6 or Clip lets through.
    std::optional<Range> bounds() const {
        return activation.has_range() ? std::optional(activation.bounds) : std::nullopt;
    }
};

// TIDL's layers of a model as the chain computes them, in the order of their nodes. An Error where the model
// has If, Loop or Scan nodes.
std::vector<ChainLayer> chain_layers(const SimulatedModel& model);

// How many Clips carry the ranges of a model that nothing rounds in, as quantization-aware training for TIDL
// leaves it: 0 where it has nodes that quantize, or no Clip from 0 or to both sides with an end other than 6.
std::size_t range_clips(const SimulatedModel& model);

}  // namespace qcalib
