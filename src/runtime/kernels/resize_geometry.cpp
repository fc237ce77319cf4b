#include "runtime/kernels/resize_geometry.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/kernels/axes.h"

namespace qcalib {

namespace {

enum class Coordinates : std::uint8_t {
    half_pixel,
    half_pixel_symmetric,
    pytorch_half_pixel,
    align_corners,
    asymmetric,
    tf_half_pixel_for_nn,
    tf_crop_and_resize,
};

enum class Nearest : std::uint8_t {
    round_prefer_floor,
    round_prefer_ceil,
    floor,
    ceil,
    simple,  // before opset 11: cut when growing, ceil when shrinking
};

struct ResizeOptions {
    ResizeMode mode = ResizeMode::nearest;
    Coordinates coordinates = Coordinates::half_pixel;
    Nearest nearest = Nearest::round_prefer_floor;
    float cubic_coefficient = -0.75F;
    bool exclude_outside = false;
};

// One axis as asked for.
struct AxisRequest {
    float scale = 1;
    float target_length = 0;  // source size times scale where scales are given: not a whole number then
    float roi_start = 0;
    float roi_end = 1;
    bool given = false;  // false: an axis that 'axes' leaves out
};

template <typename Choice>
Choice choose(const NodeContext& context, std::string_view attribute, const std::string& otherwise,
              const std::vector<std::string>& names) {
    const auto name = context.node.attribute<std::string>(attribute, otherwise);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        context.refuse(fmt::format("expected {} {}, found '{}'{}", attribute, join(names, ", "),
                                   printable(name), did_you_mean(name, names)));
    }
    return static_cast<Choice>(found - names.begin());
}

bool is_upsample(const NodeContext& context) {
    return context.node.op_type == "Upsample";
}

// True for Upsample and the Resize of opset 10, which know scales, nearest and linear only.
bool is_early_form(const NodeContext& context) {
    return is_upsample(context) || context.node.opset < 11;
}

ResizeOptions options_of(const NodeContext& context) {
    ResizeOptions options;
    if (is_early_form(context)) {
        auto mode = context.node.attribute<std::string>("mode", "nearest");
        if (mode != "nearest" && mode != "linear" && mode != "bilinear") {
            context.refuse(fmt::format("expected mode nearest or linear, found '{}'", printable(mode)));
        }
        options.mode = mode == "nearest" ? ResizeMode::nearest : ResizeMode::linear;
        options.coordinates = Coordinates::asymmetric;
        options.nearest = Nearest::simple;
        return options;
    }
    options.mode = choose<ResizeMode>(context, "mode", "nearest", {"nearest", "linear", "cubic"});
    options.coordinates =
        choose<Coordinates>(context, "coordinate_transformation_mode", "half_pixel",
                            {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                             "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"});
    options.nearest = choose<Nearest>(context, "nearest_mode", "round_prefer_floor",
                                      {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
    options.cubic_coefficient = context.node.attribute<float>("cubic_coeff_a", -0.75F);
    options.exclude_outside = context.node.attribute<std::int64_t>("exclude_outside", 0) != 0;
    return options;
}

// Inputs given as empty tensors count as left out.
bool has_values(const NodeContext& context, std::size_t input) {
    return context.has_input(input) && context.input(input).elements() > 0;
}

std::vector<float> scales_of(const NodeContext& context) {
    if (is_upsample(context) && !context.has_input(1)) {
        return context.node.attribute<std::vector<float>>("scales", {});
    }
    const std::size_t input = is_early_form(context) ? 1 : 2;
    return has_values(context, input) ? context.floats(input) : std::vector<float>{};
}

// Which axes scales, sizes and roi speak of.
std::vector<std::size_t> resized_axes(const NodeContext& context) {
    const std::size_t rank = context.input(0).rank();
    if (context.node.has_attribute("axes")) {
        return resolve_axes(context, context.node.attribute<std::vector<std::int64_t>>("axes", {}), rank);
    }
    std::vector<std::size_t> axes(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) axes[axis] = axis;
    return axes;
}

void require_count(const NodeContext& context, std::string_view what, std::size_t found,
                   std::size_t expected) {
    if (found != expected) {
        context.refuse(fmt::format("expected {} {} for {} axes, found {}", expected, what, expected, found));
    }
}

void apply_scales(const NodeContext& context, std::span<const std::size_t> axes,
                  std::span<const float> scales, std::vector<AxisRequest>& requests,
                  ResizeGeometry& geometry) {
    require_count(context, "scales", scales.size(), axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
        ResizeAxis& axis = geometry.axes[axes[i]];
        AxisRequest& request = requests[axes[i]];
        request.scale = scales[i];
        request.target_length = scales[i] * static_cast<float>(axis.source_size);
        if (!(scales[i] > 0) || !(request.target_length < 0x1p31F)) {
            context.refuse(
                fmt::format("expected scales above 0 and a result below 2^31, found {} for a dimension of {}",
                            scales[i], axis.source_size));
        }
        axis.target_size = static_cast<std::int64_t>(std::floor(request.target_length));
    }
}

// With a keep_aspect_ratio_policy one scale, the least or greatest, serves all axes given.
void keep_aspect_ratio(const NodeContext& context, std::span<const std::size_t> axes,
                       std::vector<AxisRequest>& requests, ResizeGeometry& geometry) {
    const auto policy =
        choose<int>(context, "keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
    if (policy == 0 || axes.empty()) return;
    float scale = requests[axes[0]].scale;
    for (const std::size_t axis : axes) {
        scale = policy == 1 ? std::min(scale, requests[axis].scale) : std::max(scale, requests[axis].scale);
    }
    for (const std::size_t axis : axes) {
        requests[axis].scale = scale;
        // Halves go up.
        geometry.axes[axis].target_size = static_cast<std::int64_t>(
            std::floor(scale * static_cast<float>(geometry.axes[axis].source_size) + 0.5F));
        requests[axis].target_length = static_cast<float>(geometry.axes[axis].target_size);
    }
}

void apply_sizes(const NodeContext& context, std::span<const std::size_t> axes,
                 std::span<const std::int64_t> sizes, std::vector<AxisRequest>& requests,
                 ResizeGeometry& geometry) {
    require_count(context, "sizes", sizes.size(), axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
        ResizeAxis& axis = geometry.axes[axes[i]];
        if (sizes[i] < 0 || sizes[i] >= std::int64_t{1} << 31 || (sizes[i] > 0 && axis.source_size == 0)) {
            context.refuse(fmt::format("cannot resize a dimension of {} to {}", axis.source_size, sizes[i]));
        }
        axis.target_size = sizes[i];
        requests[axes[i]].target_length = static_cast<float>(sizes[i]);
        requests[axes[i]].scale =
            axis.source_size == 0 ? 1 : static_cast<float>(sizes[i]) / static_cast<float>(axis.source_size);
    }
    keep_aspect_ratio(context, axes, requests, geometry);
}

void apply_roi(const NodeContext& context, std::span<const std::size_t> axes,
               std::vector<AxisRequest>& requests) {
    if (!has_values(context, 1)) context.refuse("expected a roi for tf_crop_and_resize, found none");
    const std::vector<float> roi = context.floats(1);
    require_count(context, "pairs of roi ends", roi.size() / 2, axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
        requests[axes[i]].roi_start = roi[i];
        requests[axes[i]].roi_end = roi[i + axes.size()];
    }
}

// Where target index `at` lies in the source.
float source_coordinate(Coordinates coordinates, std::int64_t at, const ResizeAxis& axis,
                        const AxisRequest& request) {
    const auto x = static_cast<float>(at);
    const auto source = static_cast<float>(axis.source_size);
    const auto target = static_cast<float>(axis.target_size);
    switch (coordinates) {
        case Coordinates::half_pixel:
            return (x + 0.5F) / request.scale - 0.5F;
        case Coordinates::half_pixel_symmetric: {
            const float adjustment = target / (request.scale * source);
            return source / 2 * (1 - adjustment) + (x + 0.5F) / request.scale - 0.5F;
        }
        case Coordinates::pytorch_half_pixel:
            return target > 1 ? (x + 0.5F) / request.scale - 0.5F : 0.0F;
        case Coordinates::align_corners:
            return request.target_length == 1 ? 0.0F : x * (source - 1) / (request.target_length - 1);
        case Coordinates::asymmetric:
            return x / request.scale;
        case Coordinates::tf_half_pixel_for_nn:
            return (x + 0.5F) / request.scale;
        case Coordinates::tf_crop_and_resize:
            break;
    }
    if (target > 1) {
        return request.roi_start * (source - 1) +
               x * (request.roi_end - request.roi_start) * (source - 1) / (target - 1);
    }
    return 0.5F * (request.roi_start + request.roi_end) * (source - 1);
}

// A place this near to the middle of two elements is the middle: float32 quotients miss it by about as much.
constexpr float middle_tolerance = 1e-6F;

float nearest_coordinate(Nearest mode, float x, float scale) {
    const float low = std::floor(x);
    switch (mode) {
        case Nearest::round_prefer_floor:
            return x - low < 0.5F + middle_tolerance ? low : low + 1;
        case Nearest::round_prefer_ceil:
            return x - low > 0.5F - middle_tolerance ? low + 1 : low;
        case Nearest::floor:
            return low;
        case Nearest::ceil:
            return std::ceil(x);
        case Nearest::simple:
            break;
    }
    return scale < 1 ? std::ceil(x) : std::trunc(x);
}

// Keys' cubic convolution (1981) with coefficient a, for the four elements around a place `s` behind the
// second.
std::array<float, 4> cubic_weights(float s, float a) {
    const auto near_side = [a](double d) { return ((a + 2.0) * d - (a + 3.0)) * d * d + 1; };
    const auto far_side = [a](double d) { return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a; };
    return {static_cast<float>(far_side(1.0 + s)), static_cast<float>(near_side(s)),
            static_cast<float>(near_side(1.0 - s)), static_cast<float>(far_side(2.0 - s))};
}

void add_linear(ResizeAxis& axis, float x) {
    const auto last = static_cast<float>(axis.source_size - 1);
    const float held = std::clamp(x, 0.0F, last);
    const float low = std::floor(held);
    axis.indices.push_back(static_cast<std::int64_t>(low));
    axis.indices.push_back(static_cast<std::int64_t>(std::min(low + 1, last)));
    axis.weights.push_back(1 - (held - low));
    axis.weights.push_back(held - low);
}

void add_cubic(ResizeAxis& axis, float x, const ResizeOptions& options) {
    const float low = std::floor(x);
    std::array<float, 4> weights = cubic_weights(x - low, options.cubic_coefficient);
    float sum = 0;
    for (std::size_t tap = 0; tap < weights.size(); ++tap) {
        const std::int64_t index = static_cast<std::int64_t>(low) - 1 + static_cast<std::int64_t>(tap);
        if (options.exclude_outside && (index < 0 || index >= axis.source_size)) weights[tap] = 0;
        sum += weights[tap];
        axis.indices.push_back(std::clamp<std::int64_t>(index, 0, axis.source_size - 1));
    }
    for (const float weight : weights)
        axis.weights.push_back(options.exclude_outside ? weight / sum : weight);
}

void make_tables(ResizeAxis& axis, const AxisRequest& request, const ResizeOptions& options) {
    const bool crops = options.coordinates == Coordinates::tf_crop_and_resize;
    axis.identity = !request.given || (!crops && request.scale == 1 && axis.source_size == axis.target_size);
    if (axis.identity || axis.target_size == 0 || axis.source_size == 0) return;
    axis.taps = options.mode == ResizeMode::nearest ? 1 : options.mode == ResizeMode::linear ? 2 : 4;
    axis.outside.assign(static_cast<std::size_t>(axis.target_size), 0);
    const auto last = static_cast<float>(axis.source_size - 1);
    for (std::int64_t at = 0; at < axis.target_size; ++at) {
        const float x = source_coordinate(options.coordinates, at, axis, request);
        if (crops && !(x >= 0 && x <= last)) axis.outside[static_cast<std::size_t>(at)] = 1;
        // Far outside nothing changes any more, and the casts to integers stay within their range.
        const float held = std::isnan(x) ? 0.0F : std::clamp(x, -4.0F, last + 4.0F);
        switch (options.mode) {
            case ResizeMode::nearest: {
                const float nearest = nearest_coordinate(options.nearest, held, request.scale);
                axis.indices.push_back(static_cast<std::int64_t>(std::clamp(nearest, 0.0F, last)));
                axis.weights.push_back(1);
                break;
            }
            case ResizeMode::linear:
                add_linear(axis, held);
                break;
            case ResizeMode::cubic:
                add_cubic(axis, held, options);
                break;
        }
    }
}

// Antialiasing only changes what shrinks, and never nearest.
void refuse_antialiasing(const NodeContext& context, ResizeMode mode,
                         const std::vector<AxisRequest>& requests) {
    if (context.node.attribute<std::int64_t>("antialias", 0) == 0 || mode == ResizeMode::nearest) return;
    if (std::any_of(requests.begin(), requests.end(), [](const AxisRequest& r) { return r.scale < 1; })) {
        context.refuse("antialias is not supported where an axis shrinks");
    }
}

}  // namespace

Shape ResizeGeometry::target_shape() const {
    Shape shape;
    for (const ResizeAxis& axis : axes) shape.push_back(axis.target_size);
    return shape;
}

ResizeGeometry resize_geometry(const NodeContext& context) {
    const ResizeOptions options = options_of(context);
    ResizeGeometry geometry;
    geometry.mode = options.mode;
    geometry.extrapolation_value = context.node.attribute<float>("extrapolation_value", 0);
    for (const std::int64_t size : context.input(0).shape) {
        geometry.axes.emplace_back();
        geometry.axes.back().source_size = geometry.axes.back().target_size = size;
    }
    std::vector<AxisRequest> requests(geometry.axes.size());
    const std::vector<std::size_t> axes = resized_axes(context);
    for (const std::size_t axis : axes) requests[axis].given = true;
    const std::vector<float> scales = scales_of(context);
    const bool has_sizes = !is_early_form(context) && has_values(context, 3);
    if (scales.empty() == !has_sizes && !geometry.axes.empty()) {
        context.refuse(has_sizes ? "expected scales or sizes, found both"
                                 : "expected scales or sizes, found neither");
    }
    if (has_sizes) {
        apply_sizes(context, axes, context.integers(3), requests, geometry);
    } else {
        apply_scales(context, axes, scales, requests, geometry);
    }
    if (options.coordinates == Coordinates::tf_crop_and_resize) apply_roi(context, axes, requests);
    refuse_antialiasing(context, options.mode, requests);
    for (std::size_t axis = 0; axis < requests.size(); ++axis) {
        make_tables(geometry.axes[axis], requests[axis], options);
    }
    return geometry;
}

}  // namespace qcalib
