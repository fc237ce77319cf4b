#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

// One line per file of kernels; each adds the operators of its family.
void register_all_kernels(KernelRegistry& registry);

}  // namespace qcalib
