#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "cli/encoding_options.h"
#include "statistics/statistics_file.h"

namespace qcalib {

// What a run was told that its statistics do not say.
struct ReportedRun {
    std::string model;
    std::string data;  // "": none was read
    std::optional<std::uint64_t> shuffle_seed;
};

// Writes the report; `emitted` is in the order of `emissions`.
void write_report(const std::filesystem::path& file, const ReportedRun& run, const EncodingOptions& options,
                  std::span<const Emission> emissions, std::span<const EmittedEncodings> emitted,
                  const StatisticsFile& statistics, const Remarks& remarks);

}  // namespace qcalib
