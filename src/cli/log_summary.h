#pragma once

#include <cstddef>
#include <string>

#include "audit/converter_report.h"

namespace qcalib {

// The tensors of a converter's output whose names fit the pattern, for a terminal of that width: a table, and
// in words what the fields of those that TIDL prints say.
std::string log_summary(const ConverterReport& report, const std::string& pattern, std::size_t width);

}  // namespace qcalib
