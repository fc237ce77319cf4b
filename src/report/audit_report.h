#pragma once

#include <cstddef>
#include <string>

#include "audit/finding.h"

namespace qcalib {

// An audit for a terminal of that width: causes of the run as a whole first, how many tensors have which
// status, a table of the findings (of those that are not applied, unless `all`), and what is behind them in
// words, one text for all tensors it is for.
std::string audit_text(const AuditResult& result, bool all, std::size_t width);

}  // namespace qcalib
