#include "dataset/picture_axes.h"

#include <algorithm>

#include "base/error.h"
#include "dataset/input_names.h"

namespace qcalib {

namespace {

// Whether data in the other layout make sense: not where the input has that layout itself, unless its first
// and last axis may both be channels.
bool may_be_moved(const InputSpec& input, DataMove move) {
    const auto axes = picture_axes(input);
    if (!axes) return true;
    const bool both =
        picture_axes(input, LayoutStep::Axes::nchw) && picture_axes(input, LayoutStep::Axes::nhwc);
    return both || axes->channels_last() == (move == DataMove::from_nchw);
}

}  // namespace

std::optional<PictureAxes> picture_axes(const InputSpec& input) {
    return picture_axes(input, LayoutStep::Axes::as_model);
}

std::optional<PictureAxes> picture_axes(const InputSpec& input, LayoutStep::Axes layout) {
    const std::size_t rank = input.shape.size();
    if (!input.rank_known || rank < 3 || rank > 4) return std::nullopt;
    const std::size_t first = rank - 3;
    const std::optional<std::size_t> batch = rank == 4 ? std::optional<std::size_t>(0) : std::nullopt;
    const PictureAxes channels_first{batch, first, first + 1, first + 2};
    const PictureAxes channels_last{batch, first + 2, first, first + 1};
    const auto is_channel_count = [&](std::size_t axis) {
        const auto size = input.shape[axis];
        return size && (*size == 1 || *size == 3 || *size == 4);
    };
    if (layout != LayoutStep::Axes::as_model) {
        const PictureAxes& axes = layout == LayoutStep::Axes::nchw ? channels_first : channels_last;
        const bool taken = is_channel_count(axes.channel) || !input.shape[axes.channel];
        return taken ? std::optional(axes) : std::nullopt;
    }
    if (is_channel_count(channels_first.channel)) return channels_first;
    if (is_channel_count(channels_last.channel)) return channels_last;
    if (!input.shape[channels_first.channel]) return channels_first;
    return std::nullopt;
}

DataMove data_move(const InputSpec& input, DataLayout layout) {
    if (layout == DataLayout::as_model || !input.rank_known || input.shape.size() != 4) return DataMove::none;
    const auto axes = picture_axes(input);
    if (layout == DataLayout::nhwc)
        return axes && axes->channels_last() ? DataMove::none : DataMove::from_nhwc;
    return axes && !axes->channels_last() ? DataMove::none : DataMove::from_nchw;
}

DataMove data_move(const InputSpec& input, DataLayout layout, std::span<const std::int64_t> found,
                   const std::string& shown) {
    if (layout != DataLayout::as_model) return data_move(input, layout);
    if (!input.rank_known || input.shape.size() != 4 || fitted_shape(found, input.shape))
        return DataMove::none;
    for (const DataMove move : {DataMove::from_nhwc, DataMove::from_nchw}) {
        if (!may_be_moved(input, move)) continue;
        const auto stored = fitted_shape(found, shape_before(input.shape, move));
        if (!stored) continue;
        const std::size_t channel = move == DataMove::from_nhwc ? 3 : 1;
        const std::int64_t channels = (*stored)[channel];
        const std::int64_t rows = (*stored)[channel == 3 ? 1 : 2];
        const std::int64_t columns = (*stored)[channel == 3 ? 2 : 3];
        if (channels != rows && channels != columns) return move;
        fail(
            "{}: expected shape {} for {}, found {}, which fits as {}; but its axes of {} leave a doubt "
            "about "
            "which are the channels: say --data-layout {}, or transpose it",
            shown, to_string(input.shape), describe(input), to_string(found),
            move == DataMove::from_nhwc ? "NHWC" : "NCHW", channels,
            move == DataMove::from_nhwc ? "nhwc" : "nchw");
    }
    return DataMove::none;
}

PartialShape shape_before(const PartialShape& input, DataMove move) {
    if (move == DataMove::from_nhwc) return {input[0], input[2], input[3], input[1]};
    if (move == DataMove::from_nchw) return {input[0], input[3], input[1], input[2]};
    return input;
}

std::optional<Shape> fitted_shape(std::span<const std::int64_t> found, const PartialShape& wanted) {
    const auto fits = [&](const Shape& shape) {
        return std::equal(shape.begin(), shape.end(), wanted.begin(), wanted.end(),
                          [](std::int64_t size, const auto& open) { return !open || *open == size; });
    };
    Shape shape(found.begin(), found.end());
    if (fits(shape)) return shape;
    shape.insert(shape.begin(), 1);
    if (fits(shape)) return shape;
    return std::nullopt;
}

std::string_view layout_remark(DataMove move) {
    if (move == DataMove::none) return "";
    return move == DataMove::from_nhwc ? " (channels last)" : " (channels first)";
}

Tensor moved_data(DataType type, const Shape& stored, const std::byte* data, DataMove move) {
    if (move == DataMove::from_nchw) {
        // NCHW in channels-last order is NHWC.
        const TensorDescriptor source{type, stored, MemoryOrder::row_major};
        const TensorDescriptor target{type, stored, MemoryOrder::channels_last};
        Tensor tensor({type, {stored[0], stored[2], stored[3], stored[1]}, MemoryOrder::row_major});
        copy_to_order({&source, data}, {&target, tensor.mutable_view().data});
        return tensor;
    }
    TensorDescriptor source{type, stored, MemoryOrder::row_major};
    if (move == DataMove::from_nhwc) {
        source = {type, {stored[0], stored[3], stored[1], stored[2]}, MemoryOrder::channels_last};
    }
    Tensor tensor({type, source.shape, MemoryOrder::row_major});
    copy_to_order({&source, data}, tensor.mutable_view());
    return tensor;
}

}  // namespace qcalib
