#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "encoding/encoding.h"
#include "tensor/tensor.h"

namespace qcalib {

// Calls `visit` with runs of elements and the encoding they have, all elements once: of the whole tensor, or
// channel by channel, or block by block. `view` is float32 in any memory order, by block row-major. Error,
// starting with the tensor's name, where the encodings do not fit its shape.
void walk_grids(MutableTensorView view, const TensorEncoding& encoding,
                const std::function<void(std::span<float>, const Encoding&)>& visit);

// A copy of a row-major float32 tensor with each element clipped to the ends of its grid.
Tensor clipped_to(const Tensor& tensor, const TensorEncoding& encoding);
// A row-major copy.
Tensor copy_of(const Tensor& tensor);

}  // namespace qcalib
