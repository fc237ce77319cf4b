#pragma once

#include <vector>

#include "ranges/range_method.h"

namespace qcalib {

// The least and the greatest value of each sample with data, in the order of the samples.
struct SampleExtremes {
    std::vector<float> least;
    std::vector<float> greatest;
};

inline SampleExtremes sample_extremes(const TensorSamples& tensor) {
    SampleExtremes extremes;
    for (std::size_t row = 0; row < tensor.rows(); ++row) {
        const SampleSummary sample = tensor.row(row);
        if (!sample.has_data) continue;
        extremes.least.push_back(sample.min);
        extremes.greatest.push_back(sample.max);
    }
    return extremes;
}

}  // namespace qcalib
