#pragma once

#include <cstddef>

namespace qcalib {

// A tensor as it lies in memory, with one axis in its middle: [outer][axis][inner].
struct AxisBlocks {
    std::size_t outer = 1;
    std::size_t axis = 1;
    std::size_t inner = 1;
};

// Softmax (or its logarithm) along the axis, float32, with the best instructions in force. `out` may be `in`.
using SoftmaxFunction = void (*)(const float* in, float* out, const AxisBlocks& blocks);
SoftmaxFunction fast_softmax(bool logarithm);

}  // namespace qcalib
