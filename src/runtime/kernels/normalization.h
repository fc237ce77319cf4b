#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

// LayerNormalization (over all axes from `axis` on) and InstanceNormalization (over the spatial axes of each
// channel).
void register_normalization(KernelRegistry& registry);

}  // namespace qcalib
