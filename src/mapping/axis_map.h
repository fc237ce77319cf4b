#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace qcalib {

// How a tensor (`from`) lies in another one (`to`) that holds the same elements.
struct AxisMap {
    enum class Form {
        axes,     // axis j of `to` is axis axes[j] of `from`
        reshape,  // the elements of `from`, its axes permuted to `axes`, in the shape of `to`
        inverse,  // the elements of `to`, its axes permuted to `axes`, in the shape of `from`
        order,    // the same elements in an order that no permutation of axes gives
    };
    Form form = Form::axes;
    std::vector<std::size_t> axes;

    bool identity() const;  // the same elements at the same places of the same shape
    bool operator==(const AxisMap&) const = default;
};

// "same", "0,2,3,1", "reshape", "reshape of 0,2,3,1", "shape of 0,2,3,1", "other order".
std::string to_string(const AxisMap& map);

// The axis of `to` that is `axis` of `from` (counted from its end where negative): its index in the
// permutation; by the axes above 1 where the shapes differ in axes of 1 alone. Nothing where no one axis is.
std::optional<std::size_t> moved_axis(const AxisMap& map, std::int64_t axis,
                                      std::span<const std::int64_t> from, std::span<const std::int64_t> to);

// All that could lead from one shape to the other, the likeliest first: the same axes, one axis moved
// (channels to the end or back), other permutations, then those with a reshape. Axes of 1 are permuted in one
// way alone. Above five axes that are no 1 only the order as it is.
std::vector<AxisMap> possible_maps(std::span<const std::int64_t> from, std::span<const std::int64_t> to);

// Two tensors compared element by element.
struct ElementDifference {
    double largest = 0;  // |from - to|
    double excess = 0;   // the largest of |from - to| - 1e-4 |to|
    double squares = 0;  // sum of squares of the difference
    bool within = true;  // of the tolerance at each element; if not, the rest was not looked at
};

// What is within: |a - b| <= absolute + relative * |b|; NaN and infinities are equal to their like.
struct ElementTolerance {
    double absolute = 0;
    double relative = 0;
    bool to_the_end = false;  // look at all elements whatever they are
};

// Row-major float32 tensors of as many elements.
ElementDifference compare(TensorView from, TensorView to, const AxisMap& map,
                          const ElementTolerance& tolerance);

// `tensor` (row-major, any type) laid out as `to` asks by a map of Form::axes.
Tensor permuted(TensorView tensor, const AxisMap& map);

}  // namespace qcalib
