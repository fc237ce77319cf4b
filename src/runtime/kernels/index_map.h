#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tensor/tensor.h"

namespace qcalib {

// Where each element of a dense target comes from, for operators whose axes do not depend on each other: the
// source offset (in elements) is the sum of one table entry per axis, the axes taken as they lie in the
// target's memory, outermost first. An element with an `outside` entry has no source and gets a fill value.
struct IndexMap {
    static constexpr std::int64_t outside = std::numeric_limits<std::int64_t>::min();

    std::vector<std::vector<std::int64_t>> offsets;
};

// The map of a target of the source's rank and memory order from the source index of each target index, per
// axis in the graph's order.
IndexMap map_axes(const TensorDescriptor& source,
                  const std::vector<std::vector<std::int64_t>>& source_indices);

// 0, 1, ..., size - 1: an axis that stays as it is.
std::vector<std::int64_t> identity_indices(std::int64_t size);

// Copies by an index map, one element after the other: the reference.
class ElementCopy {
  public:
    static constexpr bool any_order = false;

    ElementCopy() = default;
    ElementCopy(IndexMap map, std::size_t element_size);
    // `fill`: one element, needed where the map has entries outside.
    void run(const std::byte* source, std::byte* target, const std::byte* fill = nullptr) const;

  private:
    std::int64_t source_of(std::int64_t target_index) const;

    IndexMap map_;
    std::size_t element_size_ = 0;
    std::int64_t elements_ = 0;
};

// Copies by an index map in runs as long as the map allows.
class RunCopy {
  public:
    static constexpr bool any_order = true;

    RunCopy() = default;
    RunCopy(IndexMap map, std::size_t element_size);
    void run(const std::byte* source, std::byte* target, const std::byte* fill = nullptr) const;

  private:
    struct Run {
        std::int64_t source = 0;  // bytes from the row's start, or IndexMap::outside
        std::size_t bytes = 0;
    };
    enum class RowForm : std::uint8_t { runs, chunks, elements };

    void prepare_rows(const std::vector<std::int64_t>& table);
    void copy_block(std::size_t axis, const std::byte* source, std::byte* target,
                    const std::byte* fill) const;
    void copy_row(const std::byte* source, std::byte* target, const std::byte* fill) const;

    std::vector<std::vector<std::int64_t>> outer_;  // byte offsets per axis around the rows
    std::vector<std::size_t> block_bytes_;          // bytes of the target below one index of each outer axis
    std::vector<Run> runs_;
    std::vector<std::int64_t> chunk_offsets_;  // bytes, one per chunk of the row; no entry outside
    RowForm form_ = RowForm::runs;
    std::size_t chunk_bytes_ = 0;
    std::size_t element_size_ = 0;
    bool empty_ = true;
};

// Writes `bytes` bytes of copies of one element.
void fill_elements(std::byte* target, std::size_t bytes, const std::byte* fill, std::size_t element_size);

// Copies `rows` rows of `bytes` bytes whose starts are the given strides (in bytes) apart.
void copy_rows(const std::byte* source, std::size_t source_stride, std::byte* target,
               std::size_t target_stride, std::size_t bytes, std::size_t rows);

}  // namespace qcalib
