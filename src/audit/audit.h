#pragma once

#include <string>
#include <vector>

#include "audit/converter_report.h"
#include "audit/finding.h"
#include "encoding/encoding_file.h"
#include "graph/graph.h"
#include "statistics/statistics_file.h"
#include "target/target.h"

namespace qcalib {

// What an audit compares, and what it may know besides.
struct AuditInput {
    const EncodingFile* given = nullptr;  // what the converter was told
    std::vector<EntryFault> faults;       // entries of that file with impossible values
    const ConverterReport* found = nullptr;
    const Target* target = nullptr;
    const Graph* graph = nullptr;                // names and causes get better with it
    const StatisticsFile* statistics = nullptr;  // tells whether a range is measured data
    // Whether `found` is another file of encodings and not a converter's result.
    bool files_only = false;
};

// One finding for each tensor of the result and of the file, and what is likely the cause of many at once.
// Parameters are looked at only where the result shows them.
AuditResult audit(const AuditInput& input);

// The tensors of a file of encodings as what a converter found.
ConverterReport report_of(const EncodingFile& file);

}  // namespace qcalib
