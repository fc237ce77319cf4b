#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "format/format.h"
#include "graph/graph.h"
#include "runtime/program.h"
#include "statistics/statistics_file.h"
#include "target/assignment.h"
#include "target/overrides.h"
#include "target/target.h"

namespace CLI {
class App;
}

namespace qcalib {

// A file written for a target.
struct EmissionFile {
    const Format* format = nullptr;
    std::filesystem::path path;  // <folder>/<stem>.<target>[.<format>]<suffix>
};

// A target to emit for and the files to write, one at least: a converter is given the first.
struct Emission {
    Target target;
    std::vector<EmissionFile> files;

    const std::filesystem::path& file() const { return files.front().path; }
};

// What is written from statistics, as flags or a pipeline say it: texts are those of the flags, "" and
// nothing for what the target decides.
struct EncodingSettings {
    std::vector<std::string> emit;
    std::vector<std::string> methods;
    std::vector<std::string> weight_methods;
    std::optional<int> activation_bits;
    std::optional<int> weight_bits;
    std::string weights;
    std::optional<bool> symmetric_weights;
    std::optional<bool> symmetric_activations;
    std::optional<bool> unsigned_symmetric;
    std::string power_of_two;
    std::string include_zero;
    std::optional<double> least_range;
    std::string least_range_name;  // one that the target's rules name, instead of least_range
    std::optional<int> bias_bits;
    std::string nonfinite;
    std::string masks;
    std::vector<std::string> target_configs;  // each for the target whose rules it has
    std::vector<Override> overrides;          // of a pipeline
    std::vector<std::string> override_flags;  // as parse_override takes them
    std::string base;                         // a file of encodings, or an ONNX model with ranges
    std::string onnx;                         // the model whose names overrides and base use
    std::string patch;                        // a file of the compiler's own to change
};

// Takes --least-range: a number, or a name; whether a target has it shows when the rules are read.
void set_least_range(const std::string& text, EncodingSettings& settings);

// The flags that say what is written from statistics: --emit, --method and what overrides a target's
// defaults.
class EncodingOptions {
  public:
    EncodingOptions() = default;
    explicit EncodingOptions(EncodingSettings settings) : settings_(std::move(settings)) {}

    // `emit_required`: at least one --emit must be given.
    void add_to(CLI::App& app, bool emit_required);

    // What --emit asks for, checked; files go to `folder` and start with `stem`.
    std::vector<Emission> emissions(const std::filesystem::path& folder, const std::string& stem) const;
    AssignmentOptions assignment() const;

    // What needs the model: reads the base into `options`, and checks the names and targets that overrides
    // give.
    void complete(AssignmentOptions& options, const Graph& graph, std::span<const Emission> emissions,
                  Remarks& remarks) const;

    // One line of the defaults a target fills in: "snpe: method minmax, activations 8 bit asymmetric, ...".
    std::string describe(const Target& target) const;

    bool emits() const { return !settings_.emit.empty(); }

    const EncodingSettings& settings() const { return settings_; }

  private:
    EncodingSettings settings_;
};

// What was written for an emission, and what led to it.
struct EmittedEncodings {
    EncodingSet encodings;
    std::vector<Decision> decisions;
    std::vector<std::filesystem::path> written;
};

// Chooses ranges, assigns encodings and writes the files of each emission; answers in their order. `patch`: a
// file that the formats change instead of making one, or "".
std::vector<EmittedEncodings> write_emissions(const std::vector<Emission>& emissions,
                                              const AssignmentOptions& options,
                                              const std::filesystem::path& patch, const Model& model,
                                              const StatisticsFile& statistics, Remarks& remarks);

// Adds all files of the emissions.
void add_written(std::span<const EmittedEncodings> emitted, std::vector<std::filesystem::path>& written);

// The file name of the model without folder and ending: the start of every output's name.
std::string output_stem(const std::filesystem::path& model);

}  // namespace qcalib
