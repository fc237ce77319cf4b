#include "target/circle_graph.h"

#include <algorithm>
#include <set>

namespace qcalib {

bool is_circle_graph(const Graph& graph) {
    return std::ranges::any_of(graph.nodes, [](const Node& node) { return node.domain == "circle"; });
}

std::string fused_activation(const Node& node) {
    return node.attribute<std::string>("fused_activation_function", "NONE");
}

CircleGraph::CircleGraph(const Graph& graph)
    : graph_(&graph),
      activations_(graph.values.size()),
      constants_(graph.values.size()),
      users_(graph.values.size()) {
    const auto is_float = [&](ValueId value) {
        return graph.values[value].declared_type == DataType::float32;
    };
    const auto add_activation = [&](ValueId value) {
        if (value != no_value && !graph.values[value].initializer) activations_[value] = is_float(value);
    };
    std::ranges::for_each(graph.inputs, add_activation);
    for (const Node& node : graph.nodes) {
        std::ranges::for_each(node.outputs, add_activation);
        for (const ValueId input : std::set<ValueId>(node.inputs.begin(), node.inputs.end())) {
            if (input == no_value) continue;
            ++users_[input];
            if (graph.values[input].initializer) constants_[input] = is_float(input);
        }
    }
    for (const ValueId output : graph.outputs) {
        ++users_[output];
        if (graph.values[output].initializer) constants_[output] = is_float(output);
    }
}

bool CircleGraph::is_part(ValueId value) const {
    const NodeIndex producer = graph_->values[value].producer;
    return producer != no_node && graph_->nodes[producer].outputs.size() > 1;
}

std::vector<ValueId> CircleGraph::floats() const {
    std::vector<ValueId> floats;
    for (ValueId value = 0; value < graph_->values.size(); ++value) {
        if (is_activation(value) || is_constant(value)) floats.push_back(value);
    }
    return floats;
}

}  // namespace qcalib
