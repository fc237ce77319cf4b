#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/encoding_options.h"
#include "statistics/statistics_file.h"

namespace qcalib {

// Whether the ranges of a run had settled, for its summary: by min, max and tails, and for each emission by
// those of its methods that work from samples' extremes, as the state after half of the samples is known from
// rows alone.
std::vector<std::string> convergence_summary(const StatisticsFile& file, std::span<const Emission> emissions,
                                             const AssignmentOptions& options);

}  // namespace qcalib
