#include "ranges/quantization_error.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace qcalib {

namespace {

// The magnitude from which on bins are at least half a step wide: in [2^(k-1), 2^k) their width is 2^(k-10).
double coarse_from(double step, double finest_width) {
    constexpr double half_steps = MagnitudeHistogram::group / 2.0;
    return step <= 2 * finest_width ? 0 : power_of_two_above(half_steps * step);
}

}  // namespace

SideMoments::SideMoments(HistogramSide side) : side_(std::move(side)) {
    if (side_.empty()) return;
    sums_.resize(MagnitudeHistogram::bins + 1);
    Sums sums;
    std::size_t next = 0;
    for (const OccupiedBin& bin : side_.bins()) {
        std::fill(sums_.begin() + static_cast<std::ptrdiff_t>(next),
                  sums_.begin() + static_cast<std::ptrdiff_t>(bin.bin) + 1, sums);
        const double centre = bin.centre();
        sums.count += bin.count;
        sums.magnitudes += bin.count * centre;
        sums.squares += bin.count * (centre * centre + bin.width() * bin.width() / 12);
        next = bin.bin + 1;
    }
    std::fill(sums_.begin() + static_cast<std::ptrdiff_t>(next), sums_.end(), sums);
}

// Sum of (magnitude - value)^2.
double SideMoments::about(const Sums& from, const Sums& to, double value) {
    const double count = to.count - from.count;
    return to.squares - from.squares - 2 * value * (to.magnitudes - from.magnitudes) + value * value * count;
}

double SideMoments::error_of_one_value(double value) const {
    return side_.empty() ? 0 : std::max(0.0, about(sums_.front(), sums_.back(), value));
}

double SideMoments::error(double step, double first, double last, double clipped_weight) const {
    if (side_.empty()) return 0;
    const std::size_t begin = first > 0 ? side_.bins_below(first * step) : 0;
    const std::size_t end = std::max(begin, side_.bins_below(last * step));
    const double clipped =
        about(sums_[0], sums_[begin], first * step) + about(sums_[end], sums_.back(), last * step);
    return std::max(0.0, inside_error(step, first, last, begin, end) + clipped_weight * clipped);
}

// Of the bins from `begin` to below `end`, which lie between the ends.
double SideMoments::inside_error(double step, double first, double last, std::size_t begin,
                                 std::size_t end) const {
    const double coarse = coarse_from(step, side_.finest_width());
    last = std::min(last, std::floor(side_.greatest() / step) + 1);
    double error = 0;
    Sums before = sums_[begin];
    double code = std::max(first, std::floor(side_.least() / step) - 1);
    for (; code < last; ++code) {
        const double edge = (code + 0.5) * step;
        if (edge > coarse) break;
        const Sums& below = sums_[std::min(end, side_.bins_below(edge))];
        error += about(before, below, code * step);
        before = below;
    }
    if (code < last) return error + (sums_[end].count - before.count) * step * step / 12;
    return error + about(before, sums_[end], code * step);
}

QuantizationError::QuantizationError(const TensorStatistics& statistics)
    : positive_(positive_side(statistics)),
      negative_(negative_side(statistics)),
      zeros_(static_cast<double>(statistics.zeros)) {}

double QuantizationError::operator()(const Grid& grid, double clipped_weight) const {
    const auto lowest = static_cast<double>(grid.offset);
    const auto highest = static_cast<double>(grid.offset + grid.codes);
    if (lowest > 0) {
        return positive_.error(grid.step, lowest, highest, clipped_weight) +
               clipped_weight * (negative_.error_of_one_value(-grid.min) + zeros_ * grid.min * grid.min);
    }
    if (highest < 0) {
        const double end = highest * grid.step;
        return negative_.error(grid.step, -highest, -lowest, clipped_weight) +
               clipped_weight * (positive_.error_of_one_value(end) + zeros_ * end * end);
    }
    return positive_.error(grid.step, 0, highest, clipped_weight) +
           negative_.error(grid.step, 0, -lowest, clipped_weight);
}

}  // namespace qcalib
