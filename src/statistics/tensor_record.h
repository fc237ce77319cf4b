#pragma once

#include <string>

#include "statistics/record_format.h"

namespace qcalib::records {

// The statistics of a tensor's record, which must be what a count can give; throws Error "<what>: ..."
// otherwise.
TensorStatistics decode(const qstats::Tensor& message, bool extremes_only, const std::string& what);

}  // namespace qcalib::records
