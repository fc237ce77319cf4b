#pragma once

#include <set>
#include <string>
#include <vector>

#include "cases/runner/case_file.h"
#include "cases/runner/process.h"

namespace qcalib::cases {

// Paths of all files below the current folder.
std::set<std::string> files_here();

// Compares what a step did with what it says it does; one sentence for each thing that is not so. `before`
// are the files that were there before the step.
std::vector<std::string> mismatches(const YAML::Node& step, const ProcessResult& result,
                                    const std::set<std::string>& before, const Places& places);

}  // namespace qcalib::cases
