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

// What the codes of a tensor are: integers on a grid, or floating point numbers of `bits` bits.
enum class CodeType : std::uint8_t { integer, floating };

// Steps of blocks as whole multiples of one float step a channel (LPBQ): block b of channel c has the step
// channels[c] * multiples[c * blocks a channel + b].
struct BlockMultiples {
    int decompressed_bits = 8;   // of the grid of `channels`; the codes themselves have Encoding::bits
    std::vector<int> multiples;  // 1 to 2^(decompressed_bits - Encoding::bits), channel by channel
    std::vector<double> channels;

    bool operator==(const BlockMultiples&) const = default;
};

// The encodings of one tensor: one, or one a channel of `axis`, or one a block (channel by channel). None
// where only the type and the width of the codes are given and the compiler is to find the range.
struct TensorEncoding {
    std::string tensor;
    std::vector<Encoding> encodings;
    std::optional<int> axis;             // per channel, and per block where known; < 0: from the end
    std::string origin;                  // where it came from: "minmax", "override", ...
    CodeType type = CodeType::integer;   // floating: no encodings
    int bits = 0;                        // of the codes where there are no encodings
    std::string float_name = {};         // "float8e4m3fn"; "" where the width says it all
    std::optional<int> block_axis = {};  // blocks lie along it; not set: no blocks
    std::int64_t block_size = 0;         // elements of `block_axis` a block has
    std::optional<BlockMultiples> lpbq = {};

    int width() const { return encodings.empty() ? bits : encodings.front().bits; }
    bool per_block() const { return block_axis.has_value(); }
    bool per_channel() const { return axis.has_value() && !per_block(); }
    bool operator==(const TensorEncoding&) const = default;
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
