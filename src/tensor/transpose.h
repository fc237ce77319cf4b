#pragma once

#include <cstddef>

namespace qcalib {

// A matrix in memory, its rows `stride` elements apart.
struct MatrixPlace {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t stride = 0;
};

// Copies elements of 4 bytes so that rows become columns: target[c * target_stride + r] = source[r * stride +
// c]. Neither need be aligned.
void transpose_words(const std::byte* source, const MatrixPlace& place, std::byte* target,
                     std::size_t target_stride);

}  // namespace qcalib
