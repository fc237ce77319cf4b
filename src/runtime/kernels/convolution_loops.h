#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/onednn.h"

// Plain loops of convolution and its transpose for any memory order, the reference beside oneDNN's.
namespace qcalib {

// One plane of each of two tensors. For a position p of the dense one and a tap k of the kernel, the other's
// position is p * stride + k * dilation - pad_begin.
template <typename T, typename U>
struct PlanePair {
    T* dense;
    Extents dense_extents;
    Extents dense_steps;
    U* sampled;
    Extents sampled_extents;
    Extents sampled_steps;
};

// Calls `row(dense, dense step, sampled, sampled step, count, weight)` for each innermost row of positions
// that tap `weight` of the kernel joins.
template <typename T, typename U, typename W, typename Row>
void for_each_row(const Window& window, const PlanePair<T, U>& planes, const W* weights, const Row& row) {
    const auto inside = [&](std::size_t axis, std::int64_t k) {
        return positions_inside(window, axis, k, planes.sampled_extents[axis], planes.dense_extents[axis]);
    };
    const auto sampled_at = [&](std::size_t axis, std::int64_t position, std::int64_t k) {
        const std::int64_t at =
            position * window.stride[axis] + k * window.dilation[axis] - window.pad_begin[axis];
        return at * planes.sampled_steps[axis];
    };
    for (std::int64_t kz = 0; kz < window.kernel[0]; ++kz) {
        const Positions z = inside(0, kz);
        for (std::int64_t ky = 0; ky < window.kernel[1]; ++ky) {
            const Positions y = inside(1, ky);
            for (std::int64_t kx = 0; kx < window.kernel[2]; ++kx, ++weights) {
                const Positions x = inside(2, kx);
                if (x.first >= x.last) continue;
                for (std::int64_t pz = z.first; pz < z.last; ++pz) {
                    for (std::int64_t py = y.first; py < y.last; ++py) {
                        T* dense = planes.dense + pz * planes.dense_steps[0] + py * planes.dense_steps[1] +
                                   x.first * planes.dense_steps[2];
                        U* sampled = planes.sampled + sampled_at(0, pz, kz) + sampled_at(1, py, ky) +
                                     sampled_at(2, x.first, kx);
                        row(dense, planes.dense_steps[2], sampled, planes.sampled_steps[2] * window.stride[2],
                            x.last - x.first, *weights);
                    }
                }
            }
        }
    }
}

// to[i * to_step] += from[i * from_step] * weight
template <typename T>
void accumulate(double* to, std::int64_t to_step, const T* from, std::int64_t from_step, std::int64_t count,
                double weight) {
    if (to_step == 1 && from_step == 1) {
        for (std::int64_t i = 0; i < count; ++i) to[i] += static_cast<double>(from[i]) * weight;
    } else {
        for (std::int64_t i = 0; i < count; ++i)
            to[i * to_step] += static_cast<double>(from[i * from_step]) * weight;
    }
}

// Rounds a row-major plane of sums into a plane that lies with `steps`.
template <typename T>
void store_plane(const double* sums, T* plane, const Extents& extents, const Extents& steps) {
    for (std::int64_t z = 0; z < extents[0]; ++z) {
        for (std::int64_t y = 0; y < extents[1]; ++y) {
            T* row = plane + z * steps[0] + y * steps[1];
            for (std::int64_t x = 0; x < extents[2]; ++x) row[x * steps[2]] = static_cast<T>(*sums++);
        }
    }
}

// y = x convolved with w (or, `shape.transposed`, its transpose) plus bias (nullptr: none), summed in double
// in `sums`, which holds one plane of the output.
template <typename T>
void convolve(const onednn::ConvolutionShape& shape, const T* x, const T* w, const T* bias, T* y,
              double* sums) {
    const TensorSteps input_steps = steps_of(shape.input);
    const TensorSteps output_steps = steps_of(shape.output);
    const Extents input_extents = spatial_extents(shape.input.shape);
    const Extents extents = spatial_extents(shape.output.shape);
    const Extents sum_steps{extents[1] * extents[2], extents[2], 1};
    const std::int64_t inputs = shape.input.shape[1] / shape.groups;    // channels of one group
    const std::int64_t outputs = shape.output.shape[1] / shape.groups;  // channels of one group
    const std::int64_t taps = shape.window.kernel[0] * shape.window.kernel[1] * shape.window.kernel[2];
    const auto scatter = [](const T* from, std::int64_t from_step, double* to, std::int64_t to_step,
                            std::int64_t count,
                            double weight) { accumulate(to, to_step, from, from_step, count, weight); };
    for (std::int64_t n = 0; n < shape.output.shape[0]; ++n) {
        for (std::int64_t m = 0; m < shape.output.shape[1]; ++m) {
            std::fill_n(sums, extents[0] * sum_steps[0],
                        bias == nullptr ? 0.0 : static_cast<double>(bias[m]));
            for (std::int64_t i = 0; i < inputs; ++i) {
                const std::int64_t c = m / outputs * inputs + i;
                const T* source = x + n * input_steps.batch + c * input_steps.channel;
                if (shape.transposed) {
                    const PlanePair<const T, double> planes{source, input_extents, input_steps.spatial,
                                                            sums,   extents,       sum_steps};
                    for_each_row(shape.window, planes, w + (c * outputs + m % outputs) * taps, scatter);
                } else {
                    const PlanePair<double, const T> planes{sums,   extents,       sum_steps,
                                                            source, input_extents, input_steps.spatial};
                    for_each_row(shape.window, planes, w + (m * inputs + i) * taps, accumulate<T>);
                }
            }
            store_plane(sums, y + n * output_steps.batch + m * output_steps.channel, extents,
                        output_steps.spatial);
        }
    }
}

}  // namespace qcalib
