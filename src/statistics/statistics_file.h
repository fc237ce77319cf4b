#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "statistics/counter.h"
#include "statistics/histogram.h"

namespace qcalib {

struct TensorInfo {
    std::string name;       // any bytes
    bool constant = false;  // hangs on initializers alone: counted once, no place in rows

    bool operator==(const TensorInfo&) const = default;
};

// What a .qstats file says of the run that made it.
struct StatisticsHeader {
    std::string model_hash;       // hex SHA-256, see Model::hash
    std::string settings;         // canonical text of all that can change a count
    std::string instruction_set;  // "avx512", ...
    CounterSettings counter;
    std::uint64_t selected = 0;  // samples of the whole selection, before sharding
    std::uint32_t shard = 1;     // 1-based
    std::uint32_t shards = 1;
    std::vector<TensorInfo> tensors;  // graph order
    bool sequences = false;           // `selected` counts sequences, and rows are their steps

    bool operator==(const StatisticsHeader&) const = default;
};

// The number of a step of a sequence (StatisticsHeader::sequences): it depends on no other sequence, so that
// shards need not know how long those of others are.
constexpr unsigned step_bits = 32;
constexpr std::uint64_t step_number(std::uint64_t sequence, std::uint64_t step) {
    return sequence << step_bits | step;
}

// One sample's entries for the tensors that are no constants, in header order.
struct Row {
    std::uint64_t number = 0;  // in the selection, from 0; of a step: see step_number()
    std::vector<SampleSummary> entries;
};

// The statistics of all tensors of a run. Merging locks only the tensor it changes.
class StatisticsSet {
  public:
    explicit StatisticsSet(std::size_t tensors);
    void merge(std::size_t tensor, const TensorStatistics& sample);
    const TensorStatistics& operator[](std::size_t tensor) const { return statistics_[tensor]; }
    std::size_t size() const { return statistics_.size(); }

  private:
    std::vector<TensorStatistics> statistics_;
    std::unique_ptr<std::mutex[]> locks_;
};

// How much of `<path>.part` is written: the header and the rows so far.
struct WrittenRows {
    std::uint64_t bytes = 0;
    Digest digest = {};  // SHA-256 of these bytes

    bool operator==(const WrittenRows&) const = default;
};

// Writes a .qstats file: the header at once, rows in ascending order as they come, the rest in finish().
// While it is written it is called `<path>.part`; without finish() it is removed, unless sync() was called.
class StatisticsWriter {
  public:
    StatisticsWriter(const std::filesystem::path& path, const StatisticsHeader& header);
    // Goes on behind what sync() of another writer of the same file and header answered. An Error where
    // `<path>.part` does not start with that. Where it is gone because the run ended right after it had put
    // the file in place, it is made again from that.
    StatisticsWriter(const std::filesystem::path& path, const StatisticsHeader& header,
                     const WrittenRows& written);
    ~StatisticsWriter();
    void add_row(const Row& row);
    // Brings the rows so far to the disk, where they stay.
    WrittenRows sync();
    // `skipped` are the numbers of samples without a row, ascending.
    void finish(std::span<const TensorStatistics> tensors, std::span<const std::uint64_t> skipped);
    void finish(const StatisticsSet& tensors, std::span<const std::uint64_t> skipped);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// A finished .qstats file, mapped: rows stay in the file and are read in place. Opening checks magic,
// version, lengths and checksum; Errors start with the path.
class StatisticsFile {
  public:
    explicit StatisticsFile(const std::filesystem::path& path);
    ~StatisticsFile();

    const std::filesystem::path& path() const;
    const StatisticsHeader& header() const;
    std::size_t rows() const;
    std::uint64_t row_number(std::size_t row) const;
    // The entry of a tensor (index into header().tensors, no constant) in the row of that index.
    SampleSummary entry(std::size_t row, std::size_t tensor) const;
    Row row(std::size_t row) const;
    const TensorStatistics& tensor(std::size_t tensor) const;
    const std::vector<std::uint64_t>& skipped() const;
    // Index of the tensor of that name, or nothing.
    std::optional<std::size_t> find(std::string_view name) const;

    // The file as if the run had ended after its first rows, as far as rows tell: tensors that are no
    // constants have their extremes, and no counts.
    StatisticsFile first(std::size_t rows) const;

  private:
    struct State;
    explicit StatisticsFile(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// Merges all shards of one run, in any order, into the file the unsharded run writes. Errors name the files:
// a sample met twice (overlap); another model, setting, instruction set, shard count or constant (foreign); a
// shard not given (missing).
void merge_statistics(std::span<const std::filesystem::path> shards, const std::filesystem::path& output);

}  // namespace qcalib
