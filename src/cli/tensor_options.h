#pragma once

#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/encoding_options.h"
#include "engine/calibration.h"
#include "graph/graph.h"

namespace qcalib {

// The flags that say what is kept of which tensors: --statistics, --tensors, --no-derivation.
class TensorOptions {
  public:
    void add_to(CLI::App& app);

    // Sets what these flags decide, and adds to `options.settings` what of it is not a field of the file's
    // header. Errors where a target to emit for would lack something: before anything is counted.
    void apply(const Graph& graph, std::span<const Emission> emissions, const AssignmentOptions& assignment,
               CalibrationOptions& options) const;

  private:
    TensorNames names(const Graph& graph, std::span<const Emission> emissions) const;

    std::string statistics_ = "full";
    std::vector<std::string> tensors_ = {"all"};
    bool no_derivation_ = false;
};

}  // namespace qcalib
