#pragma once

#include <cstdint>
#include <span>

#include "statistics/counter.h"
#include "statistics/histogram.h"

// What counting a tensor would give, from the statistics of the tensor it was computed from. Each function
// answers false, and leaves `result` unspecified, where the very counts do not follow; all but derive_joined
// need statistics with histograms. `result` is another object than the sources.
namespace qcalib {

// Clip(x, low, high) with low <= 0 <= high, NaN staying NaN: on either side what lies beyond the bound joins
// the bound's bin, or the zeros. Not where the bound lies a binade or more below the side's greatest
// magnitude: then a count would have a lesser E. Relu is the clip from 0 to infinity.
bool derive_clipped(const TensorStatistics& source, Range bounds, const CounterSettings& settings,
                    TensorStatistics& result);

// x * 2^power, whose elements are `scaled`: every count stays and E moves. Not with masks or infinities, nor
// where an element becomes a mask or a zero.
bool derive_scaled(const TensorStatistics& source, int power, const CounterSettings& settings,
                   std::span<const float> scaled, TensorStatistics& result);

// Each element `times` times.
bool derive_repeated(const TensorStatistics& source, std::uint64_t times, TensorStatistics& result);

// All elements of the sources.
bool derive_joined(std::span<const TensorStatistics* const> sources, TensorStatistics& result);

}  // namespace qcalib
