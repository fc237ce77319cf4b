#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace qcalib {

// What a model's inputs may be: a data set holds numbers; the runtime takes strings, sequences and optional
// values, too.
enum class ModelInputs : std::uint8_t { numbers, any };

// Everything that keeps the graph from being run, one sentence each: values used but never made (or only in a
// body that cannot be seen from there), made twice, nodes in a cycle, outputs nobody makes, inputs of types
// that cannot be fed. Empty for a sound graph.
std::vector<std::string> verify(const Graph& graph, ModelInputs inputs = ModelInputs::numbers);

// Puts the nodes into an order in which each input is made before it is used, those of a body right before
// the node it belongs to, keeping the file's order wherever possible; fills Value::producer. Answers false
// where a cycle prevents it (the graph is then left as it was).
bool sort_nodes(Graph& graph);

}  // namespace qcalib
