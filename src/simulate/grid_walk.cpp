#include "simulate/grid_walk.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

using Visit = std::function<void(std::span<float>, const Encoding&)>;

std::size_t product(std::span<const std::int64_t> sizes) {
    std::size_t result = 1;
    for (const std::int64_t size : sizes) result *= static_cast<std::size_t>(size);
    return result;
}

std::size_t place_of(int axis, const TensorEncoding& encoding, std::size_t rank) {
    const int place = axis < 0 ? axis + static_cast<int>(rank) : axis;
    if (place < 0 || place >= static_cast<int>(rank)) {
        fail("'{}': axis {} of its encoding is none of its {} dimensions", printable(encoding.tensor), axis,
             rank);
    }
    return static_cast<std::size_t>(place);
}

struct Blocks {
    std::size_t axis = 0;
    std::size_t size = 1;
    std::size_t count = 1;
};

Blocks blocks_of(const TensorEncoding& encoding, const Shape& shape) {
    if (!encoding.per_block()) return {};
    Blocks blocks;
    blocks.axis = place_of(*encoding.block_axis, encoding, shape.size());
    blocks.size = static_cast<std::size_t>(std::max<std::int64_t>(1, encoding.block_size));
    blocks.count = (static_cast<std::size_t>(shape[blocks.axis]) + blocks.size - 1) / blocks.size;
    return blocks;
}

// Runs of elements of one channel, wherever the channels lie in memory.
void walk_channels(MutableTensorView view, const TensorEncoding& encoding, std::size_t axis,
                   const Visit& visit) {
    Shape in_memory = view.descriptor->shape;
    if (view.descriptor->order == MemoryOrder::channels_last) {
        std::rotate(in_memory.begin() + 1, in_memory.begin() + 2, in_memory.end());
        if (axis == 1)
            axis = in_memory.size() - 1;
        else if (axis > 1)
            --axis;
    }
    const std::span<const std::int64_t> sizes = in_memory;
    const std::size_t outer = product(sizes.first(axis));
    const std::size_t inner = product(sizes.subspan(axis + 1));
    std::span<float> rest = view.as<float>();
    for (std::size_t i = 0; i < outer; ++i) {
        for (const Encoding& channel : encoding.encodings) {
            visit(rest.first(inner), channel);
            rest = rest.subspan(inner);
        }
    }
}

void walk_blocks(MutableTensorView view, const TensorEncoding& encoding, std::size_t axis, Blocks blocks,
                 const Visit& visit) {
    const std::span<const std::int64_t> shape = view.descriptor->shape;
    if (view.descriptor->order != MemoryOrder::row_major && !same_in_both_orders(shape)) {
        fail("'{}': encodings by block are for parameters alone", printable(encoding.tensor));
    }
    const std::size_t axis_inner = product(shape.subspan(axis + 1));
    const std::size_t block_inner = product(shape.subspan(blocks.axis + 1));
    const std::size_t run = std::min(axis_inner, block_inner);  // elements that share both places
    const std::span<float> elements = view.as<float>();
    for (std::size_t i = 0; i < elements.size(); i += run) {
        const std::size_t channel = i / axis_inner % static_cast<std::size_t>(shape[axis]);
        const std::size_t block =
            i / block_inner % static_cast<std::size_t>(shape[blocks.axis]) / blocks.size;
        visit(elements.subspan(i, run), encoding.encodings[channel * blocks.count + block]);
    }
}

}  // namespace

void walk_grids(MutableTensorView view, const TensorEncoding& encoding, const Visit& visit) {
    const Shape& shape = view.descriptor->shape;
    if (encoding.encodings.size() == 1 && !encoding.per_block())
        return visit(view.as<float>(), encoding.encodings.front());
    if (!encoding.axis) {
        fail("'{}': found {} encodings and no axis they are along", printable(encoding.tensor),
             encoding.encodings.size());
    }
    const std::size_t axis = place_of(*encoding.axis, encoding, shape.size());
    const Blocks blocks = blocks_of(encoding, shape);
    const std::size_t expected = static_cast<std::size_t>(shape[axis]) * blocks.count;
    if (expected != encoding.encodings.size()) {
        fail("'{}': expected {} encodings for the shape {}, found {}", printable(encoding.tensor), expected,
             to_string(shape), encoding.encodings.size());
    }
    if (encoding.per_block())
        walk_blocks(view, encoding, axis, blocks, visit);
    else
        walk_channels(view, encoding, axis, visit);
}

Tensor copy_of(const Tensor& tensor) {
    Tensor copy(tensor.descriptor());
    std::ranges::copy(tensor.view().bytes(), copy.mutable_view().bytes().begin());
    return copy;
}

Tensor clipped_to(const Tensor& tensor, const TensorEncoding& encoding) {
    Tensor copy = copy_of(tensor);
    walk_grids(copy.mutable_view(), encoding, [](std::span<float> elements, const Encoding& grid) {
        const auto low = static_cast<float>(static_cast<double>(grid.offset) * grid.scale);
        const auto high = static_cast<float>(
            static_cast<double>(grid.offset + (std::int64_t{1} << grid.bits) - 1) * grid.scale);
        for (float& element : elements) element = std::clamp(element, low, high);
    });
    return copy;
}

}  // namespace qcalib
