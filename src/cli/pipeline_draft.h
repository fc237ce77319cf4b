#pragma once

#include <string>

#include "graph/graph.h"

namespace qcalib {

// A commented pipeline for a model: its inputs and what they look like, the keys that such inputs need, and
// all others with their defaults as comments. `model` and `list` are paths as the pipeline names them.
std::string draft_pipeline(const Graph& graph, const std::string& model, const std::string& list);

}  // namespace qcalib
