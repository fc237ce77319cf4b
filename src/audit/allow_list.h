#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "audit/finding.h"

namespace qcalib {

// A finding that its user accepts.
struct Allowed {
    std::string tensor;  // a name, or a glob with * and ?
    Status status = Status::missing;
    std::string reason;
    std::string where;  // "file:line"
};

// Reads a YAML file { allow: [ {tensor: NAME or GLOB, status: missing, reason: TEXT} ] }. One Error lists all
// faults, each "file:line:column: ...".
std::vector<Allowed> read_allow_list(const std::filesystem::path& path);

// Marks the findings that are accepted; an entry that is for none becomes a note "file:line: ...".
void accept(const std::vector<Allowed>& allowed, AuditResult& result);

}  // namespace qcalib
