#include "ranges/histogram_side.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace qcalib {

namespace {

constexpr int full_binades = 7;
constexpr unsigned half_bin_bits = 10;  // of a mantissa: 9 choose the bin, one its half
constexpr unsigned dropped_bits = 52 - half_bin_bits;

std::size_t half_bin_position(double magnitude) {
    return std::bit_cast<std::uint64_t>(magnitude) >> dropped_bits;
}

// The greatest magnitude of all values.
double greatest_magnitude(Range extremes) {
    return std::max(-extremes.min, extremes.max);
}

// The least magnitude that a value may have: 0 where the extremes are on both sides of it.
double least_magnitude(Range extremes) {
    return std::max({0.0, extremes.min, -extremes.max});
}

}  // namespace

HistogramSide::HistogramSide(const MagnitudeHistogram& histogram, double least, double greatest) {
    if (histogram.empty() || histogram.total() == 0) return;
    const int exponent = histogram.exponent();
    end_ = std::ldexp(1.0, exponent);
    linear_end_ = std::ldexp(1.0, exponent - full_binades);
    linear_scale_ = std::ldexp(static_cast<double>(MagnitudeHistogram::group), full_binades - exponent);
    position_ = half_bin_position(linear_end_) - 2 * MagnitudeHistogram::group;
    total_ = static_cast<double>(histogram.total());
    const MagnitudeHistogram::OccupiedBlocks& blocks = histogram.occupied_blocks();
    for (std::size_t word = 0; word < blocks.size(); ++word) {
        for (std::uint64_t bits = blocks[word]; bits != 0; bits &= bits - 1) {
            const std::size_t first =
                (word * 64 + static_cast<std::size_t>(std::countr_zero(bits))) * MagnitudeHistogram::block;
            for (std::size_t bin = first; bin < first + MagnitudeHistogram::block; ++bin) {
                const std::uint64_t count = histogram.count(bin);
                if (count == 0) continue;
                const double first_edge = histogram.lower_edge(bin);
                const double last_edge = histogram.lower_edge(bin + 1);
                const double lower = std::max(first_edge, least);
                bins_.push_back({bin, lower, std::max(lower, std::min(last_edge, greatest)),
                                 static_cast<double>(count), last_edge - first_edge});
            }
        }
    }
}

std::size_t HistogramSide::bins_below(double magnitude) const {
    if (magnitude < linear_end_) return static_cast<std::size_t>(magnitude * linear_scale_ + 0.5);
    if (magnitude >= end_) return MagnitudeHistogram::bins;
    return (half_bin_position(magnitude) - position_ + 1) / 2;
}

HistogramSide positive_side(const TensorStatistics& statistics) {
    return {statistics.positive, std::max(0.0, statistics.extremes->min), statistics.extremes->max};
}

HistogramSide negative_side(const TensorStatistics& statistics) {
    return {statistics.negative, std::max(0.0, -statistics.extremes->max), -statistics.extremes->min};
}

HistogramSide folded_sides(const TensorStatistics& statistics) {
    const TensorStatistics magnitudes = folded(statistics);
    return {magnitudes.positive, magnitudes.extremes->min, magnitudes.extremes->max};
}

TensorStatistics folded(const TensorStatistics& statistics) {
    TensorStatistics magnitudes;
    magnitudes.zeros = statistics.zeros;
    magnitudes.extremes =
        Range{least_magnitude(*statistics.extremes), greatest_magnitude(*statistics.extremes)};
    magnitudes.positive = statistics.positive;
    magnitudes.positive.merge(statistics.negative);
    return magnitudes;
}

}  // namespace qcalib
