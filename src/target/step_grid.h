#pragma once

#include <optional>

#include "encoding/encoding.h"
#include "statistics/histogram.h"
#include "tensor/grid.h"
#include "tensor/range.h"

namespace qcalib {

// The encoding whose codes are `step` > 0 apart. Symmetric: zero in the middle of the codes;
// unsigned_symmetric: there or, for data without negative values, at the first code. Asymmetric: zero lies
// where it lies in the data's own range, so that codes left over are shared out between both ends: from 0 for
// data without negative values. Without data zero lies in the middle.
Encoding encode_with_step(double step, std::optional<Range> data, const GridRules& rules);

// Whether a positive number is a power of two.
bool is_power_of_two(double value);

// The share of the counted values that an encoding cuts off: more than half a step beyond its ends. Nothing
// where ordinary values were not counted.
std::optional<double> clipped_share(const TensorStatistics& statistics, const Encoding& encoding);

}  // namespace qcalib
