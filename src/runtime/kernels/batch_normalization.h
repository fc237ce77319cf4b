#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

void register_batch_normalization(KernelRegistry& registry);

}  // namespace qcalib
