#include "tensor/shape.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace qcalib {

std::int64_t element_count(std::span<const std::int64_t> shape) {
    constexpr std::int64_t limit = std::int64_t{1} << 62;
    std::int64_t count = 1;
    bool has_zero = false;
    for (const std::int64_t dimension : shape) {
        if (dimension < 0) fail("shape {}: expected dimensions of 0 or more", to_string(shape));
        if (dimension == 0) {
            has_zero = true;
        } else if (count > limit / dimension) {
            fail("shape {}: more elements than can be addressed", to_string(shape));
        } else {
            count *= dimension;
        }
    }
    return has_zero ? 0 : count;
}

std::string to_string(std::span<const std::int64_t> shape) {
    return fmt::format("[{}]", fmt::join(shape, ","));
}

std::optional<Shape> broadcast_shapes(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
    const std::size_t rank = std::max(a.size(), b.size());
    Shape result(rank);
    for (std::size_t i = 0; i < rank; ++i) {
        const std::int64_t from_a = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
        const std::int64_t from_b = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
        if (from_a != from_b && from_a != 1 && from_b != 1) return std::nullopt;
        result[i] = from_a == 1 ? from_b : from_a;
    }
    return result;
}

}  // namespace qcalib
