#include "simulate/chain_graph.h"

#include <fmt/format.h>

#include "simulate/chain_kernels.h"

namespace qcalib {

ChainGraph::ChainGraph(const Graph& model) : graph_(model) {
    graph_.nodes.clear();
    for (Value& value : graph_.values) value.producer = no_node;
}

ValueId ChainGraph::fresh(ValueId like, std::string_view suffix) {
    std::string name = fmt::format("{} ({})", graph_.values[like].name, suffix);
    while (graph_.index.contains(name)) name += "'";
    const auto id = static_cast<ValueId>(graph_.values.size());
    graph_.index.emplace(name, id);
    Value& value = graph_.values.emplace_back();
    value.name = std::move(name);
    value.declared_type = DataType::float32;
    return id;
}

ValueId ChainGraph::constant(ValueId like, std::string_view suffix, Tensor tensor) {
    const ValueId id = fresh(like, suffix);
    graph_.values[id].initializer = std::move(tensor);
    return id;
}

void ChainGraph::replace_input(ValueId input, ValueId value) {
    graph_.values[value].declared_type = graph_.values[input].declared_type;
    graph_.values[value].declared_shape = graph_.values[input].declared_shape;
    std::ranges::replace(graph_.inputs, input, value);
}

void ChainGraph::add(Node node) {
    const auto index = static_cast<NodeIndex>(graph_.nodes.size());
    for (const ValueId output : node.outputs) {
        if (output != no_value) graph_.values[output].producer = index;
    }
    graph_.nodes.push_back(std::move(node));
}

void ChainGraph::add(std::string_view op_type, ValueId like, std::vector<ValueId> inputs,
                     std::vector<std::pair<std::string, AttributeValue>> attributes,
                     std::vector<ValueId> outputs) {
    Node node;
    node.name = fmt::format("{} of {}", op_type, graph_.values[like].name);
    node.domain = chain_domain;
    node.op_type = op_type;
    node.opset = 1;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    for (auto& [name, value] : attributes) node.attributes.emplace(std::move(name), std::move(value));
    add(std::move(node));
}

Tensor numbers_tensor(const std::vector<double>& numbers) {
    return Tensor::of<double>({static_cast<std::int64_t>(numbers.size())}, std::span(numbers));
}

}  // namespace qcalib
