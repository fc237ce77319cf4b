#pragma once

#include <functional>

#include "graph/graph.h"
#include "tensor/tensor.h"

namespace qcalib {

// The value of a constant (initializer, or folded from initializers; float32 for all float types), or
// nullptr.
using ConstantLookup = std::function<const Tensor*(ValueId)>;

// That of a graph nobody has folded: initializers, what Constant nodes hold, and Identity of either. The
// graph must outlive it.
ConstantLookup constants_of(const Graph& graph);

}  // namespace qcalib
