#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "target/fusions.h"
#include "target/target.h"

namespace qcalib {

// A model as an audit asks about it: by names.
class ModelView {
  public:
    // Graph and target have to outlive this.
    ModelView(const Graph& graph, const Target& target);

    const Graph& graph() const { return graph_; }
    std::vector<std::string> tensor_names() const;
    bool has(std::string_view tensor) const { return graph_.find(tensor) != no_value; }
    bool is_input(std::string_view tensor) const;
    bool is_constant(std::string_view tensor) const;  // hangs on initializers alone
    bool is_integer(std::string_view tensor) const;   // by its declared type
    // The node that makes it, or nullptr; the node of that name, or nullptr.
    const Node* producer(std::string_view tensor) const;
    const Node* node(std::string_view name) const;
    // The operators that read it.
    std::vector<const Node*> readers(std::string_view tensor) const;
    // First output of the node, or "".
    std::string output_of(const Node& node) const;
    // The first activation the node reads, or "".
    std::string data_input(const Node& node) const;
    // Name of the weight or bias of the node of that name, or "".
    std::string parameter_of(std::string_view node_name, std::string_view role) const;
    // The fusion of the target's rules that the tensor lies inside, or that makes it; or nullptr.
    const Fusion* fusion_around(std::string_view tensor) const;
    const Fusion* fusion_making(std::string_view tensor) const;
    // Whether an output of the graph hangs on it.
    bool reaches_output(std::string_view tensor) const;
    // The nearest tensors behind it, forwards, that `wanted` is true for; none beyond those.
    std::vector<std::string> next(std::string_view tensor,
                                  const std::function<bool(const std::string&)>& wanted) const;

  private:
    std::vector<ValueId> values_behind(ValueId value) const;

    const Graph& graph_;
    std::vector<std::vector<NodeIndex>> readers_;
    std::vector<bool> constant_;
    std::unordered_map<std::string, NodeIndex> nodes_;
    std::unique_ptr<Fusions> fusions_;
};

}  // namespace qcalib
