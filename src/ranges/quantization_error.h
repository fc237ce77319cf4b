#pragma once

#include <vector>

#include "ranges/histogram_side.h"
#include "tensor/grid.h"

namespace qcalib {

// Prefix sums of the bins of one side.
class SideMoments {
  public:
    explicit SideMoments(HistogramSide side);

    // The sum of squared errors where magnitudes become the nearest of k * step, k from `first` to `last`;
    // those beyond either end weigh `clipped_weight` times.
    double error(double step, double first, double last, double clipped_weight) const;
    // The same where all of them become `value`.
    double error_of_one_value(double value) const;

  private:
    struct Sums {
        double count = 0;
        double magnitudes = 0;
        double squares = 0;
    };

    static double about(const Sums& from, const Sums& to, double value);
    double inside_error(double step, double first, double last, std::size_t begin, std::size_t end) const;

    HistogramSide side_;
    std::vector<Sums> sums_;  // of the bins below
};

// The squared error that quantization makes of a tensor's counted values, from prefix sums: a grid costs as
// many steps as it has codes, whatever the number of bins. In a bin values are taken to be spread evenly;
// where the step is no more than two bins wide, it is step^2 / 12 each.
class QuantizationError {
  public:
    // `statistics` must have data and histograms.
    explicit QuantizationError(const TensorStatistics& statistics);

    // The sum over all values; the errors of values beyond the grid's ends weigh `clipped_weight` times.
    double operator()(const Grid& grid, double clipped_weight = 1) const;

  private:
    SideMoments positive_;
    SideMoments negative_;
    double zeros_;
};

}  // namespace qcalib
