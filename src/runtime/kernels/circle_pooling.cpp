// Pooling and resampling of Circle.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/circle_lowering.h"

namespace qcalib {

namespace {

using Operand = CircleLowering::Operand;
using Numbers = std::vector<std::int64_t>;

Operand picture_input(CircleLowering& lowering, std::size_t i = 0) {
    const Operand input = lowering.required_input(i);
    if (lowering.of(input).rank() != 4) {
        lowering.context().refuse(
            fmt::format("expected an input [N,H,W,C], found shape {}", to_string(lowering.of(input).shape)));
    }
    return input;
}

Operand pooled(CircleLowering& lowering, std::string_view op_type, Operand input) {
    const Node& node = lowering.node();
    const auto number = [&](std::string_view name) { return node.attribute<std::int64_t>(name, 1); };
    CircleLowering::Attributes attributes;
    attributes["kernel_shape"] = Numbers{number("filter_height"), number("filter_width")};
    attributes["strides"] = Numbers{number("stride_h"), number("stride_w")};
    attributes["auto_pad"] =
        std::string(node.attribute<std::string>("padding", "SAME") == "SAME" ? "SAME_UPPER" : "VALID");
    return lowering.channels_last(
        lowering.run(op_type, {lowering.channels_second(input)}, std::move(attributes)));
}

// The mean divides by the elements that there are under the window.
void lower_average_pool(CircleLowering& lowering) {
    lowering.activated_result(pooled(lowering, "AveragePool", picture_input(lowering)));
}

void lower_max_pool(CircleLowering& lowering) {
    lowering.activated_result(pooled(lowering, "MaxPool", picture_input(lowering)));
}

void lower_l2_pool(CircleLowering& lowering) {
    const Operand input = picture_input(lowering);
    const Operand mean = pooled(lowering, "AveragePool", lowering.run("Mul", {input, input}));
    lowering.activated_result(lowering.run("Sqrt", {mean}));
}

// Resizes to the heights and widths of input 1.
void resize_picture(CircleLowering& lowering, CircleLowering::Attributes attributes) {
    const Operand input = lowering.channels_second(picture_input(lowering));
    const Numbers size = lowering.context().integers(1);
    if (size.size() != 2) {
        lowering.context().refuse(
            fmt::format("expected a height and a width to resize to, found {}", to_string(size)));
    }
    const Shape& shape = lowering.of(input).shape;
    const Operand sizes = lowering.integers({shape[0], shape[1], size[0], size[1]});
    lowering.result(0, lowering.channels_last(lowering.run(
                           "Resize", {input, CircleLowering::absent, CircleLowering::absent, sizes},
                           std::move(attributes), 13)));
}

std::string coordinates_of(const CircleLowering& lowering) {
    if (lowering.node().attribute<std::int64_t>("align_corners", 0) != 0) return "align_corners";
    const bool half = lowering.node().attribute<std::int64_t>("half_pixel_centers", 0) != 0;
    return half ? "half_pixel" : "asymmetric";
}

void lower_resize_bilinear(CircleLowering& lowering) {
    resize_picture(lowering, {{"mode", std::string("linear")},
                              {"coordinate_transformation_mode", coordinates_of(lowering)}});
}

// From a place between two elements the lower is taken; halves go up where places are of pixel centres or
// corners.
void lower_resize_nearest(CircleLowering& lowering) {
    const std::string coordinates = coordinates_of(lowering);
    resize_picture(lowering, {{"mode", std::string("nearest")},
                              {"coordinate_transformation_mode", coordinates},
                              {"nearest_mode",
                               std::string(coordinates == "asymmetric" ? "floor" : "round_prefer_ceil")}});
}

void rearrange_blocks(CircleLowering& lowering, std::string_view op_type) {
    const Operand input = lowering.channels_second(picture_input(lowering));
    const auto block = lowering.node().attribute<std::int64_t>("block_size", 0);
    lowering.result(0, lowering.channels_last(lowering.run(op_type, {input}, {{"blocksize", block}})));
}

void lower_depth_to_space(CircleLowering& lowering) {
    rearrange_blocks(lowering, "DepthToSpace");
}

void lower_space_to_depth(CircleLowering& lowering) {
    rearrange_blocks(lowering, "SpaceToDepth");
}

}  // namespace

void register_circle_pooling(KernelRegistry& registry) {
    add_circle_operator<lower_average_pool>(registry, "AVERAGE_POOL_2D", "the mean under a sliding window");
    add_circle_operator<lower_max_pool>(registry, "MAX_POOL_2D", "the greatest under a sliding window");
    add_circle_operator<lower_l2_pool>(registry, "L2_POOL_2D", "the root of the mean square under a window");
    add_circle_operator<lower_resize_bilinear>(registry, "RESIZE_BILINEAR", "pictures resized, blended", {1});
    add_circle_operator<lower_resize_nearest>(registry, "RESIZE_NEAREST_NEIGHBOR",
                                              "pictures resized, nearest elements", {1});
    add_circle_operator<lower_depth_to_space>(registry, "DEPTH_TO_SPACE", "channels as blocks of pixels");
    add_circle_operator<lower_space_to_depth>(registry, "SPACE_TO_DEPTH", "blocks of pixels as channels");
}

}  // namespace qcalib
