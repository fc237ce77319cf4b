#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace qcalib {

// Whether a graph's operators are those of a .circle or .tflite file.
bool is_circle_graph(const Graph& graph);

// What is fused into the operator: "NONE", "RELU", "TANH", ...
std::string fused_activation(const Node& node);

// What the rules for Circle ask of a graph. The graph must outlive this.
class CircleGraph {
  public:
    explicit CircleGraph(const Graph& graph);

    const Graph& graph() const { return *graph_; }
    const std::string& name(ValueId value) const { return graph_->values[value].name; }
    // Float32, and an input of the graph or made by a node: what a constant makes too, since ONE folds
    // nothing.
    bool is_activation(ValueId value) const { return value != no_value && activations_[value]; }
    // Float32 data of the file that a node reads.
    bool is_constant(ValueId value) const { return value != no_value && constants_[value]; }
    const Tensor& constant(ValueId value) const { return *graph_->values[value].initializer; }
    // The nodes that read it, each once, and the outputs of the graph it is.
    std::size_t users(ValueId value) const { return users_[value]; }
    // Whether the node that makes it makes others too.
    bool is_part(ValueId value) const;
    // Activations and constants, in the order of the file.
    std::vector<ValueId> floats() const;

  private:
    const Graph* graph_;
    std::vector<bool> activations_;
    std::vector<bool> constants_;
    std::vector<std::size_t> users_;
};

}  // namespace qcalib
