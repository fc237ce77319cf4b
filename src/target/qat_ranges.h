#pragma once

#include <string>

#include "base/remarks.h"
#include "graph/graph.h"
#include "target/base_encodings.h"

namespace qcalib {

// The ranges that a model trained with quantization carries, by the names that the tensors have in `model`
// (which may be the same graph, or the float model without its range nodes):
//   - Clip with constant bounds, not of a constant: the range of its output, whatever the width; also a Min
//   and
//     a Max in a row, Relu and Min, and HardTanh (-1 to 1, or its attributes min_val and max_val);
//   - QuantizeLinear: the encoding of its input, per tensor or per channel;
//   - DequantizeLinear of an initializer: that of the weight it stands for;
//   - nodes of other domains with "quantize" in their names and inputs x, scale, zero point: as
//   QuantizeLinear, with
//     the attributes quant_min and quant_max, or 8 bits; they are named in a remark.
// A tensor that `model` does not have under the name of the input or output of such nodes is found by the
// node that makes it, or that reads it, where `model` has one of the same name and operator; else it is
// remarked. Errors start with `file` and the node: a scale that is no positive number, wrong channel counts.
BaseEncodings read_qat_ranges(const Graph& quantized, const Graph& model, const std::string& file,
                              Remarks& remarks);

}  // namespace qcalib
