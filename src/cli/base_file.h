#pragma once

#include <string>

#include "base/remarks.h"
#include "graph/graph.h"
#include "target/base_encodings.h"

namespace qcalib {

// The encodings of --base: a file of any format that can be read, or those that the Clip and QuantizeLinear
// nodes of an ONNX model (*.onnx) carry, by the names `graph` has.
BaseEncodings read_base(const std::string& path, const Graph& graph, Remarks& remarks);

}  // namespace qcalib
