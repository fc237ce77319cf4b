#pragma once

#include <string>
#include <vector>

#include "encoding/encoding.h"
#include "graph/graph.h"
#include "target/fusions.h"

namespace qcalib {

// What is odd about the encodings of a graph, whatever they come from, and has cost users of Qualcomm's tools
// a model: a MatMul with one operand encoded and one left in float; the output of a HardSwish that ends at 1
// as if it were a HardSigmoid's; the output of a Relu with codes below zero.
std::vector<std::string> emission_remarks(const Graph& graph, const Fusions& fusions, const EncodingSet& set);

}  // namespace qcalib
