#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "cli/checks.h"
#include "dataset/sample_list.h"
#include "dataset/sample_reader.h"
#include "engine/carry.h"
#include "graph/graph.h"

namespace CLI {
class App;
}

namespace qcalib {

// Which samples a run takes and how files become tensors, as flags or a pipeline say it: texts are those of
// the flags.
struct DataSettings {
    std::string list;
    std::vector<std::string> shapes;
    std::vector<std::string> values;
    std::vector<std::string> carries;
    std::string resize;
    std::string crop;
    std::string color = "rgb";
    std::optional<double> multiply;
    std::string mean;
    std::string std;
    std::string layout = "model";
    std::vector<std::string> steps;              // "crop: {size: 224x224}"; empty: as the fields above say
    std::optional<Preprocessing> preprocessing;  // in place of all of these
    std::optional<std::uint64_t> shuffle;
    std::optional<std::uint64_t> limit;
    std::string shard;
};

// The flags that say which samples a run takes and how files become tensors.
class DataOptions {
  public:
    DataOptions() = default;
    explicit DataOptions(DataSettings settings) : settings_(std::move(settings)) {}

    void add_to(CLI::App& app);

    // The model's inputs with --shape and --input applied; false where one did not pass its check.
    bool inputs(const Graph& graph, std::vector<InputSpec>& inputs, Checks& checks) const;
    // What --carry feeds back; marks those inputs. Where there is something, each line is a sequence.
    std::vector<Carry> carries(const Graph& graph, std::vector<InputSpec>& inputs, Remarks& remarks) const;
    Preprocessing preprocessing() const;
    Selection selection() const;
    const std::string& list() const { return settings_.list; }

    // The samples of this run and how many lines make one (see group_size()).
    SelectedSamples samples(const std::vector<InputSpec>& inputs, std::size_t& group, Remarks& remarks) const;

    // Canonical text of all of this that can change a count (the shard and the list's name do not).
    std::string canonical_text(std::size_t group) const;

    const DataSettings& settings() const { return settings_; }

  private:
    void check_no_picture_flags() const;

    DataSettings settings_;
};

}  // namespace qcalib
