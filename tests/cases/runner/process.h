#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qcalib::cases {

struct ProcessResult {
    std::string ending;  // "exit code 0", "signal 11"
    std::string standard_output;
    std::string standard_error;
};

// Runs a program to its end in the current folder, its input closed; its two streams are kept as files in
// `logs`, too.
ProcessResult run_process(const std::vector<std::string>& command, const std::filesystem::path& logs);

}  // namespace qcalib::cases
