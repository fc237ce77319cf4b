#pragma once

#include <optional>
#include <string>

#include "statistics/statistics_file.h"

namespace qcalib {

// In what two headers differ, as a message says it: "<what> is <found>, expected <expected>".
struct HeaderDifference {
    std::string what;
    std::string expected;
    std::string found;
};

// The first difference by which two headers are not of one run; which shard of it they are of does not count.
std::optional<HeaderDifference> difference_of_runs(const StatisticsHeader& expected,
                                                   const StatisticsHeader& found);

}  // namespace qcalib
