#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

void register_matmul(KernelRegistry& registry);

}  // namespace qcalib
