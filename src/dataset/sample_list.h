#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "dataset/input_spec.h"

namespace qcalib {

class SampleStore;

// One line of a list: a file for each model input, in the inputs' order; or one sample of a store.
struct ListEntry {
    std::size_t line = 0;  // 1-based line of the list, or number in the store or folder
    // Resolved; empty for an input that has a value without one. A .npz file may be named for several inputs.
    std::vector<std::filesystem::path> files;
    std::shared_ptr<const SampleStore> store = {};  // what has the sample; `files` then name its file
    // `files` name one raw file with the data of all those inputs, one after the other in their order.
    bool joined = false;
};

// Reads a list in SNPE's input_list form: a path, or `name:=path` items separated by blanks, one sample a
// line; an input with a value of its own (InputSpec::otherwise) may be left out; where just one must be
// given, a line without ":=" is its path, blanks included; a .npz file alone is named for all inputs. Where
// several must be given, also in the forms of ONE's record-minmax: a path for each in the model's order
// (refused where two of them take data of one size, so that nothing could tell them apart), or one raw file
// with the data of all. Blank lines are skipped; lines that start with # or % are skipped with one remark
// (SNPE takes them as output names). CRLF is understood. Relative paths are looked up from the working
// directory, then from the list's folder. Errors carry "list:line".
std::vector<ListEntry> read_sample_list(const std::filesystem::path& path, std::span<const InputSpec> inputs,
                                        Remarks& remarks);

// Which samples of the list a run takes.
struct Selection {
    std::optional<std::uint64_t> shuffle_seed;
    std::optional<std::uint64_t> limit;
    std::uint32_t shard = 1;  // 1-based
    std::uint32_t shards = 1;
    std::size_t group = 1;  // lines that make one sample together, see group_size()
};

// A sample of the selection: its number there (kept when others are skipped) and its lines: one, or as many
// single items as the model's fixed batch takes.
struct SelectedSample {
    std::uint64_t number = 0;
    std::vector<ListEntry> entries;
};

struct SelectedSamples {
    std::uint64_t selected = 0;           // after shuffle, limit and grouping, before sharding
    std::uint64_t dropped = 0;            // lines of a last group that was short
    std::vector<SelectedSample> samples;  // of this shard, ascending numbers
};

// How many lines make one sample: the inputs' fixed batch where the files hold single items of it, else 1.
// Decided by the first line whose files exist.
std::size_t group_size(std::span<const ListEntry> entries, std::span<const InputSpec> inputs);

// list -> shuffle -> limit -> groups -> shard: sample k (from 0) belongs to shard k mod n + 1.
SelectedSamples select_samples(std::vector<ListEntry> entries, const Selection& selection);

// "--shard 2/3".
void parse_shard(const std::string& text, Selection& selection);

}  // namespace qcalib
