#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

// Softmax and LogSoftmax: over all axes from `axis` on together below opset 13, along `axis` alone from there
// on.
void register_softmax(KernelRegistry& registry);

}  // namespace qcalib
