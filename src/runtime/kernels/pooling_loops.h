#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "runtime/onednn.h"

// Plain loops of pooling for any memory order, the reference beside oneDNN's.
namespace qcalib {

// The taps of a window that fall inside the input: [begin, end) of k, and the input's position of begin.
struct Taps {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t position = 0;
};

// The taps of output position o.
inline Taps taps_inside(const Window& window, std::size_t axis, std::int64_t o, std::int64_t extent) {
    const std::int64_t start = o * window.stride[axis] - window.pad_begin[axis];
    const std::int64_t dilation = window.dilation[axis];
    const std::int64_t begin = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    const std::int64_t room = extent - 1 - start;
    const std::int64_t end = room < 0 ? 0 : std::min(window.kernel[axis], room / dilation + 1);
    return {std::min(begin, end), end, start + begin * dilation};
}

// How many taps of output position o fall inside the input with its declared padding.
inline std::int64_t taps_with_padding(const Window& window, std::size_t axis, std::int64_t o,
                                      std::int64_t extent) {
    const std::int64_t room =
        extent + window.pad_end[axis] - 1 - (o * window.stride[axis] - window.pad_begin[axis]);
    return room < 0 ? 0 : std::min(window.kernel[axis], room / window.dilation[axis] + 1);
}

// For each output element: `auto state = start()`, then `take(state, input offset, input position)` for each
// tap inside the input, then `finish(state, output offset, output position)`.
template <typename Start, typename Take, typename Finish>
void for_each_window(const onednn::PoolingShape& shape, const Start& start, const Take& take,
                     const Finish& finish) {
    const TensorSteps in = steps_of(shape.input);
    const TensorSteps out = steps_of(shape.output);
    const Extents extents = spatial_extents(shape.input.shape);
    const Extents positions = spatial_extents(shape.output.shape);
    const Window& window = shape.window;
    const auto one_window = [&](std::int64_t source, std::int64_t target, const Extents& position) {
        const Taps z = taps_inside(window, 0, position[0], extents[0]);
        const Taps y = taps_inside(window, 1, position[1], extents[1]);
        const Taps x = taps_inside(window, 2, position[2], extents[2]);
        auto state = start();
        for (std::int64_t kz = z.begin, pz = z.position; kz < z.end; ++kz, pz += window.dilation[0]) {
            for (std::int64_t ky = y.begin, py = y.position; ky < y.end; ++ky, py += window.dilation[1]) {
                for (std::int64_t kx = x.begin, px = x.position; kx < x.end; ++kx, px += window.dilation[2]) {
                    const std::int64_t inside = pz * in.spatial[0] + py * in.spatial[1] + px * in.spatial[2];
                    take(state, source + inside, Extents{pz, py, px});
                }
            }
        }
        finish(state, target, position);
    };
    for (std::int64_t n = 0; n < shape.output.shape[0]; ++n) {
        for (std::int64_t c = 0; c < shape.output.shape[1]; ++c) {
            const std::int64_t source = n * in.batch + c * in.channel;
            const std::int64_t target = n * out.batch + c * out.channel;
            for (std::int64_t z = 0; z < positions[0]; ++z) {
                for (std::int64_t y = 0; y < positions[1]; ++y) {
                    for (std::int64_t x = 0; x < positions[2]; ++x) {
                        one_window(source,
                                   target + z * out.spatial[0] + y * out.spatial[1] + x * out.spatial[2],
                                   {z, y, x});
                    }
                }
            }
        }
    }
}

// The greatest element under each window (the type's lowest where all are NaN).
template <typename T>
void pool_greatest(const onednn::PoolingShape& shape, const T* x, T* y) {
    for_each_window(
        shape, [] { return std::numeric_limits<T>::lowest(); },
        [x](T& greatest, std::int64_t source, const Extents&) { greatest = std::max(greatest, x[source]); },
        [y](T greatest, std::int64_t target, const Extents&) { y[target] = greatest; });
}

// As pool_greatest for row-major tensors; `indices` takes the place of the first greatest in the whole input,
// counted row-major or (`column_major`) with the spatial dimensions reversed.
template <typename T>
void pool_greatest_indexed(const onednn::PoolingShape& shape, const T* x, T* y, std::int64_t* indices,
                           bool column_major) {
    struct Greatest {
        T value = std::numeric_limits<T>::lowest();
        std::int64_t index = -1;
    };
    const Extents extents = spatial_extents(shape.input.shape);
    const std::int64_t plane = extents[0] * extents[1] * extents[2];
    const auto take = [&](Greatest& greatest, std::int64_t source, const Extents& position) {
        if (!(x[source] > greatest.value) && greatest.index >= 0) return;
        const std::int64_t inside = column_major
                                        ? position[0] + extents[0] * (position[1] + extents[1] * position[2])
                                        : position[2] + extents[2] * (position[1] + extents[1] * position[0]);
        greatest = {std::max(greatest.value, x[source]), source / plane * plane + inside};
    };
    for_each_window(
        shape, [] { return Greatest{}; }, take,
        [&](const Greatest& greatest, std::int64_t target, const Extents&) {
            y[target] = greatest.value;
            indices[target] = greatest.index;
        });
}

// The mean of the elements under each window: their sum by the taps inside the input, or inside the padded
// input.
template <typename T>
void pool_average(const onednn::PoolingShape& shape, const T* x, T* y) {
    const Extents extents = spatial_extents(shape.input.shape);
    const bool with_padding = shape.kind == onednn::PoolingKind::average_counting_pads;
    const auto finish = [&](double sum, std::int64_t target, const Extents& position) {
        std::int64_t count = 1;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const Taps taps = taps_inside(shape.window, axis, position[axis], extents[axis]);
            count *= with_padding ? taps_with_padding(shape.window, axis, position[axis], extents[axis])
                                  : taps.end - taps.begin;
        }
        y[target] = static_cast<T>(sum / static_cast<double>(std::max<std::int64_t>(1, count)));
    };
    for_each_window(
        shape, [] { return 0.0; },
        [x](double& sum, std::int64_t source, const Extents&) { sum += static_cast<double>(x[source]); },
        finish);
}

}  // namespace qcalib
