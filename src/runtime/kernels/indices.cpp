#include "runtime/kernels/indices.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/kernels/axes.h"

namespace qcalib {

void require_index_type(const NodeContext& context, std::size_t input) {
    if (!context.has_input(input))
        context.refuse(fmt::format("expected indices as input {}, found none", input));
    const DataType type = context.input(input).type;
    if (type != DataType::int32 && type != DataType::int64) {
        context.refuse(fmt::format("expected int32 or int64 indices, found {}", name_of(type)));
    }
}

ElementPlace::ElementPlace(const NodeContext& context, const TensorDescriptor& data,
                           const TensorDescriptor& indices)
    : index_shape_(indices.shape), data_strides_(element_strides(data)) {
    axis_ = resolve_axis(context, context.node.attribute<std::int64_t>("axis", 0), data.rank());
    axis_size_ = data.shape[axis_];
    bool fits = indices.rank() == data.rank();
    for (std::size_t i = 0; fits && i < data.rank(); ++i) {
        fits = i == axis_ || index_shape_[i] <= data.shape[i];
    }
    if (!fits) {
        context.refuse(fmt::format("expected indices of the data's rank and within its shape {}, found {}",
                                   to_string(data.shape), to_string(indices.shape)));
    }
}

std::size_t ElementPlace::of(std::size_t position, std::int64_t index) const {
    auto rest = static_cast<std::int64_t>(position);
    auto offset = static_cast<std::int64_t>(checked_index(index, axis_size_)) * data_strides_[axis_];
    for (std::size_t i = index_shape_.size(); i-- > 0;) {
        if (i != axis_) offset += rest % index_shape_[i] * data_strides_[i];
        rest /= index_shape_[i];
    }
    return static_cast<std::size_t>(offset);
}

SlicePlace::SlicePlace(const NodeContext& context, const TensorDescriptor& data,
                       const TensorDescriptor& indices, std::int64_t batch_dims) {
    const auto batch = static_cast<std::size_t>(batch_dims);
    const std::int64_t depth = indices.shape.empty() ? -1 : indices.shape.back();
    const bool fits = batch_dims >= 0 && depth >= 0 && batch < indices.rank() &&
                      batch + static_cast<std::size_t>(depth) <= data.rank() &&
                      std::equal(data.shape.begin(), data.shape.begin() + batch_dims, indices.shape.begin());
    if (!fits) {
        context.refuse(fmt::format("cannot take indices {} (batch_dims {}) as coordinates into {}",
                                   to_string(indices.shape), batch_dims, to_string(data.shape)));
    }
    const std::span<const std::int64_t> data_shape(data.shape);
    const std::span<const std::int64_t> index_shape(indices.shape);
    const auto slice_shape = data_shape.subspan(batch + static_cast<std::size_t>(depth));
    const std::vector<std::int64_t> strides = element_strides(data);
    for (std::size_t i = batch; i < batch + static_cast<std::size_t>(depth); ++i) {
        sizes_.push_back(data_shape[i]);
        strides_.push_back(static_cast<std::size_t>(strides[i]));
    }
    slices_ = static_cast<std::size_t>(element_count(index_shape.first(index_shape.size() - 1)));
    slices_per_batch_ =
        static_cast<std::size_t>(element_count(index_shape.subspan(batch, index_shape.size() - 1 - batch)));
    batch_elements_ = static_cast<std::size_t>(element_count(data_shape.subspan(batch)));
    slice_elements_ = static_cast<std::size_t>(element_count(slice_shape));
    gathered_shape_.assign(index_shape.begin(), index_shape.end() - 1);
    gathered_shape_.insert(gathered_shape_.end(), slice_shape.begin(), slice_shape.end());
}

}  // namespace qcalib
