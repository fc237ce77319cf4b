#include "dataset/picture_axes.h"

namespace qcalib {

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

bool to_be_permuted(const InputSpec& input, DataLayout layout) {
    if (layout != DataLayout::nhwc || !input.rank_known || input.shape.size() != 4) return false;
    const auto axes = picture_axes(input);
    return !axes || !axes->channels_last();
}

}  // namespace qcalib
