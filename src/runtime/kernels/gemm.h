#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

void register_gemm(KernelRegistry& registry);

}  // namespace qcalib
