#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "cli/console.h"
#include "engine/calibration.h"
#include "report/statistics_summary.h"

namespace qcalib {

// What a calibration says at its end.
struct CalibrationSummary {
    CalibrationResult result;
    StatisticsSummary statistics;
    std::optional<std::uint64_t> shuffle_seed;
    std::vector<std::string> convergence;
    std::vector<std::filesystem::path> written;
    std::vector<std::string> commands;  // that hand the files to converters
    std::string explanation;            // of --explain
    double load_seconds = 0;
    double emit_seconds = 0;
    bool costs = false;  // whether what operators and stages cost is asked for
};

// Prints it: tables and, on standard error, the remarks; with `json` one object on standard output, remarks
// among its keys, which docs/formats.md lists.
void print_summary(const Console& console, const CalibrationSummary& summary, const Remarks& remarks,
                   bool json);

// What 'qcalib emit' says at its end; printed in the same way.
struct EmissionSummary {
    std::vector<std::filesystem::path> written;
    std::vector<std::string> commands;
    std::vector<std::string> convergence;
    std::string explanation;
};
void print_summary(const Console& console, const EmissionSummary& summary, const Remarks& remarks, bool json);

}  // namespace qcalib
