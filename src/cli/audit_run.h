#pragma once

#include <string>
#include <vector>

#include "audit/audit.h"
#include "base/remarks.h"

namespace qcalib {

// What is compared; "" for what is not given. Either logs or another file of encodings.
struct AuditSettings {
    std::string encodings;
    std::vector<std::string> logs;
    std::string against;
    std::string model;
    std::string against_model;
    std::string statistics;
    std::string target = "snpe";
    std::string target_config;
    std::string allow;
};

// Reads all of these files and compares; remarks are added. Errors start with the file.
AuditResult run_audit(const AuditSettings& settings, Remarks& remarks);

}  // namespace qcalib
