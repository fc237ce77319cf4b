#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "encoding/encoding.h"

namespace qcalib {

namespace {

constexpr std::size_t lanes = 16;
constexpr float infinity = std::numeric_limits<float>::infinity();

// Least and greatest of values seen in `lanes` independent streams, which a compiler turns into vector code.
// `poison` is 0 until a NaN or an infinity comes by, and NaN from then on.
struct Extremes {
    std::array<float, lanes> low;
    std::array<float, lanes> high;
    std::array<float, lanes> poison{};

    Extremes() {
        low.fill(infinity);
        high.fill(-infinity);
    }

    void take(std::size_t lane, float value) {
        low[lane] = value < low[lane] ? value : low[lane];
        high[lane] = value > high[lane] ? value : high[lane];
        poison[lane] += value * 0.0F;
    }

    // `data` may lie unaligned.
    void take_run(const std::byte* data, std::size_t count) {
        std::array<float, lanes> block;
        std::size_t i = 0;
        for (; i + lanes <= count; i += lanes) {
            std::memcpy(block.data(), data + i * sizeof(float), sizeof block);
            for (std::size_t lane = 0; lane < lanes; ++lane) take(lane, block[lane]);
        }
        std::memcpy(block.data(), data + i * sizeof(float), (count - i) * sizeof(float));
        for (std::size_t lane = 0; i < count; ++i, ++lane) take(lane, block[lane]);
    }

    bool finite() const {
        return std::none_of(poison.begin(), poison.end(), [](float value) { return std::isnan(value); });
    }

    // Adding 0 turns -0 into 0. Nothing seen: 0 to 0.
    Range range() const {
        const double least = *std::min_element(low.begin(), low.end());
        const double greatest = *std::max_element(high.begin(), high.end());
        return least > greatest ? Range{} : Range{least + 0.0, greatest + 0.0};
    }
};

// The weight seen as [outer][slices][inner] in memory.
struct Blocks {
    std::size_t outer = 1;
    std::size_t slices = 1;
    std::size_t inner = 1;
};

Shape memory_shape(const TensorDescriptor& descriptor) {
    Shape shape = descriptor.shape;
    if (descriptor.order == MemoryOrder::channels_last)
        std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    return shape;
}

std::size_t memory_axis(const TensorDescriptor& descriptor, std::size_t axis) {
    if (descriptor.order == MemoryOrder::row_major || axis == 0) return axis;
    return axis == 1 ? descriptor.rank() - 1 : axis - 1;
}

Blocks blocks_along(const TensorDescriptor& descriptor, std::size_t axis) {
    const Shape shape = memory_shape(descriptor);
    const std::size_t place = memory_axis(descriptor, axis);
    const std::span<const std::int64_t> dimensions = shape;
    return {static_cast<std::size_t>(element_count(dimensions.first(place))),
            static_cast<std::size_t>(dimensions[place]),
            static_cast<std::size_t>(element_count(dimensions.subspan(place + 1)))};
}

// Slices that lie in runs: one after the other.
bool scan_runs(const std::byte* data, const Blocks& blocks, std::vector<Range>& ranges) {
    bool finite = true;
    for (std::size_t slice = 0; slice < blocks.slices; ++slice) {
        Extremes extremes;
        for (std::size_t outer = 0; outer < blocks.outer; ++outer) {
            const std::size_t start = (outer * blocks.slices + slice) * blocks.inner;
            extremes.take_run(data + start * sizeof(float), blocks.inner);
        }
        ranges[slice] = extremes.range();
        finite = finite && extremes.finite();
    }
    return finite;
}

// Slices whose elements lie one beside the other (inner is 1): `lanes` slices at a time, a lane each.
bool scan_columns(const std::byte* data, const Blocks& blocks, std::vector<Range>& ranges) {
    bool finite = true;
    for (std::size_t first = 0; first < blocks.slices; first += lanes) {
        const std::size_t width = std::min(lanes, blocks.slices - first);
        Extremes extremes;
        std::array<float, lanes> block{};
        for (std::size_t outer = 0; outer < blocks.outer; ++outer) {
            const std::byte* from = data + (outer * blocks.slices + first) * sizeof(float);
            if (width == lanes) {
                std::memcpy(block.data(), from, sizeof block);
            } else {
                std::memcpy(block.data(), from, width * sizeof(float));
            }
            for (std::size_t lane = 0; lane < lanes; ++lane) extremes.take(lane, block[lane]);
        }
        for (std::size_t lane = 0; lane < width && blocks.outer != 0; ++lane) {
            ranges[first + lane] = {extremes.low[lane] + 0.0, extremes.high[lane] + 0.0};
        }
        finite = finite && extremes.finite();
    }
    return finite;
}

// The place of the element at `index` of memory, in the tensor's own order of dimensions.
Shape place_of(const TensorDescriptor& descriptor, std::size_t index) {
    Shape place = memory_shape(descriptor);
    for (std::size_t i = place.size(); i-- > 0;) {
        const auto dimension = static_cast<std::size_t>(place[i]);
        place[i] = static_cast<std::int64_t>(index % dimension);
        index /= dimension;
    }
    if (descriptor.order == MemoryOrder::channels_last)
        std::rotate(place.begin() + 1, place.end() - 1, place.end());
    return place;
}

[[noreturn]] void fail_not_finite(TensorView weight, std::string_view name) {
    std::size_t count = 0;
    std::size_t first = 0;
    float found = 0;
    for (std::size_t i = 0; i < weight.elements(); ++i) {
        float value = 0;
        std::memcpy(&value, weight.data + i * sizeof(float), sizeof value);
        if (std::isfinite(value)) continue;
        if (count++ != 0) continue;
        first = i;
        found = value;
    }
    fail(
        "'{}': expected finite values in a weight, found {} of {} elements NaN or infinite, the first ({}) "
        "at {}",
        printable(name), count, weight.elements(),
        std::isnan(found) ? "NaN"
        : found > 0       ? "+Inf"
                          : "-Inf",
        to_string(place_of(*weight.descriptor, first)));
}

}  // namespace

std::vector<Range> weight_ranges(TensorView weight, std::optional<int> axis, std::string_view name) {
    const TensorDescriptor& descriptor = *weight.descriptor;
    assert(descriptor.type == DataType::float32);
    assert(!axis || (*axis >= 0 && static_cast<std::size_t>(*axis) < descriptor.rank()));

    Blocks blocks{1, 1, descriptor.elements()};
    if (axis && descriptor.shape[static_cast<std::size_t>(*axis)] != 1) {
        blocks = blocks_along(descriptor, static_cast<std::size_t>(*axis));
    }
    std::vector<Range> ranges(blocks.slices);
    const bool finite = blocks.inner == 1 ? scan_columns(weight.data, blocks, ranges)
                                          : scan_runs(weight.data, blocks, ranges);
    if (!finite) fail_not_finite(weight, name);
    return ranges;
}

}  // namespace qcalib
