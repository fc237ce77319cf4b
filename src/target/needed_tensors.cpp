#include "target/needed_tensors.h"

#include <algorithm>

#include "target/constant_lookup.h"
#include "target/fusions.h"
#include "target/tidl_layers.h"

namespace qcalib {

namespace {

// Who reads a value: nodes, their bodies, and outputs of the graph or a body.
struct Readers {
    std::size_t count = 0;
    const Node* node = nullptr;  // the last one
};

std::vector<Readers> readers_of(const Graph& graph) {
    std::vector<Readers> readers(graph.values.size());
    const auto add = [&](ValueId value, const Node* node) {
        if (value == no_value) return;
        ++readers[value].count;
        readers[value].node = node;
    };
    for (const Node& node : graph.nodes) {
        for (const ValueId input : node.inputs) add(input, &node);
        for (const ValueId captured : node.captured) add(captured, nullptr);
        for (const Body& body : node.bodies) {
            for (const ValueId output : body.outputs) add(output, nullptr);
        }
    }
    for (const ValueId output : graph.outputs) add(output, nullptr);
    return readers;
}

const Node* producer_of(const Graph& graph, ValueId value) {
    const NodeIndex producer = value == no_value ? no_node : graph.values[value].producer;
    return producer == no_node ? nullptr : &graph.nodes[producer];
}

bool is_fused(const Graph& graph, ValueId value, const Readers& readers, const Target& target) {
    const Node* node = producer_of(graph, value);
    if (node == nullptr || readers.count != 1 || readers.node == nullptr) return false;
    if (readers.node->inputs[0] != value || node->outputs[0] != value) return false;
    if (!node->domain.empty() || !readers.node->domain.empty()) return false;
    const FusionRule* rule = target.fusion_rule(node->op_type, readers.node->op_type);
    if (rule == nullptr || rule->after.empty()) return rule != nullptr;
    const Node* before = producer_of(graph, node->inputs[0]);
    return before != nullptr && before->domain.empty() &&
           std::find(rule->after.begin(), rule->after.end(), before->op_type) != rule->after.end();
}

// Initializers and what nodes make of constants alone.
std::vector<bool> constant_values(const Graph& graph) {
    std::vector<bool> constant(graph.values.size(), false);
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        constant[value] = graph.values[value].initializer.has_value();
    }
    const auto known = [&](ValueId input) { return input == no_value || constant[input]; };
    for (const Node& node : graph.nodes) {
        const bool folds = node.inputs.empty() ? node.op_type == "Constant" : node.bodies.empty();
        if (!folds || !std::all_of(node.inputs.begin(), node.inputs.end(), known)) continue;
        for (const ValueId output : node.outputs) {
            if (output != no_value) constant[output] = true;
        }
    }
    return constant;
}

}  // namespace

std::vector<bool> fused_values(const Graph& graph, const Target& target) {
    const std::vector<Readers> readers = readers_of(graph);
    std::vector<bool> fused(graph.values.size(), false);
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        fused[value] = is_fused(graph, value, readers[value], target);
    }
    return fused;
}

std::vector<std::string> needed_tensors(const Graph& graph, const Target& target) {
    const std::vector<bool> fused = fused_values(graph, target);
    const Fusions fusions(graph, constants_of(graph), target);
    const std::vector<bool> constant = constant_values(graph);
    std::optional<TidlLayers> layers;
    if (target.tidl != nullptr) layers.emplace(graph, constants_of(graph));
    std::vector<std::string> names;
    const auto add = [&](ValueId value) {
        if (value == no_value || fused[value] || fusions.vanishes(value) || constant[value]) return;
        if (layers && layers->around(value) && !layers->making(value)) return;
        const DataType type = graph.values[value].declared_type;
        if (type == DataType::undefined || is_floating(type)) names.push_back(graph.values[value].name);
    };
    for (const ValueId input : graph.inputs) add(input);
    for (const Node& node : graph.nodes) {
        for (const Body& body : node.bodies) std::for_each(body.inputs.begin(), body.inputs.end(), add);
        std::for_each(node.outputs.begin(), node.outputs.end(), add);
    }
    return names;
}

}  // namespace qcalib
