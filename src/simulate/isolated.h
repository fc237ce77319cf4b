#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <tbb/enumerable_thread_specific.h>

#include "simulate/simulator.h"
#include "simulate/variants.h"

namespace qcalib {

// What the encoding of one value alone does to the graph's outputs.
struct IsolatedErrors {
    std::vector<ErrorSums> outputs;  // by graph output: float run, and with that value quantized
};

// The nodes that hang on a value, as a graph of its own: values keep their numbers, what the nodes read from
// outside becomes an initializer where it is constant, else an input.
struct GraphBehind {
    std::shared_ptr<const Graph> graph;
    std::vector<ValueId> inputs;  // of it, by their numbers
};

// `constant` answers constants of the whole graph, `descriptor` what a run made of a value. Only for graphs
// without bodies.
GraphBehind graph_behind(const Graph& graph, ValueId value,
                         const std::function<const Tensor*(ValueId)>& constant,
                         const std::function<const TensorDescriptor*(ValueId)>& descriptor);

// Quantizes values one by one and runs the part of the graph behind each again, fed from the float run of the
// sample. A graph with bodies (If, Loop, Scan) is run as a whole.
class IsolatedTask : public SampleTask {
  public:
    // `quantizations` have one value quantized each, `values` says which. The simulator must see all values.
    // With carries each step starts from the float run's state.
    IsolatedTask(Simulator& simulator, std::span<const ValueId> values,
                 std::span<const Quantization> quantizations, std::span<const Carry> carries);

    void prepare(const SampleStep& step) override;
    std::uint64_t worker_bytes(const SampleStep& step) override;
    std::unique_ptr<StepResult> run(SampleStep& step) override;
    void take(std::unique_ptr<StepResult> result) override;

    // Parallel to `values`.
    const std::vector<IsolatedErrors>& errors() const { return errors_; }
    // Whether the graph has bodies.
    bool runs_whole() const { return whole_; }

  private:
    struct Part {
        std::vector<ValueId> inputs;
        std::unique_ptr<Program> program;  // nullptr: nothing is behind the value
    };
    struct Worker {
        Worker(std::size_t values, std::span<const Carry> carries)
            : reference(values), capture(values), carried(carries) {}
        Frame float_frame;
        Frame frame;
        Capture reference;
        Capture capture;
        CarriedStates carried;
    };
    struct Result : StepResult {
        std::vector<IsolatedErrors> values;
    };

    void make_parts(const Capture& reference);
    void run_part(Worker& worker, const Part& part, const Quantization& quantization, const SampleStep& step);
    IsolatedErrors compare_outputs(const Worker& worker, ValueId value,
                                   const Quantization& quantization) const;

    Simulator& simulator_;
    std::span<const ValueId> values_;
    std::span<const Quantization> quantizations_;
    std::span<const Carry> carries_;
    std::vector<bool> outputs_;  // by value
    bool whole_ = false;
    std::once_flag parts_made_;
    std::vector<Part> parts_;
    tbb::enumerable_thread_specific<std::unique_ptr<Worker>> workers_;
    std::vector<IsolatedErrors> errors_;
};

}  // namespace qcalib
