#include <algorithm>

#include <fmt/format.h>

#include "runtime/fusion.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/convolution.h"

namespace qcalib {

namespace {

// Output extents that attributes ask for: `output_shape` (spatial dimensions, or all), or input * stride for
// SAME_*; none where pads decide.
std::optional<Extents> asked_extents(const NodeContext& context, AutoPad mode, const Extents& input,
                                     const Window& window) {
    Extents asked{1, 1, 1};
    if (context.node.has_attribute("output_shape")) {
        auto numbers = context.node.attribute("output_shape", std::vector<std::int64_t>{});
        if (numbers.size() == window.rank + 2) numbers.erase(numbers.begin(), numbers.begin() + 2);
        if (numbers.size() != window.rank) {
            context.refuse(fmt::format("attribute 'output_shape' should have {} numbers, found {}",
                                       window.rank, numbers.size()));
        }
        std::copy(numbers.begin(), numbers.end(), asked.end() - static_cast<std::ptrdiff_t>(window.rank));
        return asked;
    }
    if (mode != AutoPad::same_upper && mode != AutoPad::same_lower) return std::nullopt;
    for (std::size_t axis = 0; axis < 3; ++axis) asked[axis] = input[axis] * window.stride[axis];
    return asked;
}

// ONNX, ConvTranspose: total padding = stride * (input - 1) + output_padding + reach - output; the odd one
// lies at the end for SAME_UPPER, else at the beginning. `natural` is the output without padding.
void pad_for(const NodeContext& context, AutoPad mode, const Extents& natural, const Extents& output,
             Window& window) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t most = natural[axis] + std::max(window.stride[axis], window.dilation[axis]) - 1;
        if (output[axis] < 1 || output[axis] > most) {
            context.refuse(fmt::format("an output of {} (spatial dimension {}) cannot be made: 1 to {} could",
                                       output[axis], axis - (3 - window.rank), most));
        }
        const std::int64_t total = std::max<std::int64_t>(0, natural[axis] - output[axis]);
        const std::int64_t half = total / 2;
        window.pad_begin[axis] = mode == AutoPad::same_upper ? half : total - half;
        window.pad_end[axis] = total - window.pad_begin[axis];
    }
}

// The output extents; settles the window's pads.
Extents transposed_extents(const NodeContext& context, const Extents& input, Window& window) {
    const std::vector<std::int64_t> padding = number_list(context, "output_padding", window.rank, 0, 0);
    const AutoPad mode = read_auto_pad(context);
    Extents natural{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        natural[axis] = input[axis] == 0 ? 0 : (input[axis] - 1) * window.stride[axis] + window.reach(axis);
        if (axis < 3 - window.rank) continue;
        const std::int64_t more = padding[axis - (3 - window.rank)];
        if (more >= std::max(window.stride[axis], window.dilation[axis])) {
            context.refuse(
                fmt::format("attribute 'output_padding' should be less than the stride of {}, found {}",
                            window.stride[axis], more));
        }
        natural[axis] += more;
    }
    if (const auto asked = asked_extents(context, mode, input, window)) {
        pad_for(context, mode, natural, *asked, window);
        return *asked;
    }
    apply_auto_pad(mode, input, window);
    Extents output{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        output[axis] = natural[axis] - window.pad_begin[axis] - window.pad_end[axis];
        if (output[axis] < 1) {
            context.refuse(fmt::format("padding of {} and {} leaves nothing of an output of {}",
                                       window.pad_begin[axis], window.pad_end[axis], natural[axis]));
        }
    }
    return output;
}

onednn::ConvolutionShape read_conv_transpose(const NodeContext& context) {
    require_weights(context);
    const TensorDescriptor& input = context.input(0);
    const Shape& weights = context.input(1).shape;
    onednn::ConvolutionShape shape;
    shape.input = input;
    shape.weights = weights;
    shape.transposed = true;
    shape.groups = context.node.attribute<std::int64_t>("group", 1);
    if (shape.groups < 1 || weights[0] != input.shape[1] || weights[0] < 1 || weights[1] < 1 ||
        weights[0] % shape.groups != 0) {
        context.refuse(fmt::format("{} input channels in {} groups do not fit weights of shape {}",
                                   input.shape[1], shape.groups, to_string(weights)));
    }
    const std::int64_t channels = weights[1] * shape.groups;
    require_bias(context, channels);
    shape.bias = context.has_input(2);
    shape.window = read_window(context, kernel_extents(context));
    const Extents output = transposed_extents(context, spatial_extents(input.shape), shape.window);
    shape.output = {input.type, shape_of(input.shape[0], channels, output, shape.window.rank), input.order};
    if (context.node.domain == fused_domain) {
        shape.weight_strides = context.node.attribute("weight_strides", std::vector<std::int64_t>());
    }
    return shape;
}

}  // namespace

void register_conv_transpose(KernelRegistry& registry) {
    for (const char* domain : {"", fused_domain}) {
        registry.add({.domain = domain,
                      .op_type = "ConvTranspose",
                      .since = 1,
                      .summary = "transposed convolution over 1 to 3 spatial dimensions",
                      .make = []() -> std::unique_ptr<Kernel> {
                          return std::make_unique<ConvolutionKernel>(read_conv_transpose, true);
                      },
                      .make_reference = []() -> std::unique_ptr<Kernel> {
                          return std::make_unique<ConvolutionKernel>(read_conv_transpose, false);
                      }});
    }
}

}  // namespace qcalib
