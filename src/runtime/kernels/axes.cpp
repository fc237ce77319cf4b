#include "runtime/kernels/axes.h"

#include <numeric>

#include <fmt/format.h>

namespace qcalib {

std::size_t resolve_axis(const NodeContext& context, std::int64_t axis, std::size_t rank) {
    const auto signed_rank = static_cast<std::int64_t>(rank);
    if (axis < -signed_rank || axis >= signed_rank) {
        context.refuse(
            fmt::format("expected an axis from {} to {}, found {}", -signed_rank, signed_rank - 1, axis));
    }
    return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::vector<std::size_t> resolve_axes(const NodeContext& context, std::span<const std::int64_t> axes,
                                      std::size_t rank) {
    std::vector<std::size_t> result;
    std::vector<bool> seen(rank, false);
    for (const std::int64_t given : axes) {
        const std::size_t axis = resolve_axis(context, given, rank);
        if (seen[axis]) context.refuse(fmt::format("expected axes that differ, found axis {} twice", given));
        seen[axis] = true;
        result.push_back(axis);
    }
    return result;
}

std::optional<std::vector<std::int64_t>> integers_from(const NodeContext& context, std::size_t input,
                                                       std::string_view attribute_name) {
    if (context.has_input(input)) return context.integers(input);
    if (!context.node.has_attribute(attribute_name)) return std::nullopt;
    return context.node.attribute<std::vector<std::int64_t>>(attribute_name, {});
}

std::vector<MemoryOrder> keep_first_order(const NodeContext& context) {
    std::vector<MemoryOrder> orders = all_row_major(context);
    if (context.has_input(0)) orders[0] = context.input(0).order;
    return orders;
}

std::vector<std::size_t> memory_axes(const TensorDescriptor& descriptor) {
    std::vector<std::size_t> axes(descriptor.rank());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
    if (descriptor.order == MemoryOrder::channels_last && axes.size() > 2) {
        std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
    }
    return axes;
}

std::vector<std::int64_t> element_strides(const TensorDescriptor& descriptor) {
    std::vector<std::int64_t> strides(descriptor.rank());
    const std::vector<std::size_t> axes = memory_axes(descriptor);
    std::int64_t stride = 1;
    for (std::size_t i = axes.size(); i-- > 0;) {
        strides[axes[i]] = stride;
        stride *= descriptor.shape[axes[i]];
    }
    return strides;
}

}  // namespace qcalib
