#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tbb/enumerable_thread_specific.h>

#include "engine/carry.h"
#include "simulate/dumps.h"
#include "simulate/simulator.h"

namespace qcalib {

// One way to run the model.
struct Variant {
    std::string name;
    Quantization quantization;
};

// How far a run's value is from a dumped one. Steps are those of VariantSettings::steps; where a value has
// none, a ten-thousandth of the dumped tensor's greatest magnitude.
struct DumpErrors {
    std::uint64_t elements = 0;
    std::uint64_t different = 0;  // by half a step or more
    std::uint64_t beyond = 0;     // by more than a step
    double squared_steps = 0;
    double greatest_steps = 0;

    void add(const DumpErrors& next);
};

// The mean of what relative_error() is for each output that has elements to compare; one without a signal
// counts as 1 where it differs.
double output_cost(std::span<const ErrorSums> outputs);
// The same in decibels: infinite where nothing differs.
double cost_decibels(double cost);

// What came of one variant, over all samples.
struct VariantErrors {
    std::vector<ValueErrors> values;         // by value: what differs from the float run
    std::vector<TopAgreement> tops;          // by graph output: float run and variant
    std::vector<DumpErrors> dumps;           // by value: dumped and variant; empty where there are none
    std::vector<ErrorSums> from_references;  // reference by reference, by graph output: it and the variant

    void add(const VariantErrors& next);
    // What the variant costs: output_cost() of the graph outputs beside the float run.
    double cost(const Graph& graph) const;
};

struct VariantSettings {
    std::vector<bool> compared;           // values compared with the float run; graph outputs always are
    std::vector<std::size_t> references;  // variants whose outputs those behind them are compared with
    const DumpFolder* against = nullptr;
    std::vector<double> steps;               // by value, 0: none; for `against`
    std::vector<Carry> carries;              // of sequences
    const DumpWriter* dump = nullptr;        // of the first variant: graph outputs, and all values ...
    const DumpWriter* dump_float = nullptr;  // ... where `dump_all`
    bool dump_all = false;
};

// Runs each sample in float and as each variant, and compares.
class VariantTask : public SampleTask {
  public:
    // All must outlive this. Values that a variant quantizes or settings name must be those the simulator
    // quantizes or sees.
    VariantTask(Simulator& simulator, const std::vector<Variant>& variants, const VariantSettings& settings);

    void prepare(const SampleStep& step) override;
    std::uint64_t worker_bytes(const SampleStep& step) override;
    std::unique_ptr<StepResult> run(SampleStep& step) override;
    void take(std::unique_ptr<StepResult> result) override;

    const std::vector<VariantErrors>& errors() const { return errors_; }

  private:
    struct Worker {
        explicit Worker(std::size_t values, std::span<const Carry> carries)
            : reference(values), capture(values), carried(carries) {}
        Frame float_frame;
        Frame frame;
        Capture reference;  // of the float run
        Capture capture;    // of a variant
        CarriedStates carried;
        std::vector<std::vector<Tensor>> outputs;  // of the references
    };
    struct Result : StepResult {
        std::vector<VariantErrors> variants;
    };

    Worker& worker();
    void run_float(Worker& worker, const SampleStep& step);
    VariantErrors run_variant(Worker& worker, const SampleStep& step, std::size_t index);
    void compare_dumps(const Worker& worker, const SampleStep& step, VariantErrors& errors) const;
    void compare_outputs(Worker& worker, std::size_t index, VariantErrors& errors) const;

    Simulator& simulator_;
    const std::vector<Variant>& variants_;
    const VariantSettings& settings_;
    std::vector<bool> kept_;     // by value: of the float run
    std::vector<bool> watched_;  // by value: of a variant
    tbb::enumerable_thread_specific<std::unique_ptr<Worker>> workers_;
    std::vector<VariantErrors> errors_;
};

}  // namespace qcalib
