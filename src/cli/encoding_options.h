#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/remarks.h"
#include "format/format.h"
#include "graph/graph.h"
#include "runtime/program.h"
#include "statistics/statistics_file.h"
#include "target/assignment.h"
#include "target/target.h"

namespace qcalib {

// A target to emit for and the format to write.
struct Emission {
    Target target;
    const Format* format = nullptr;
    std::filesystem::path file;  // <folder>/<stem>.<target>[.<format>]<suffix>
};

// The flags that say what is written from statistics: --emit, --method and what overrides a target's
// defaults.
class EncodingOptions {
  public:
    // `emit_required`: at least one --emit must be given.
    void add_to(CLI::App& app, bool emit_required);

    // What --emit asks for, checked; files go to `folder` and start with `stem`.
    std::vector<Emission> emissions(const std::filesystem::path& folder, const std::string& stem) const;
    AssignmentOptions assignment() const;

    // One line of the defaults a target fills in: "snpe: method minmax, activations 8 bit asymmetric, ...".
    std::string describe(const Target& target) const;

    bool emits() const { return !emit_.empty(); }

  private:
    std::vector<std::string> emit_;
    std::vector<std::string> methods_;
    std::vector<std::string> weight_methods_;
    std::optional<int> activation_bits_;
    std::optional<int> weight_bits_;
    std::string weights_;
    bool symmetric_weights_ = false;
    bool symmetric_activations_ = false;
    bool unsigned_symmetric_ = false;
    std::string power_of_two_;
    std::string include_zero_;
    std::optional<double> least_range_;
    std::string nonfinite_;
    std::string masks_;
    std::string target_config_;
};

// Chooses ranges, assigns encodings and writes the file of each emission.
void write_emissions(const std::vector<Emission>& emissions, const AssignmentOptions& options,
                     const Graph& graph, const StatisticsFile& statistics, Remarks& remarks);

// The file name of the model without folder and ending: the start of every output's name.
std::string output_stem(const std::filesystem::path& model);

}  // namespace qcalib
