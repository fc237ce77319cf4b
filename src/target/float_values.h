#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace qcalib {

// For each value of the graph, whether it holds floating-point numbers: by the type the file declares; where
// it declares none, `known_float` (a value that was counted, a float constant), or that of the first operand
// where the operator that makes the value hands its type on. What cannot be told is taken for no float.
std::vector<bool> float_values(const Graph& graph, const std::function<bool(ValueId)>& known_float);

}  // namespace qcalib
