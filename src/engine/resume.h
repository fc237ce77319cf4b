#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "dataset/sample_list.h"
#include "statistics/checkpoint_file.h"

namespace qcalib {

// Hex SHA-256 of what a run is to read: each sample's number and the names of its files. Files are known by
// their names: what is in them is not looked at.
std::string selection_digest(const SelectedSamples& samples);

// The checkpoint that a run which was to write `output` left, or nullptr. An Error where it is damaged or of
// another run; it says in what they differ and how to start anew.
std::unique_ptr<CheckpointFile> find_checkpoint(const std::filesystem::path& output,
                                                const StatisticsHeader& header,
                                                const SelectedSamples& samples);

}  // namespace qcalib
