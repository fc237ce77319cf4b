#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace qcalib {

// A buffer and the steps (first to last, both included) during which it is in use.
struct BufferLife {
    std::size_t bytes = 0;
    std::size_t first = 0;
    std::size_t last = 0;
};

struct BufferLayout {
    std::vector<std::size_t> offsets;  // one per buffer, 64-byte aligned
    std::size_t bytes = 0;             // of the whole arena
};

// Gives every buffer a place such that no two in use at the same step overlap: largest first, each into the
// smallest gap that holds it among the buffers whose life overlaps its own.
BufferLayout lay_out(std::span<const BufferLife> buffers);

}  // namespace qcalib
