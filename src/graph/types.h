#pragma once

#include "graph/graph.h"

namespace qcalib {

// Fills Value::declared_type where the file does not say it, from what makes the value: ONNX's own operators
// hand the type of their first input on, but for those that say otherwise (Cast, Shape, comparisons, ...).
// Left undefined behind operators of other domains. The nodes must be sorted.
void infer_types(Graph& graph);

}  // namespace qcalib
