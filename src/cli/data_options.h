#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/remarks.h"
#include "dataset/sample_list.h"
#include "dataset/sample_reader.h"
#include "engine/carry.h"
#include "graph/graph.h"

namespace qcalib {

// The flags that say which samples a run takes and how files become tensors.
class DataOptions {
  public:
    void add_to(CLI::App& app);

    // The model's inputs with --shape and --input applied.
    std::vector<InputSpec> inputs(const Graph& graph) const;
    // What --carry feeds back; marks those inputs. Where there is something, each line is a sequence.
    std::vector<Carry> carries(const Graph& graph, std::vector<InputSpec>& inputs, Remarks& remarks) const;
    Preprocessing preprocessing() const;
    Selection selection() const;
    const std::string& list() const { return list_; }

    // The samples of this run and how many lines make one (see group_size()).
    SelectedSamples samples(const std::vector<InputSpec>& inputs, std::size_t& group, Remarks& remarks) const;

    // Canonical text of all of this that can change a count (the shard and the list's name do not).
    std::string canonical_text(std::size_t group) const;

  private:
    std::string list_;
    std::vector<std::string> shapes_;
    std::vector<std::string> values_;
    std::vector<std::string> carries_;
    std::string resize_;
    std::string crop_;
    std::string color_ = "rgb";
    std::optional<double> multiply_;
    std::string mean_;
    std::string std_;
    std::string layout_ = "model";
    std::optional<std::uint64_t> shuffle_;
    std::optional<std::uint64_t> limit_;
    std::string shard_;
};

}  // namespace qcalib
