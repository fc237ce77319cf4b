#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "runtime/kernel.h"

namespace qcalib {

// Refuses the node where input `input` is no int32 or int64 tensor.
void require_index_type(const NodeContext& context, std::size_t input);

// `index` counted from the front of an axis of `size`; an Error where it is outside [-size, size).
inline std::size_t checked_index(std::int64_t index, std::int64_t size) {
    if (index < -size || index >= size)
        fail("expected indices from {} to {}, found {}", -size, size - 1, index);
    return static_cast<std::size_t>(index < 0 ? index + size : index);
}

// Calls `visit` with the indices as a span of their type.
template <typename Visit>
void visit_indices(TensorView indices, Visit&& visit) {
    if (indices.descriptor->type == DataType::int32) {
        visit(indices.as<std::int32_t>());
    } else {
        visit(indices.as<std::int64_t>());
    }
}

// Where GatherElements and ScatterElements find an element of row-major data: at the place of its index in
// the index tensor, but along the attribute 'axis' at the index itself.
class ElementPlace {
  public:
    ElementPlace() = default;
    ElementPlace(const NodeContext& context, const TensorDescriptor& data, const TensorDescriptor& indices);
    // Offset in the data, in elements, for element `position` of the index tensor.
    std::size_t of(std::size_t position, std::int64_t index) const;

  private:
    Shape index_shape_;
    std::vector<std::int64_t> data_strides_;
    std::size_t axis_ = 0;
    std::int64_t axis_size_ = 0;
};

// Where GatherND and ScatterND find a slice of row-major data: the last axis of the index tensor holds
// coordinates into the data's axes after the first `batch_dims`, which both share.
class SlicePlace {
  public:
    SlicePlace() = default;
    SlicePlace(const NodeContext& context, const TensorDescriptor& data, const TensorDescriptor& indices,
               std::int64_t batch_dims);
    std::size_t slices() const { return slices_; }
    std::size_t slice_elements() const { return slice_elements_; }
    // The index tensor's shape without its last axis, then that of a slice.
    const Shape& gathered_shape() const { return gathered_shape_; }

    // Offset in the data, in elements, of slice `position`.
    template <typename Index>
    std::size_t of(std::size_t position, std::span<const Index> indices) const {
        std::size_t offset = position / slices_per_batch_ * batch_elements_;
        for (std::size_t i = 0; i < sizes_.size(); ++i) {
            offset += checked_index(indices[position * sizes_.size() + i], sizes_[i]) * strides_[i];
        }
        return offset;
    }

  private:
    Shape gathered_shape_;
    std::vector<std::int64_t> sizes_;  // of the data's axes that coordinates stand for
    std::vector<std::size_t> strides_;
    std::size_t slices_ = 0;
    std::size_t slices_per_batch_ = 1;
    std::size_t batch_elements_ = 0;
    std::size_t slice_elements_ = 0;
};

}  // namespace qcalib
