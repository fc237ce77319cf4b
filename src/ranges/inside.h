#pragma once

#include <algorithm>

#include "tensor/range.h"

namespace qcalib {

// The range cut to the extremes: never inverted, whatever rounding or a search made of it.
inline Range inside(Range range, Range extremes) {
    const double min = std::clamp(range.min, extremes.min, extremes.max);
    return {min, std::clamp(range.max, min, extremes.max)};
}

}  // namespace qcalib
