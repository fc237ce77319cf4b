#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "mapping/axis_map.h"
#include "mapping/input_binding.h"

namespace qcalib {

// Random data for one input, not symmetric in anything: float values of a normal distribution around 0.1,
// each element moved by an offset of its own, times `scale`; integers 0 or 1; bools.
Tensor random_input(DataType type, const Shape& shape, std::uint64_t seed, double scale);

// A Circle model's input as the ONNX model takes it: permuted, in its shape and integer type. Error naming
// the input where the data cannot be.
Tensor laid_out(const Tensor& tensor, const AxisMap& map, const Shape& shape, DataType type,
                const std::string& input);

}  // namespace qcalib
