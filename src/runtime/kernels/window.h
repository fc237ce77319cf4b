#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/kernel.h"

namespace qcalib {

// One number per spatial dimension, innermost last; dimensions that a tensor of rank 3 or 4 lacks are the
// first.
using Extents = std::array<std::int64_t, 3>;

// A window that slides over 1 to 3 spatial dimensions. Position o of the output takes the input at
// o * stride - pad_begin + k * dilation for each k of the kernel.
struct Window {
    std::size_t rank = 0;  // spatial dimensions in use
    Extents kernel{1, 1, 1};
    Extents stride{1, 1, 1};
    Extents dilation{1, 1, 1};
    Extents pad_begin{};
    Extents pad_end{};

    // What the kernel covers with its gaps.
    std::int64_t reach(std::size_t axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
};

// Elements from one index to the next.
struct TensorSteps {
    std::int64_t batch = 0;
    std::int64_t channel = 0;
    Extents spatial{};
};

// Steps of a tensor of rank 3 to 5 in its memory order.
TensorSteps steps_of(const TensorDescriptor& descriptor);
// The spatial dimensions of a shape of rank 3 to 5.
Extents spatial_extents(std::span<const std::int64_t> shape);
// [n, channels, extents...] of `rank` spatial dimensions.
Shape shape_of(std::int64_t batch, std::int64_t channels, const Extents& extents, std::size_t rank);

// A node's attribute that has `count` numbers, each at least `least`; `otherwise` for all where it is not
// given. Refuses one of another length or beyond 2^31.
std::vector<std::int64_t> number_list(const NodeContext& context, std::string_view name, std::size_t count,
                                      std::int64_t otherwise, std::int64_t least);

// The window of `kernel` with the node's strides, dilations and pads.
Window read_window(const NodeContext& context, std::span<const std::int64_t> kernel);

enum class AutoPad : std::uint8_t { notset, valid, same_upper, same_lower };
AutoPad read_auto_pad(const NodeContext& context);

// Replaces the window's pads where auto_pad asks for it: VALID none; SAME_*: output = ceil(input / stride),
// the odd one of the padding at the end (UPPER) or at the beginning (LOWER).
void apply_auto_pad(AutoPad mode, const Extents& input, Window& window);

// Output extents of a convolution or pooling: (input + pads - reach) / stride + 1, rounded down or (`ceil`)
// up; rounded up, a window that would begin in the padding behind the input is left out. Refuses where none
// fits.
Extents output_extents(const NodeContext& context, const Window& window, const Extents& input, bool ceil);

// The positions o in [first, last) whose tap k falls inside an input of `extent`, of `count` positions at
// all.
struct Positions {
    std::int64_t first = 0;
    std::int64_t last = 0;
};
Positions positions_inside(const Window& window, std::size_t axis, std::int64_t k, std::int64_t extent,
                           std::int64_t count);

// Refuses an input of rank other than 3 to 5.
void require_spatial(const NodeContext& context, std::size_t input);
// Refuses inputs that are not float32 or float64, or not all of one type.
void require_one_float_type(const NodeContext& context);

}  // namespace qcalib
