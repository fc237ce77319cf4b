#pragma once

#include <vector>

#include "runtime/kernel.h"

namespace qcalib {

// The outputs of a node whose inputs are all known (context.inputs carry them, row-major); one tensor per
// output, empty where it is left out. Runs the kernel here and now, or takes the values it already knows.
std::vector<Tensor> fold_node(const NodeContext& context, Kernel& kernel);

// The tensor with float32 elements rounded to `half_type` where that is float16 or bfloat16, else as it is.
Tensor rounded_to(DataType half_type, Tensor tensor);

// A tensor of its own with the elements in row-major order.
Tensor row_major_copy(TensorView view);

// float32 elements as float64.
Tensor to_float64(const Tensor& tensor);

}  // namespace qcalib
