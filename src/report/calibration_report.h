#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "encoding/encoding.h"
#include "statistics/statistics_file.h"
#include "tensor/range.h"

namespace qcalib {

// What led to a tensor's encoding for a target, and what it is.
struct ReportedEncoding {
    std::string tensor;
    std::string kind;    // "activation", "weight", "constant", "bias"
    std::string method;  // with its parameters
    std::string origin;
    std::vector<Range> ranges;  // before the target's rules; one for each encoding
    std::optional<TensorEncoding> encoding;
    std::string no_encoding;  // why there is none; else empty
    std::vector<std::string> overrides;
    std::vector<std::string> notes;
};

struct ReportedTarget {
    std::string target;
    std::string format;
    std::string file;
    std::string settings;  // one line
    std::vector<ReportedEncoding> encodings;
};

// What it takes to repeat a run, and what came of it. Of the same settings and data the same text comes: it
// holds no time and no number of workers.
struct CalibrationReport {
    std::string program_version;
    std::string model;        // its file's name
    std::string data;         // the same of the list, pattern or file; "" where only statistics were read
    std::string data_sha256;  // of a list or another file of up to 64 MiB; else ""
    std::optional<std::uint64_t> shuffle_seed;
    std::vector<ReportedTarget> targets;
    std::vector<std::string> remarks;
};

// The text of <stem>.report.json; docs/report.md says what is in it.
std::string report_json(const CalibrationReport& report, const StatisticsFile& statistics);

}  // namespace qcalib
