#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "statistics/statistics_file.h"

namespace qcalib {

// Values at one end of a tensor that four or more empty binades separate from all its others.
struct FarValues {
    std::uint64_t count = 0;
    double nearest = 0;  // the least magnitude they may have
    double rest = 0;     // the magnitude that no other value reaches; > 0
};

// Those among the negative (positive) values, if there are any. Zeros are no rest: they have no binade.
std::optional<FarValues> far_negative_values(const TensorStatistics& statistics);
std::optional<FarValues> far_positive_values(const TensorStatistics& statistics);

// What a user should know of far values of the activations of a file: one remark that names those with
// mask-like (negative) values and the --mask-below to calibrate again with, and one for outliers (positive).
std::vector<std::string> far_value_remarks(const StatisticsFile& file);

}  // namespace qcalib
