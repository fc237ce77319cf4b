#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

// Operators of two operands (or, for Max, Min and Sum, any number) that broadcast to one shape: arithmetic,
// comparison, logic. Any memory order that follow_inputs() allows; an operand of the output's shape may be
// overwritten. Integer sums, differences and products wrap; integer division by zero is an Error of the run.
void register_elementwise_binary(KernelRegistry& registry);

// Where: elements of the second input where the first is true, else of the third.
void register_where(KernelRegistry& registry);

}  // namespace qcalib
