#include "target/constant_lookup.h"

#include <array>
#include <memory>
#include <unordered_map>

namespace qcalib {

ConstantLookup constants_of(const Graph& graph) {
    const auto held = std::make_shared<std::unordered_map<ValueId, Tensor>>();
    for (const Node& node : graph.nodes) {
        if (node.op_type != "Constant" || !node.domain.empty() || node.outputs.size() != 1) continue;
        const auto value = node.attributes.find("value");
        const auto number = node.attributes.find("value_float");
        if (value != node.attributes.end()) {
            if (const auto* tensor = std::get_if<Tensor>(&value->second))
                held->emplace(node.outputs[0], *tensor);
        } else if (number != node.attributes.end()) {
            if (const auto* real = std::get_if<float>(&number->second)) {
                held->emplace(node.outputs[0], Tensor::of<float>({}, std::array{*real}));
            }
        }
    }
    return [&graph, held](ValueId value) -> const Tensor* {
        // Exporters give shared initializers their second names by Identity nodes.
        for (NodeIndex producer = graph.values[value].producer; producer != no_node;
             producer = graph.values[value].producer) {
            const Node& node = graph.nodes[producer];
            if (node.op_type != "Identity" || node.inputs.size() != 1 || node.inputs[0] == no_value) break;
            value = node.inputs[0];
        }
        if (graph.values[value].initializer) return &*graph.values[value].initializer;
        const auto found = held->find(value);
        return found == held->end() ? nullptr : &found->second;
    };
}

}  // namespace qcalib
