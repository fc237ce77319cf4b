#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernel.h"

namespace qcalib {

// `axis` counted from the front. An Error names the node where it is outside [-rank, rank).
std::size_t resolve_axis(const NodeContext& context, std::int64_t axis, std::size_t rank);

// The same for several axes, which must differ.
std::vector<std::size_t> resolve_axes(const NodeContext& context, std::span<const std::int64_t> axes,
                                      std::size_t rank);

// Input `input` as integers where it is given, else the attribute, else nothing.
std::optional<std::vector<std::int64_t>> integers_from(const NodeContext& context, std::size_t input,
                                                       std::string_view attribute_name);

// Input 0 in the order it has, row-major for the rest: for operators that work in any order.
std::vector<MemoryOrder> keep_first_order(const NodeContext& context);

// The axes of a dense tensor as they lie in memory, outermost first.
std::vector<std::size_t> memory_axes(const TensorDescriptor& descriptor);

// How many elements apart two neighbours along each axis (in the graph's order) lie.
std::vector<std::int64_t> element_strides(const TensorDescriptor& descriptor);

}  // namespace qcalib
