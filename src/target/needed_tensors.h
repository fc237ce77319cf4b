#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "target/target.h"

namespace qcalib {

// Per value: whether the target fuses what makes it with the one operator that reads it, so that it needs no
// encoding of its own (Target::fusion_rules). Outputs of the graph and of bodies, and what several nodes
// read, are never fused.
std::vector<bool> fused_values(const Graph& graph, const Target& target);

// The names of the tensors whose statistics the target needs, in graph order: inputs and what nodes make, but
// what is fused (fused_values, Fusions::vanishes). Those whose type is not known are among them, those that
// are no floats are not.
std::vector<std::string> needed_tensors(const Graph& graph, const Target& target);

}  // namespace qcalib
