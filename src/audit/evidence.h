#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "audit/converter_report.h"
#include "audit/finding.h"
#include "statistics/statistics_file.h"
#include "target/target.h"

namespace qcalib {

// The share of the counted values that lie outside the range, or nothing where there are no histograms.
std::optional<double> share_outside(const TensorStatistics& statistics, Range range);

// Whether a range that a converter used is one of the data that was counted.
struct Measured {
    std::string text;    // "minmax of all samples gives it", "no method gives it, nor does a sample alone"
    bool known = false;  // whether something gives it
};

// Tries each range method with its own settings, then the extremes of each sample alone. Ends may differ by
// half a step, since another runtime made the converter's data. Nothing where the tensor is not in the file
// or has no data.
std::optional<Measured> measured(const StatisticsFile& statistics, std::string_view tensor,
                                 const FoundEncoding& found, const Target& target);

// "; it would clip 0.12 % of the values (the given range 0.5 %)", or "".
std::string clipping_text(const StatisticsFile& statistics, std::string_view tensor,
                          const FoundEncoding& found, const std::optional<ShownEncoding>& given);

}  // namespace qcalib
