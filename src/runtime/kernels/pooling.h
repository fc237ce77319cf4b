#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

// MaxPool, AveragePool and, through the next, the global ones.
void register_pooling(KernelRegistry& registry);
void register_global_pooling(KernelRegistry& registry);

}  // namespace qcalib
