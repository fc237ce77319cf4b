#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/kernel.h"

namespace qcalib {

// How one axis is resized: each index of the target is blended from `taps` elements of the source.
struct ResizeAxis {
    std::int64_t source_size = 0;
    std::int64_t target_size = 0;
    std::size_t taps = 1;               // 1: one element as it is, 2: linear, 4: cubic
    bool identity = true;               // every index comes from itself
    std::vector<std::int64_t> indices;  // target_size * taps, held to the axis
    std::vector<float> weights;         // the same, adding up to 1
    std::vector<std::uint8_t> outside;  // per target index: gets the extrapolation value
};

enum class ResizeMode : std::uint8_t { nearest, linear, cubic };

struct ResizeGeometry {
    ResizeMode mode = ResizeMode::nearest;
    std::vector<ResizeAxis> axes;  // in the graph's order
    float extrapolation_value = 0;

    Shape target_shape() const;
};

// The geometry of a Resize (opset 10 on) or Upsample (7 to 9) node. Coordinates are computed in float32 by
// the formulas of ONNX's Resize: nearest elements are then chosen at the same places as by onnxruntime.
// Refuses antialiasing.
ResizeGeometry resize_geometry(const NodeContext& context);

}  // namespace qcalib
