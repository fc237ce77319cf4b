#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace qcalib {

// What an operator computes, whatever the file calls it: Conv, CONV_2D and DEPTHWISE_CONV_2D are
// "convolution", Gemm, MatMul and FULLY_CONNECTED "matmul". An operator that is in no table has its own name
// in lower case without '_'.
std::string operator_kind(const Node& node);

// Whether the operator gives its input's values as they are, at other places or in another shape.
bool keeps_values(const Node& node);

// Whether it pads or clips by a rule of its own, or is fused with what does: "RELU" of a Circle operator, ""
// where there is none.
std::string_view fused_activation(const Node& node);

}  // namespace qcalib
