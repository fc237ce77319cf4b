#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/remarks.h"
#include "engine/carry.h"
#include "simulate/encodings.h"
#include "simulate/sample_runs.h"
#include "simulate/variants.h"

namespace qcalib {

// What a simulation is of; all that is referred to must outlive the calls that take it.
struct SimulationRun {
    const SimulatedModel& model;
    const GivenEncodings& given;
    const MeasuredRanges& measured;
    SimulationSwitches switches;
    const SampleReader& reader;
    const SelectedSamples& samples;
    SampleRunOptions options;
    std::vector<Carry> carries;
    Progress& progress;
    Remarks& remarks;
};

// One tensor of a simulated model.
struct SimulatedTensor {
    std::string name;
    std::string kind;    // "activation", "weight", "constant", "bias"
    std::string origin;  // of its encoding; "": it has none
    int bits = 0;        // 0: not quantized
    double step = 0;
    std::optional<ChainTensor> chain;  // its codes, where the arithmetic is integer
    ErrorSums error;                   // float run and simulated run
    QuantizationSums quantized;        // by its own encoding
    std::uint64_t misfits = 0;         // times its shape was another than in the float run
    bool output = false;               // of the graph
    std::optional<TopAgreement> top;
    std::optional<DumpErrors> dump;  // with --against

    // What its own encoding adds, as a part of its signal.
    double own_error() const { return quantized.signal > 0 ? quantized.error / quantized.signal : 0; }
    double clipped_share() const {
        return quantized.elements == 0
                   ? 0
                   : static_cast<double>(quantized.clipped) / static_cast<double>(quantized.elements);
    }
};

struct SimulationResult {
    SampleRunSummary run;
    std::vector<SimulatedTensor> tensors;      // in graph order: all that are compared
    double cost = 0;                           // output_cost()
    std::optional<std::string> first_parting;  // first tensor that is more than a step from the dumped one
    std::vector<std::string> notes;            // of the integer chain
};

struct DumpSettings {
    std::optional<std::filesystem::path> folder;        // of simulated tensors
    std::optional<std::filesystem::path> float_folder;  // of the float ones
    bool all = false;                                   // every float tensor, not graph outputs alone
    const DumpFolder* against = nullptr;
    bool float_only = false;  // nothing is quantized
};

// Runs all samples in float and simulated, with all encodings, and compares tensor by tensor.
SimulationResult simulate(const SimulationRun& run, const DumpSettings& dumps);

// The extremes of every float tensor over the samples of `run`, in float.
MeasuredRanges measure_ranges(const SimulatedModel& model, const SampleReader& reader,
                              const SelectedSamples& samples, const SampleRunOptions& options,
                              Progress& progress, Remarks& remarks);

// Runs variants over all samples, as many at once as their weights may take memory. The first
// `settings.references.size()` variants are the references and run beside all others. `summary` may be
// nullptr.
std::vector<VariantErrors> run_variants(const SimulationRun& run, const std::vector<Variant>& variants,
                                        VariantSettings settings, SampleRunSummary* summary);

// The steps of a simulation's activations by value, those of the chain where one is run; 0 where there is
// none.
std::vector<double> steps_of(const SimulatedModel& model, const SimulatedEncodings& encodings,
                             const IntegerChain* chain = nullptr);

// What one encoding alone costs at the graph's outputs.
struct IsolatedCost {
    std::string name;
    SimulatedEncoding encoding;
    double cost = 0;  // output_cost()
};

// Of the encodings whose tensors a pattern fits, the costliest first. An Error where a pattern fits none.
// `whole` tells whether the whole graph was run for each, for it has bodies.
std::vector<IsolatedCost> isolated_costs(const SimulationRun& run, const std::vector<std::string>& patterns,
                                         bool& whole);

}  // namespace qcalib
