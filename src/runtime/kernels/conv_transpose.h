#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

void register_conv_transpose(KernelRegistry& registry);

}  // namespace qcalib
