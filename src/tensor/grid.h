#pragma once

#include <cstdint>

#include "tensor/range.h"

namespace qcalib {

// How an offset that falls halfway between two integers is rounded.
enum class Rounding : std::uint8_t { half_away, half_even };

// asymmetric: all codes between the two ends, zero among them. symmetric: codes -2^(bits-1) to 2^(bits-1)
// - 1. unsigned_symmetric: as symmetric, but codes 0 to 2^bits - 1 for a range without negative values
// (AIMET). from_zero: codes 0 to 2^bits - 1, the first one 0, whatever the range (TIDL, behind a Relu).
enum class Scheme : std::uint8_t { asymmetric, symmetric, unsigned_symmetric, from_zero };

// What the quantization grid of a tensor is to be like.
struct GridRules {
    int bits = 8;  // 2 to 32
    Scheme scheme = Scheme::asymmetric;
    bool power_of_two = false;                // the step is rounded up to a power of two
    bool include_zero = true;                 // asymmetric: the range is widened to contain 0
    double least_range = 0.01;                // > 0; a narrower range is widened, at its top
    Rounding rounding = Rounding::half_away;  // of an offset
    bool full_steps = false;  // not asymmetric: 2^bits steps in the range, so that its end has no code (TIDL)
    double narrow_step = 0;   // of full steps in a range below least_range; 0: those of least_range

    bool operator==(const GridRules&) const = default;
};

// real = (q + offset) * step, q from 0 to `codes`.
struct Grid {
    double step = 1;
    std::int64_t offset = 0;
    std::int64_t codes = 255;
    double min = 0;  // of q = 0
    double max = 0;  // of q = codes
};

// The grid of a range, both ends finite and min <= max. Asymmetric: the TF arithmetic of Qualcomm's and
// AIMET's quantizers: widened to contain 0 and to the least range, step = width / codes, both ends moved by
// the same amount so that 0 is exact. Symmetric: step = max(|min|, |max|) / (2^(bits-1) - 1), but so that the
// grid is at least as wide as the least range; with full steps, step = max(|min|, |max|) / 2^(bits-1), from
// zero max / 2^bits, where the least range is the least of that end. Without include_zero the ends move by at
// most half a step to multiples of the step, and a range narrower than 2^-20 of its magnitude is widened to
// that.
Grid make_grid(Range range, const GridRules& rules);

// The least power of two that is not below `value` > 0 (by more than a billionth of it).
double power_of_two_above(double value);

}  // namespace qcalib
