#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "statistics/statistics_file.h"

namespace qcalib {

// A sample that was skipped before a checkpoint, and why.
struct CheckpointSkip {
    std::uint64_t number = 0;
    std::string reason;

    bool operator==(const CheckpointSkip&) const = default;
};

// How far a run had come when it was last kept.
struct Checkpoint {
    StatisticsHeader header;
    std::string selection;   // hex SHA-256 of what the run is to read
    std::uint64_t done = 0;  // samples (sequences) of the shard that are finished, skipped ones among them
    std::uint64_t rows = 0;  // that were written
    std::uint64_t sequences = 0;  // that the rows are steps of, where they are
    WrittenRows part;
    std::vector<CheckpointSkip> skipped;  // ascending
    std::vector<std::string> left_over;   // files of sequences that end with an incomplete step

    bool operator==(const Checkpoint&) const = default;
};

// "<statistics>.checkpoint".
std::filesystem::path checkpoint_path(const std::filesystem::path& statistics);

// What to add to a message about that checkpoint: "; remove <statistics>.checkpoint to start anew".
std::string start_anew(const std::filesystem::path& statistics);

// Writes the file whole or not at all; `tensors` are as in the header, over the samples that are done.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                      const StatisticsSet& tensors);

// Removes the checkpoint of that path, and what a broken off write_checkpoint() left of it.
void remove_checkpoint(const std::filesystem::path& path);

// A checkpoint, mapped. Opening checks magic, version, lengths and checksum; Errors start with the path.
class CheckpointFile {
  public:
    explicit CheckpointFile(const std::filesystem::path& path);
    ~CheckpointFile();

    const Checkpoint& checkpoint() const;
    // Adds the statistics of all tensors that are no constants to `tensors`, which are those of the header;
    // an Error where a constant is not the one that `tensors` has.
    void merge_into(StatisticsSet& tensors) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace qcalib
