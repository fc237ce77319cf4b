#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "statistics/statistics_file.h"

namespace qcalib {

// What a statistics file holds, counted.
struct StatisticsSummary {
    std::size_t activations = 0;  // tensors that are no constants
    std::size_t constants = 0;
    std::size_t samples = 0;
    std::size_t sequences = 0;  // that the samples are steps of; 0: they are not
    std::size_t skipped = 0;
    std::vector<std::string> without_data;  // names of activations
    std::vector<std::string> all_zero;
    std::vector<std::string> with_nan;
    std::vector<std::string> with_infinity;
    std::vector<std::string> with_masks;
    std::uint64_t masks = 0;  // values that were left out, of all tensors
};

StatisticsSummary summarize_statistics(const StatisticsFile& file);

// "3 (a, b, c)", at most `most` names; "none" for no name.
std::string count_and_names(const std::vector<std::string>& names, std::size_t most = 3);

}  // namespace qcalib
