#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/encoding_options.h"

namespace qcalib {

// The ranks of inputs that the converters of all emissions keep with their channels last; an Error where they
// differ, or where there is no emission.
std::vector<std::int64_t> channels_last_ranks(std::span<const Emission> emissions);

// The commands that hand the files of each emission to its converter, ready for a shell. `list` is the
// input_list.txt that --export-inputs wrote; without one a name stands for it.
std::vector<std::string> hand_over_commands(std::span<const Emission> emissions,
                                            const AssignmentOptions& options,
                                            const std::filesystem::path& model,
                                            const std::optional<std::filesystem::path>& list);

}  // namespace qcalib
