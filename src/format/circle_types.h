#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace qcalib {

// The element types that luci's exporter writes for a graph whose tensors have been given `types` ("uint8",
// "float32", ...; by ValueId): an operator's output has the type of its first data input, whatever was given,
// but for those that make a type of their own (DEQUANTIZE, CAST, comparisons, ARG_MAX, ...).
std::vector<std::string> inferred_circle_types(const Graph& graph, std::vector<std::string> types);

}  // namespace qcalib
