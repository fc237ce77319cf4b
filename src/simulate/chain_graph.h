#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace qcalib {

// Puts together the graph of an integer chain: the values of a model under their numbers, and others.
class ChainGraph {
  public:
    explicit ChainGraph(const Graph& model);

    // A new float32 value; its name is made of that of `like`.
    ValueId fresh(ValueId like, std::string_view suffix);
    // A new constant of float32.
    ValueId constant(ValueId like, std::string_view suffix, Tensor tensor);
    // Puts `value` in place of a graph input.
    void replace_input(ValueId input, ValueId value);
    // Adds a node behind all others.
    void add(Node node);
    // Adds one of chain_domain named after `like`'s name, with one output.
    void add(std::string_view op_type, ValueId like, std::vector<ValueId> inputs,
             std::vector<std::pair<std::string, AttributeValue>> attributes, std::vector<ValueId> outputs);

    std::shared_ptr<const Graph> finish() { return std::make_shared<const Graph>(std::move(graph_)); }

  private:
    Graph graph_;
};

// Numbers as an attribute: float64, row-major.
Tensor numbers_tensor(const std::vector<double>& numbers);

}  // namespace qcalib
