#pragma once

#include <cstddef>
#include <vector>

#include "statistics/histogram.h"

namespace qcalib {

// A bin that holds counts. The least and the greatest magnitude of the data cut the first and the last bin
// off, so that a single value is a bin without width.
struct OccupiedBin {
    std::size_t bin = 0;  // 0 to below MagnitudeHistogram::bins
    double lower = 0;
    double upper = 0;
    double count = 0;
    double full_width = 0;  // before it was cut off

    double centre() const { return (lower + upper) / 2; }
    double width() const { return upper - lower; }
};

// One side of a histogram as methods search it: its occupied bins, ascending.
class HistogramSide {
  public:
    HistogramSide(const MagnitudeHistogram& histogram, double least, double greatest);

    bool empty() const { return bins_.empty(); }
    const std::vector<OccupiedBin>& bins() const& { return bins_; }
    const std::vector<OccupiedBin>& bins() && = delete;
    double least() const { return bins_.front().lower; }    // not where empty
    double greatest() const { return bins_.back().upper; }  // not where empty
    double total() const { return total_; }

    // The number of bins of the histogram, occupied or not, whose centre lies below the magnitude.
    std::size_t bins_below(double magnitude) const;
    // The least full width of a bin.
    double finest_width() const { return 1 / linear_scale_; }

  private:
    std::vector<OccupiedBin> bins_;
    double total_ = 0;
    double end_ = 0;            // 2^E
    double linear_end_ = 0;     // 2^(E-7): below it bins are equally wide
    double linear_scale_ = 1;   // bins a unit there
    std::size_t position_ = 0;  // of linear_end_ in half bins, subtracted
};

// The positive values, the negative ones, or the magnitudes of all of them.
HistogramSide positive_side(const TensorStatistics& statistics);
HistogramSide negative_side(const TensorStatistics& statistics);
HistogramSide folded_sides(const TensorStatistics& statistics);

// The magnitudes of all counted elements as statistics of their own.
TensorStatistics folded(const TensorStatistics& statistics);

}  // namespace qcalib
