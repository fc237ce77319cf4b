#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

// Operators of one input whose output element depends on the input element alone: Relu, Sigmoid, Exp, Not,
// ... Any memory order is taken and kept; the input may be overwritten.
void register_elementwise_unary(KernelRegistry& registry);

// Clip, whose bounds are attributes below opset 11 and inputs, perhaps computed ones, from there on.
void register_clip(KernelRegistry& registry);

}  // namespace qcalib
