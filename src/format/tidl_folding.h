#pragma once

#include <optional>
#include <string>
#include <vector>

#include "target/constant_lookup.h"
#include "target/tidl_layers.h"

namespace qcalib {

// The parameters of a layer as TIDL has them: batch normalizations folded in, one bias a channel.
struct TidlParameters {
    std::optional<Range> weights;     // of all channels together
    std::vector<float> bias;          // empty: the layer has none
    std::vector<std::string> faults;  // what could not be computed
};

// Of a Conv, ConvTranspose, Gemm or MatMul: weights w * s and bias (b - mean) * s + B with s = scale /
// sqrt(variance + epsilon) of the normalization behind it. Of a batch norm: s and B - mean * s, or those of
// the Mul, Add, Sub or Div by constants that it stands for; 1 and 0 where it was made for a Relu or Clip, as
// many as the tensor has channels.
TidlParameters tidl_parameters(const TidlLayer& layer, const Graph& graph, const ConstantLookup& constant);

}  // namespace qcalib
