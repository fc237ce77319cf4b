#pragma once

#include <vector>

#include "dataset/input_spec.h"
#include "graph/graph.h"

namespace qcalib {

// The model's inputs as samples must fill them, in the graph's order. float16, bfloat16 and double inputs are
// fed as float32.
std::vector<InputSpec> input_specs(const Graph& graph);

}  // namespace qcalib
