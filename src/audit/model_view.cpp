#include "audit/model_view.h"

#include <algorithm>

namespace qcalib {

namespace {

// The value of an initializer or of a Constant node, or nullptr.
const Tensor* constant_of(const Graph& graph, ValueId value) {
    const Value& found = graph.values[value];
    if (found.initializer) return &*found.initializer;
    if (found.producer == no_node) return nullptr;
    const Node& node = graph.nodes[found.producer];
    if (node.op_type != "Constant") return nullptr;
    const auto attribute = node.attributes.find("value");
    return attribute == node.attributes.end() ? nullptr : std::get_if<Tensor>(&attribute->second);
}

}  // namespace

ModelView::ModelView(const Graph& graph, const Target& target)
    : graph_(graph), readers_(graph.values.size()), constant_(graph.values.size(), false) {
    for (ValueId value = 0; value < graph.values.size(); ++value)
        constant_[value] = graph.values[value].initializer.has_value();
    for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
        const Node& node = graph.nodes[index];
        if (!node.name.empty()) nodes_.emplace(node.name, index);
        bool folds = node.bodies.empty() && (!node.inputs.empty() || node.op_type == "Constant");
        for (const ValueId input : node.inputs) {
            if (input == no_value) continue;
            readers_[input].push_back(index);
            folds = folds && constant_[input];
        }
        for (const ValueId captured : node.captured) readers_[captured].push_back(index);
        for (const ValueId output : node.outputs) {
            if (output != no_value && folds) constant_[output] = true;
        }
    }
    const auto constant = [&graph](ValueId value) { return constant_of(graph, value); };
    fusions_ = std::make_unique<Fusions>(graph, constant, target);
}

const Fusion* ModelView::fusion_around(std::string_view tensor) const {
    const ValueId value = graph_.find(tensor);
    return value == no_value ? nullptr : fusions_->around(value);
}

const Fusion* ModelView::fusion_making(std::string_view tensor) const {
    const ValueId value = graph_.find(tensor);
    return value == no_value ? nullptr : fusions_->making(value);
}

std::vector<std::string> ModelView::tensor_names() const {
    std::vector<std::string> names;
    names.reserve(graph_.values.size());
    for (const Value& value : graph_.values) names.push_back(value.name);
    return names;
}

bool ModelView::is_input(std::string_view tensor) const {
    const ValueId value = graph_.find(tensor);
    return value != no_value &&
           std::find(graph_.inputs.begin(), graph_.inputs.end(), value) != graph_.inputs.end();
}

bool ModelView::is_constant(std::string_view tensor) const {
    const ValueId value = graph_.find(tensor);
    return value != no_value && constant_[value];
}

bool ModelView::is_integer(std::string_view tensor) const {
    const ValueId value = graph_.find(tensor);
    if (value == no_value) return false;
    const DataType type = graph_.values[value].declared_type;
    return type != DataType::undefined && !is_floating(type);
}

const Node* ModelView::producer(std::string_view tensor) const {
    const ValueId value = graph_.find(tensor);
    if (value == no_value || graph_.values[value].producer == no_node) return nullptr;
    return &graph_.nodes[graph_.values[value].producer];
}

const Node* ModelView::node(std::string_view name) const {
    const auto place = nodes_.find(std::string(name));
    return place == nodes_.end() ? nullptr : &graph_.nodes[place->second];
}

std::vector<const Node*> ModelView::readers(std::string_view tensor) const {
    std::vector<const Node*> nodes;
    const ValueId value = graph_.find(tensor);
    if (value == no_value) return nodes;
    for (const NodeIndex index : readers_[value]) nodes.push_back(&graph_.nodes[index]);
    return nodes;
}

std::string ModelView::output_of(const Node& node) const {
    for (const ValueId output : node.outputs) {
        if (output != no_value) return graph_.values[output].name;
    }
    return "";
}

std::string ModelView::data_input(const Node& node) const {
    for (const ValueId input : node.inputs) {
        if (input != no_value && !constant_[input]) return graph_.values[input].name;
    }
    return "";
}

std::string ModelView::parameter_of(std::string_view node_name, std::string_view role) const {
    const Node* found = node(node_name);
    if (found == nullptr) return "";
    const std::size_t place = role == "bias" ? 2 : 1;
    if (found->inputs.size() <= place || found->inputs[place] == no_value) return "";
    return constant_[found->inputs[place]] ? graph_.values[found->inputs[place]].name : "";
}

std::vector<ValueId> ModelView::values_behind(ValueId value) const {
    std::vector<ValueId> behind;
    const auto add = [&](ValueId output) {
        if (output != no_value) behind.push_back(output);
    };
    for (const NodeIndex index : readers_[value]) {
        // What a body's nodes make leads to the outputs of the node the body belongs to.
        const Node* node = &graph_.nodes[index];
        std::for_each(node->outputs.begin(), node->outputs.end(), add);
        if (node->owner != no_node) {
            const std::vector<ValueId>& outputs = graph_.nodes[node->owner].outputs;
            std::for_each(outputs.begin(), outputs.end(), add);
        }
    }
    return behind;
}

bool ModelView::reaches_output(std::string_view tensor) const {
    const auto is_output = [&](const std::string& name) {
        const ValueId value = graph_.find(name);
        return std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
    };
    return is_output(std::string(tensor)) || !next(tensor, is_output).empty();
}

std::vector<std::string> ModelView::next(std::string_view tensor,
                                         const std::function<bool(const std::string&)>& wanted) const {
    std::vector<std::string> found;
    const ValueId start = graph_.find(tensor);
    if (start == no_value) return found;
    std::vector<bool> seen(graph_.values.size(), false);
    std::vector<ValueId> queue = {start};
    seen[start] = true;
    for (std::size_t i = 0; i < queue.size(); ++i) {
        for (const ValueId value : values_behind(queue[i])) {
            if (seen[value]) continue;
            seen[value] = true;
            const std::string& name = graph_.values[value].name;
            if (wanted(name)) {
                found.push_back(name);
            } else {
                queue.push_back(value);
            }
        }
    }
    return found;
}

}  // namespace qcalib
