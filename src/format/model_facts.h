#pragma once

#include "base/remarks.h"
#include "encoding/encoding_file.h"
#include "graph/graph.h"

namespace qcalib {

// The shapes of the graph's initializers and of values whose declared shape is fixed.
ShapeLookup shapes_of(const Graph& graph);

// Says of a file what its format leaves to the model: which entries without a section are parameters, which
// axis the channels of a weight lie on where the operator implies it (ConvTranspose, MatMul, Gemm), how
// blocks are nested. Entries that name no tensor of the graph become a remark; counts that do not fit the
// shapes one Error.
void add_model_facts(EncodingFile& file, const Graph& graph, Remarks& remarks);

}  // namespace qcalib
