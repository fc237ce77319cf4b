#include "runtime/value_uses.h"

namespace qcalib {

ValueUses::ValueUses(const Graph& graph, std::vector<bool> wanted,
                     const std::function<const Tensor*(ValueId)>& constant)
    : graph_(graph), constant_(constant), seen_(std::move(wanted)), users_(graph.values.size()) {
    for (const ValueId output : graph.outputs) seen_[output] = true;
    for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
        const Node& node = graph.nodes[index];
        for (const ValueId input : node.inputs) {
            if (input == no_value) continue;
            users_[input].push_back(index);
            if (node.owner != no_node) seen_[input] = true;
        }
        for (const ValueId captured : node.captured) seen_[captured] = true;
        for (const Body& body : node.bodies) {
            for (const ValueId output : body.outputs) seen_[output] = true;
        }
    }
}

bool ValueUses::is_float(ValueId value) const {
    if (value == no_value) return false;
    const DataType declared = graph_.values[value].declared_type;
    return declared == DataType::float32 || declared == DataType::undefined;
}

NodeIndex ValueUses::only_user(ValueId value) const {
    return hidden(value) && users_[value].size() == 1 ? users_[value][0] : no_node;
}

std::optional<float> ValueUses::number(ValueId value, std::size_t highest_rank) const {
    if (value == no_value) return std::nullopt;
    const Tensor* tensor = constant_(value);
    if (tensor == nullptr || tensor->type() != DataType::float32 || tensor->view().elements() != 1 ||
        tensor->shape().size() > highest_rank) {
        return std::nullopt;
    }
    return static_cast<float>(numbers_of(tensor->view())[0]);
}

}  // namespace qcalib
