#pragma once

#include <memory>
#include <vector>

#include "encoding/encoding.h"
#include "graph/graph.h"
#include "runtime/program.h"
#include "target/fusions.h"
#include "target/parameters.h"
#include "target/target.h"

namespace qcalib {

// A model as a simulation sees it: constants that meet activations are initializers, so that they can be
// replaced, and what the target's rules say of the graph is known.
class SimulatedModel {
  public:
    // `options` are those of all its runs. Errors as Program's.
    SimulatedModel(const std::shared_ptr<const Graph>& graph, Target target, const ProgramOptions& options);

    const std::shared_ptr<const Graph>& graph() const { return graph_; }
    const Target& target() const { return target_; }
    const ProgramOptions& options() const { return options_; }
    const Fusions& fusions() const { return *fusions_; }
    const std::vector<Parameter>& parameters() const { return parameters_; }
    // The value of a constant, or nullptr.
    const Tensor* constant(ValueId value) const { return program_->constant(value); }
    // Whether the value holds floats that a run computes.
    bool is_activation(ValueId value) const { return activations_[value]; }
    // All values in the order in which they come to be: inputs, then what each node makes.
    const std::vector<ValueId>& order() const { return order_; }
    // Whether the value is an input or computed of inputs without weights (normalised, pooled, reshaped).
    bool is_near_input(ValueId value) const { return near_input_[value]; }
    // Whether it lies inside a layer of TIDL, where it has no tensor of its own; of targets with an integer
    // chain.
    bool is_inside_layer(ValueId value) const { return inside_layer_[value]; }
    // Whether one Relu or Clip alone reads it.
    bool is_pre_activation(ValueId value) const { return pre_activation_[value]; }

  private:
    void find_near_inputs();
    void find_pre_activations();
    void find_inside_layers();

    std::shared_ptr<const Graph> graph_;
    Target target_;
    ProgramOptions options_;
    std::unique_ptr<const Program> program_;  // folds constants; runs nothing
    std::unique_ptr<const Fusions> fusions_;
    std::vector<bool> activations_;
    std::vector<Parameter> parameters_;
    std::vector<ValueId> order_;
    std::vector<bool> near_input_;
    std::vector<bool> pre_activation_;
    std::vector<bool> inside_layer_;
};

}  // namespace qcalib
