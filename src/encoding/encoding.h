#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/grid.h"
#include "tensor/range.h"
#include "tensor/tensor.h"

namespace qcalib {

// The affine grid of one tensor or one channel: real = (q + offset) * scale, q from 0 to 2^bits - 1. `offset`
// is Qualcomm's: the negative zero point.
struct Encoding {
    int bits = 8;
    double min = 0;  // offset * scale
    double max = 0;  // min + scale * (2^bits - 1)
    double scale = 1;
    std::int64_t offset = 0;
    bool symmetric = false;

    std::int64_t zero_point() const { return -offset; }
    bool operator==(const Encoding&) const = default;
};

// The encodings of one tensor: one, or one a channel of `axis`.
struct TensorEncoding {
    std::string tensor;
    std::vector<Encoding> encodings;
    std::optional<int> axis;  // set where per channel
    std::string origin;       // where it came from: "minmax", "override", ...
};

// What a format writes: everything a compiler is told.
struct EncodingSet {
    std::vector<TensorEncoding> activations;  // graph order
    std::vector<TensorEncoding> parameters;   // graph order
};

// The encoding of a range on the grid that make_grid() gives it.
Encoding encode(Range range, const GridRules& rules);

// The same for one scheme, with a step that is no power of two. `least_range` > 0, `bits` is 2 to 32.
Encoding encode_asymmetric(Range range, int bits, double least_range,
                           Rounding rounding = Rounding::half_away);
Encoding encode_symmetric(Range range, int bits, double least_range);

// The extremes of a float32 weight: of the whole, or of each slice along `axis`. NaN and infinities are an
// Error that starts with the tensor's name. Elements may lie unaligned. An empty slice has the range 0 to 0.
std::vector<Range> weight_ranges(TensorView weight, std::optional<int> axis, std::string_view name);

}  // namespace qcalib
