#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// How an offset that falls halfway between two integers is rounded.
enum class Rounding : std::uint8_t { half_away, half_even };

// The TF arithmetic of Qualcomm's and AIMET's quantizers: the range is widened to contain 0 and to at least
// `least_range` > 0 (at its top), the scale is its width / (2^bits - 1), and both ends are moved so that 0 is
// exact. `bits` is 2 to 32.
Encoding encode_asymmetric(Range range, int bits, double least_range,
                           Rounding rounding = Rounding::half_away);

// Symmetric: scale = max(|min|, |max|) / (2^(bits-1) - 1), but no less than least_range / (2^bits - 1), so
// that the grid is at least `least_range` > 0 wide; offset = -2^(bits-1). `bits` is 2 to 32.
Encoding encode_symmetric(Range range, int bits, double least_range);

// The extremes of a float32 weight: of the whole, or of each slice along `axis`. NaN and infinities are an
// Error that starts with the tensor's name. Elements may lie unaligned. An empty slice has the range 0 to 0.
std::vector<Range> weight_ranges(TensorView weight, std::optional<int> axis, std::string_view name);

}  // namespace qcalib
