#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

// ReduceSum, ReduceMean, ReduceMax, ... over given axes (attribute or input; none: all), which stay as 1 or
// go.
void register_reduce(KernelRegistry& registry);

}  // namespace qcalib
