#pragma once

#include <span>
#include <string>

#include "base/remarks.h"
#include "cli/encoding_options.h"
#include "graph/graph.h"
#include "target/assignment.h"

namespace qcalib {

// Overrides, and the base where `base` names one, by the names of the ONNX model that `graph` was converted
// from (--onnx): both are run, their tensors paired (mapping/mapping.h), and `options` gets them by the names
// of `graph`. Remarks say what the conversion changed and what has no partner.
void take_onnx_names(const std::string& onnx, const std::string& base, const Graph& graph,
                     std::span<const Emission> emissions, AssignmentOptions& options, Remarks& remarks);

}  // namespace qcalib
