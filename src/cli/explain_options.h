#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/encoding_options.h"
#include "graph/graph.h"
#include "statistics/statistics_file.h"

namespace CLI {
class App;
}

namespace qcalib {

// --explain: how tensors came to their encodings.
class ExplainOptions {
  public:
    ExplainOptions() = default;
    explicit ExplainOptions(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {}

    void add_to(CLI::App& app);

    // Before anything costs: Errors where a name fits no tensor of the model, or nothing is emitted.
    void check(const Graph& graph, std::span<const Emission> emissions) const;

    // For each tensor that was asked for and each target the chain from statistics to encoding; "" where
    // none was. `emitted` is in the order of `emissions`.
    std::string text(std::span<const Emission> emissions, std::span<const EmittedEncodings> emitted,
                     const Graph& graph, const StatisticsFile& statistics) const;

    const std::vector<std::string>& patterns() const { return patterns_; }

  private:
    std::vector<std::string> patterns_;
};

}  // namespace qcalib
