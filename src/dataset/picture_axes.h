#pragma once

#include <cstddef>
#include <optional>

#include "dataset/input_spec.h"
#include "dataset/sample_reader.h"

namespace qcalib {

// Where the parts of a picture lie in an input's shape.
struct PictureAxes {
    std::optional<std::size_t> batch;
    std::size_t channel = 0;
    std::size_t height = 0;
    std::size_t width = 0;

    bool channels_last() const { return channel > width; }
};

// The axes of an input of rank 4 ([N,C,H,W] or [N,H,W,C]) or 3 (without N). It is channels-first where axis C
// has 1, 3 or 4 channels there, else channels-last where the last axis has, else channels-first where the
// size of C is open; nothing for any other shape.
std::optional<PictureAxes> picture_axes(const InputSpec& input);
// The same where `layout` says which axis is C.
std::optional<PictureAxes> picture_axes(const InputSpec& input, LayoutStep::Axes layout);

// True where `layout` says that raw and .npy data of this input are NHWC while the model takes NCHW: rank 4,
// and not a channels-last input by picture_axes.
bool to_be_permuted(const InputSpec& input, DataLayout layout);

}  // namespace qcalib
