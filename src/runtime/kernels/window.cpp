#include "runtime/kernels/window.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"

namespace qcalib {

TensorSteps steps_of(const TensorDescriptor& descriptor) {
    const std::int64_t channels = descriptor.shape[1];
    const Extents extents = spatial_extents(descriptor.shape);
    const std::int64_t pixels = extents[0] * extents[1] * extents[2];
    const bool last = descriptor.order == MemoryOrder::channels_last;
    const std::int64_t pixel = last ? channels : 1;
    return {
        channels * pixels, last ? 1 : pixels, {extents[1] * extents[2] * pixel, extents[2] * pixel, pixel}};
}

Extents spatial_extents(std::span<const std::int64_t> shape) {
    Extents extents{1, 1, 1};
    std::copy(shape.begin() + 2, shape.end(), extents.end() - static_cast<std::ptrdiff_t>(shape.size() - 2));
    return extents;
}

Shape shape_of(std::int64_t batch, std::int64_t channels, const Extents& extents, std::size_t rank) {
    Shape shape{batch, channels};
    shape.insert(shape.end(), extents.end() - static_cast<std::ptrdiff_t>(rank), extents.end());
    return shape;
}

std::vector<std::int64_t> number_list(const NodeContext& context, std::string_view name, std::size_t count,
                                      std::int64_t otherwise, std::int64_t least) {
    std::vector<std::int64_t> numbers =
        context.node.attribute(name, std::vector<std::int64_t>(count, otherwise));
    if (numbers.size() != count) {
        context.refuse(
            fmt::format("attribute '{}' should have {} numbers, found {}", name, count, numbers.size()));
    }
    for (const std::int64_t number : numbers) {
        if (number < least || number > std::numeric_limits<std::int32_t>::max()) {
            context.refuse(fmt::format("attribute '{}' should have numbers from {} to 2147483647, found {}",
                                       name, least, number));
        }
    }
    return numbers;
}

Window read_window(const NodeContext& context, std::span<const std::int64_t> kernel) {
    Window window;
    window.rank = kernel.size();
    const auto strides = number_list(context, "strides", window.rank, 1, 1);
    const auto dilations = number_list(context, "dilations", window.rank, 1, 1);
    const auto pads = number_list(context, "pads", 2 * window.rank, 0, 0);
    const std::size_t first = 3 - window.rank;
    for (std::size_t i = 0; i < window.rank; ++i) {
        window.kernel[first + i] = kernel[i];
        window.stride[first + i] = strides[i];
        window.dilation[first + i] = dilations[i];
        window.pad_begin[first + i] = pads[i];
        window.pad_end[first + i] = pads[window.rank + i];
    }
    return window;
}

AutoPad read_auto_pad(const NodeContext& context) {
    const auto text = context.node.attribute("auto_pad", std::string("NOTSET"));
    if (text == "NOTSET" || text.empty()) return AutoPad::notset;
    if (text == "VALID") return AutoPad::valid;
    if (text == "SAME_UPPER") return AutoPad::same_upper;
    if (text == "SAME_LOWER") return AutoPad::same_lower;
    const std::vector<std::string> names{"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    context.refuse(
        fmt::format("attribute 'auto_pad' should be NOTSET, VALID, SAME_UPPER or SAME_LOWER, found '{}'{}",
                    printable(text), did_you_mean(text, names)));
}

void apply_auto_pad(AutoPad mode, const Extents& input, Window& window) {
    if (mode == AutoPad::notset) return;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        std::int64_t total = 0;
        if (mode != AutoPad::valid) {
            const std::int64_t output = (input[axis] + window.stride[axis] - 1) / window.stride[axis];
            total = std::max<std::int64_t>(
                0, (output - 1) * window.stride[axis] + window.reach(axis) - input[axis]);
        }
        const std::int64_t half = total / 2;
        window.pad_begin[axis] = mode == AutoPad::same_upper ? half : total - half;
        window.pad_end[axis] = total - window.pad_begin[axis];
    }
}

Extents output_extents(const NodeContext& context, const Window& window, const Extents& input, bool ceil) {
    Extents output{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t room =
            input[axis] + window.pad_begin[axis] + window.pad_end[axis] - window.reach(axis);
        if (room < 0) {
            context.refuse(
                fmt::format("a window of {} does not fit into an input of {} with padding {} and {} (spatial "
                            "dimension {})",
                            window.reach(axis), input[axis], window.pad_begin[axis], window.pad_end[axis],
                            axis - (3 - window.rank)));
        }
        const std::int64_t stride = window.stride[axis];
        output[axis] = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
        if (ceil && (output[axis] - 1) * stride >= input[axis] + window.pad_begin[axis]) --output[axis];
    }
    return output;
}

Positions positions_inside(const Window& window, std::size_t axis, std::int64_t k, std::int64_t extent,
                           std::int64_t count) {
    const std::int64_t offset = k * window.dilation[axis] - window.pad_begin[axis];
    const std::int64_t stride = window.stride[axis];
    const std::int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const std::int64_t room = extent - 1 - offset;
    const std::int64_t last = room < 0 ? 0 : std::min(count, room / stride + 1);
    return {std::min(first, last), last};
}

void require_spatial(const NodeContext& context, std::size_t input) {
    const TensorDescriptor& descriptor = context.input(input);
    if (descriptor.rank() >= 3 && descriptor.rank() <= 5) return;
    context.refuse(fmt::format("input {} should have 1 to 3 spatial dimensions (rank 3 to 5), found shape {}",
                               input, to_string(descriptor.shape)));
}

void require_one_float_type(const NodeContext& context) {
    const DataType type = context.input(0).type;
    for (std::size_t i = 0; i < context.input_count(); ++i) {
        if (!context.has_input(i)) continue;
        const DataType found = context.input(i).type;
        if (found != type || (found != DataType::float32 && found != DataType::float64)) {
            context.refuse(
                fmt::format("inputs should all be float32, found {} for input {}", name_of(found), i));
        }
    }
}

}  // namespace qcalib
