#pragma once

#include "audit/causes.h"

namespace qcalib {

// How many ranges the converter chose itself are those of the statistics, and how many are not.
struct MeasuredRanges {
    std::size_t known = 0;
    std::size_t unknown = 0;
};

// Adds what explains many findings at once to the causes of the result (a missing --override_params, names
// that all failed, no quantized tensors, a file of few entries, another input list), and to its notes what a
// user should know of such files.
void explain_run(const AuditContext& context, const MeasuredRanges& measured, AuditResult& result);

}  // namespace qcalib
