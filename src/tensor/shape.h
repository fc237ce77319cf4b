#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace qcalib {

// Dimensions in the graph's own order, outermost first; empty for a scalar.
using Shape = std::vector<std::int64_t>;

// Product of the dimensions. Throws Error where a dimension is negative or the product exceeds 2^62.
std::int64_t element_count(std::span<const std::int64_t> shape);

// "[1,3,640,640]".
std::string to_string(std::span<const std::int64_t> shape);

// The shape two operands broadcast to by ONNX's multidirectional rule, or nothing where they do not fit.
std::optional<Shape> broadcast_shapes(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

}  // namespace qcalib
