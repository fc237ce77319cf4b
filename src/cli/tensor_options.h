#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/encoding_options.h"
#include "engine/calibration.h"
#include "graph/graph.h"

namespace CLI {
class App;
}

namespace qcalib {

// What is kept of which tensors, as flags or a pipeline say it.
struct TensorSettings {
    std::string statistics = "full";
    std::vector<std::string> tensors = {"all"};
    bool no_derivation = false;
};

// The flags that say what is kept of which tensors: --statistics, --tensors, --no-derivation.
class TensorOptions {
  public:
    TensorOptions() = default;
    explicit TensorOptions(TensorSettings settings) : settings_(std::move(settings)) {}

    void add_to(CLI::App& app);

    // Sets what these flags decide, and adds to `options.settings` what of it is not a field of the file's
    // header. Errors where a target to emit for would lack something: before anything is counted.
    void apply(const Graph& graph, std::span<const Emission> emissions, const AssignmentOptions& assignment,
               CalibrationOptions& options) const;

    const TensorSettings& settings() const { return settings_; }

  private:
    TensorNames names(const Graph& graph, std::span<const Emission> emissions) const;

    TensorSettings settings_;
};

}  // namespace qcalib
