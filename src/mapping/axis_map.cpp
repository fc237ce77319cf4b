#include "mapping/axis_map.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace qcalib {

namespace {

constexpr std::size_t most_axes = 5;  // to permute

using Axes = std::vector<std::size_t>;

bool is_sorted_axes(const Axes& axes) {
    return std::is_sorted(axes.begin(), axes.end());
}

// How far a permutation is from the order as it is: 0, 1 for one axis moved, else 2.
int disorder(const Axes& axes) {
    if (is_sorted_axes(axes)) return 0;
    for (std::size_t moved = 0; moved < axes.size(); ++moved) {
        Axes rest = axes;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(moved));
        if (is_sorted_axes(rest)) return 1;
    }
    return 2;
}

Axes axes_above_one(std::span<const std::int64_t> shape) {
    Axes axes;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] != 1) axes.push_back(i);
    }
    return axes;
}

std::vector<Axes> permutations_of(const Axes& axes) {
    if (axes.size() > most_axes) return {axes};
    std::vector<Axes> all;
    Axes order(axes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
        Axes permuted;
        for (const std::size_t i : order) permuted.push_back(axes[i]);
        all.push_back(std::move(permuted));
    } while (std::next_permutation(order.begin(), order.end()));
    std::stable_sort(all.begin(), all.end(),
                     [](const Axes& a, const Axes& b) { return disorder(a) < disorder(b); });
    return all;
}

Shape sizes_of(std::span<const std::int64_t> shape, const Axes& axes) {
    Shape sizes;
    for (const std::size_t axis : axes) sizes.push_back(shape[axis]);
    return sizes;
}

// All axes of `to`, those of 1 among them: they take the axes of 1 of `from` in their order.
Axes with_ones(const Axes& permutation, std::span<const std::int64_t> from,
               std::span<const std::int64_t> to) {
    Axes ones;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i] == 1) ones.push_back(i);
    }
    Axes all;
    std::size_t next = 0;
    std::size_t next_one = 0;
    for (const std::int64_t size : to) {
        all.push_back(size == 1 ? ones[next_one++] : permutation[next++]);
    }
    return all;
}

// A walk over `shape` in row-major order of its axes `axes` (those left out have size 1): the offsets met.
class OffsetWalk {
  public:
    OffsetWalk(std::span<const std::int64_t> shape, const Axes& axes) {
        std::vector<std::size_t> strides(shape.size(), 1);
        for (std::size_t i = shape.size(); i-- > 1;)
            strides[i - 1] = strides[i] * static_cast<std::size_t>(shape[i]);
        for (const std::size_t axis : axes) {
            sizes_.push_back(static_cast<std::size_t>(shape[axis]));
            strides_.push_back(strides[axis]);
        }
        at_.assign(axes.size(), 0);
    }
    std::size_t offset() const { return offset_; }
    void advance() {
        for (std::size_t i = sizes_.size(); i-- > 0;) {
            offset_ += strides_[i];
            if (++at_[i] < sizes_[i]) return;
            offset_ -= strides_[i] * sizes_[i];
            at_[i] = 0;
        }
    }

  private:
    std::vector<std::size_t> sizes_;
    std::vector<std::size_t> strides_;
    std::vector<std::size_t> at_;
    std::size_t offset_ = 0;
};

double difference_of(float a, float b) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
    const double difference = std::abs(static_cast<double>(a) - static_cast<double>(b));
    return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

void copy_elements(TensorView source, std::byte* target, OffsetWalk& walk) {
    const std::size_t size = size_of(source.descriptor->type);
    const std::size_t count = source.elements();
    for (std::size_t i = 0; i < count; ++i, walk.advance())
        std::memcpy(target + i * size, source.data + walk.offset() * size, size);
}

}  // namespace

bool AxisMap::identity() const {
    return form == Form::axes && is_sorted_axes(axes);
}

std::string to_string(const AxisMap& map) {
    if (map.form == AxisMap::Form::order) return "other order";
    const std::string axes = fmt::format("{}", fmt::join(map.axes, ","));
    if (map.form == AxisMap::Form::axes) return map.identity() ? "same" : axes;
    if (is_sorted_axes(map.axes)) return "reshape";
    return (map.form == AxisMap::Form::reshape ? "reshape of " : "shape of ") + axes;
}

std::optional<std::size_t> moved_axis(const AxisMap& map, std::int64_t axis,
                                      std::span<const std::int64_t> from, std::span<const std::int64_t> to) {
    if (axis < 0) axis += static_cast<std::int64_t>(from.size());
    if (axis < 0 || axis >= static_cast<std::int64_t>(from.size())) return std::nullopt;
    const auto wanted = static_cast<std::size_t>(axis);
    if (map.form == AxisMap::Form::axes) {
        const auto found = std::find(map.axes.begin(), map.axes.end(), wanted);
        if (found == map.axes.end()) return std::nullopt;
        return static_cast<std::size_t>(found - map.axes.begin());
    }
    if (map.form != AxisMap::Form::reshape) return std::nullopt;
    const Axes there = axes_above_one(to);
    if (sizes_of(from, map.axes) != sizes_of(to, there)) return std::nullopt;
    const auto found = std::find(map.axes.begin(), map.axes.end(), wanted);
    if (found == map.axes.end()) return std::nullopt;
    return there[static_cast<std::size_t>(found - map.axes.begin())];
}

std::vector<AxisMap> possible_maps(std::span<const std::int64_t> from, std::span<const std::int64_t> to) {
    std::vector<AxisMap> maps;
    if (element_count(from) != element_count(to)) return maps;
    const Axes there = axes_above_one(to);
    const std::vector<Axes> permutations = permutations_of(axes_above_one(from));
    std::vector<AxisMap> reshapes;
    for (const Axes& axes : permutations) {
        if (sizes_of(from, axes) != sizes_of(to, there)) {
            reshapes.push_back({AxisMap::Form::reshape, axes});
        } else if (from.size() == to.size()) {
            maps.push_back({AxisMap::Form::axes, with_ones(axes, from, to)});
        } else {
            maps.push_back({AxisMap::Form::reshape, axes});
        }
    }
    maps.insert(maps.end(), reshapes.begin(), reshapes.end());
    for (const Axes& axes : permutations_of(there)) {
        if (!is_sorted_axes(axes) && sizes_of(to, axes) != sizes_of(from, axes_above_one(from)))
            maps.push_back({AxisMap::Form::inverse, axes});
    }
    return maps;
}

ElementDifference compare(TensorView from, TensorView to, const AxisMap& map,
                          const ElementTolerance& tolerance) {
    assert(from.elements() == to.elements());
    ElementDifference found;
    const auto a = from.as<float>();
    const auto b = to.as<float>();
    const bool inverse = map.form == AxisMap::Form::inverse;
    OffsetWalk walk(inverse ? to.descriptor->shape : from.descriptor->shape, map.axes);
    for (std::size_t i = 0; i < a.size(); ++i, walk.advance()) {
        const float x = inverse ? a[i] : a[walk.offset()];
        const float y = inverse ? b[walk.offset()] : b[i];
        const double difference = difference_of(x, y);
        found.largest = std::max(found.largest, difference);
        found.excess = std::max(found.excess, difference - 1e-4 * std::abs(static_cast<double>(y)));
        found.squares += difference * difference;
        const double allowed = tolerance.absolute + tolerance.relative * std::abs(static_cast<double>(y));
        if (difference == 0 || (std::isfinite(difference) && difference <= allowed)) continue;
        found.within = false;
        if (!tolerance.to_the_end) return found;
    }
    return found;
}

Tensor permuted(TensorView tensor, const AxisMap& map) {
    assert(map.form == AxisMap::Form::axes);
    TensorDescriptor descriptor{tensor.descriptor->type, {}, MemoryOrder::row_major};
    descriptor.shape = sizes_of(tensor.descriptor->shape, map.axes);
    Tensor answer(descriptor);
    OffsetWalk walk(tensor.descriptor->shape, map.axes);
    copy_elements(tensor, answer.mutable_view().data, walk);
    return answer;
}

}  // namespace qcalib
