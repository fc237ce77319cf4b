#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// How raw data and arrays of an input of rank 4 are brought into its layout.
enum class DataMove {
    none,
    from_nhwc,  // the input is NCHW
    from_nchw,  // the input is NHWC
};

// What `layout` says of this input's data: none for those of another rank, and for an input that has the
// layout named (by picture_axes).
DataMove data_move(const InputSpec& input, DataLayout layout);

// The same of an array of shape `found`, which may lack the batch of 1. Where nothing is said and the array
// fits the input in the other layout alone, it is to be permuted; an Error that starts with `shown` where its
// channels are as many as its rows or columns, so that the shape leaves a doubt.
DataMove data_move(const InputSpec& input, DataLayout layout, std::span<const std::int64_t> found,
                   const std::string& shown);

using PartialShape = std::vector<std::optional<std::int64_t>>;

// The shape that data of an input have where they lie, before the move.
PartialShape shape_before(const PartialShape& input, DataMove move);
// Whether an array of shape `found` fills the shape; with its batch of 1 put in front, where it lacks it.
std::optional<Shape> fitted_shape(std::span<const std::int64_t> found, const PartialShape& wanted);
// " (channels last)" or the like of what was moved, else "".
std::string_view layout_remark(DataMove move);

// Elements as they lie, of shape `stored` (row-major), as the input takes them.
Tensor moved_data(DataType type, const Shape& stored, const std::byte* data, DataMove move);

}  // namespace qcalib
