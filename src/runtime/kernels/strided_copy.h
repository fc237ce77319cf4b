#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace qcalib {

// One axis of a copy; strides in elements.
struct CopyAxis {
    std::int64_t size = 0;
    std::int64_t source_stride = 0;
    std::int64_t target_stride = 0;
};

// Copies a box of elements between two strided arrangements: transposition and its relatives. The constructor
// merges axes that lie one after the other on both sides; a pair of axes, one dense in the source and the
// other in the target, is copied in tiles.
class StridedCopy {
  public:
    StridedCopy() = default;
    StridedCopy(std::vector<CopyAxis> axes, std::size_t element_size);
    void run(const std::byte* source, std::byte* target) const;

  private:
    template <typename Element>
    void copy(std::size_t axis, const Element* source, Element* target) const;
    template <typename Element>
    void copy_tiles(const Element* source, Element* target) const;

    std::vector<CopyAxis> axes_;  // the inner loop last
    std::size_t element_size_ = 0;
    bool empty_ = true;
    bool tiled_ = false;  // the last two axes are copied in tiles
};

}  // namespace qcalib
