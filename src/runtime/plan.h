#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/tap.h"

namespace qcalib {

class Plan;

// Where a tensor of a plan lies: at an offset of the worker's arena, in fixed memory (constants), or in the
// memory of what is around the plan.
struct Placement {
    std::size_t offset = 0;
    const std::byte* fixed = nullptr;
    std::int32_t external = -1;  // index into the external values that a BoundPlan is given
};

// One tensor of a plan: a value of the graph in one memory order.
struct PlanTensor {
    TensorDescriptor descriptor;
    Placement placement;
};

// A value that is handed to taps once it is made.
struct Observation {
    ValueId value = no_value;
    std::int32_t tensor = -1;  // index into Plan::tensors
    std::uint32_t taps = 0;    // bit i: the plan's tap i
};

// What happens at one point of a plan.
struct Step {
    enum class Kind : std::uint8_t {
        run,      // a kernel
        reorder,  // inputs[0] copied into outputs[0]'s memory order
        copy,   // the bytes of inputs[0] copied to outputs[0]: a view or a known value that a tap may change
        widen,  // float32 inputs[0] as float64 outputs[0] (a program that computes in double)
        show,   // nothing is computed: a view, or a value that was folded when the plan was made
    };
    Kind kind = Kind::run;
    std::uint32_t node = 0;            // index into Graph::nodes: whom an error names
    std::shared_ptr<Kernel> kernel;    // run
    std::vector<std::int32_t> inputs;  // indices into Plan::tensors, -1: left out
    std::vector<std::int32_t> outputs;
    std::size_t scratch_bytes = 0;
    bool data_dependent = false;  // run: Kernel::make_outputs(), whose tensors are what the plan found
    std::vector<DataType>
        rounding;  // per output: float16 or bfloat16 to round to, else undefined; may be empty
    std::vector<Observation> observed;  // values to hand to the taps afterwards
};

// What follows a plan that ends because a shape depends on data: the next one, looked up by what was found.
class Continuation {
  public:
    virtual ~Continuation() = default;
    // The plan for found values like these, the next plan's inputs, in order. Thread-safe; throws Error
    // naming the node that cannot take its inputs.
    virtual std::shared_ptr<const Plan> next(std::span<const Tensor> found) = 0;
};

// The prepared steps for one signature: of a graph or a body, or of a part of it that ends where a shape
// depends on data. Immutable and shared by the workers.
class Plan {
  public:
    std::size_t arena_bytes() const { return arena_bytes_; }
    std::size_t scratch_bytes() const { return scratch_bytes_; }
    std::span<const Step> steps() const { return steps_; }
    std::span<const PlanTensor> tensors() const { return tensors_; }
    const Graph& graph() const { return *graph_; }

    // The shape and type a value has in this plan (memory order as made), or nullptr for one that is not
    // made.
    const TensorDescriptor* descriptor(ValueId value) const;
    // The type a value is rounded to after it is made (float16, bfloat16), or its own type.
    DataType declared_type(ValueId value) const;

    // What a body gives its node, row-major.
    struct Output {
        std::int32_t tensor = -1;        // index into tensors()
        std::int32_t input_buffer = -1;  // the input whose memory it lies in
        std::optional<Tensor> constant;  // its value, where known
    };
    std::span<const Output> outputs() const { return outputs_; }
    const TensorDescriptor& output_descriptor(std::size_t i) const {
        return tensors_[static_cast<std::size_t>(outputs_[i].tensor)].descriptor;
    }
    // Whether the plan ends before what it is part of does.
    bool continues() const { return continuation_ != nullptr; }

  private:
    friend class PlanBuilder;
    friend class BoundPlan;
    friend class PlanRunner;

    struct Input {
        std::int32_t tensor = -1;  // -1: the plan was made for its value
        DataType rounding = DataType::undefined;
    };

    std::shared_ptr<const Graph> graph_;
    std::vector<Tap*> taps_;
    std::vector<PlanTensor> tensors_;
    std::vector<Step> steps_;
    std::vector<Input> inputs_;        // the graph's or the body's inputs, or what was found before this part
    std::vector<Output> outputs_;      // of a body, in its last part
    std::vector<std::int32_t> found_;  // tensors to hand to the continuation; empty: the last step's outputs
    std::vector<std::int32_t> passed_on_;  // tensors that are the next part's external values
    std::unique_ptr<Continuation> continuation_;
    std::vector<Observation> observed_inputs_;
    std::unordered_map<ValueId, std::int32_t> tensor_of_value_;
    std::unordered_map<ValueId, DataType> declared_types_;
    std::vector<Tensor> kept_;  // constants the steps point into
    std::vector<std::shared_ptr<const HugeBuffer>> kept_weights_;
    std::size_t arena_bytes_ = 0;
    std::size_t scratch_bytes_ = 0;
};

}  // namespace qcalib
