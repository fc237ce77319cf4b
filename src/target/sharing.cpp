#include "target/sharing.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace qcalib {

namespace {

// Disjoint sets of values.
class Sets {
  public:
    explicit Sets(std::size_t count) : parent_(count) {
        std::iota(parent_.begin(), parent_.end(), ValueId{0});
    }
    ValueId find(ValueId value) {
        while (parent_[value] != value) {
            parent_[value] = parent_[parent_[value]];
            value = parent_[value];
        }
        return value;
    }
    void join(ValueId a, ValueId b) { parent_[find(a)] = find(b); }

  private:
    std::vector<ValueId> parent_;
};

}  // namespace

Sharing::Sharing(const Graph& graph, const Target& target, const std::vector<bool>& activations)
    : source_(graph.values.size(), no_value) {
    const auto active = [&](ValueId value) { return value != no_value && activations[value]; };
    std::vector<const Node*> joining;
    for (const Node& node : graph.nodes) {
        if (!node.domain.empty() || node.inputs.empty()) continue;
        const SharingRule* rule = target.sharing_rule(node.op_type);
        if (rule == nullptr) continue;
        if (rule->with == SharingRule::With::all_inputs) {
            joining.push_back(&node);
            continue;
        }
        if (!active(node.inputs.front())) continue;
        for (const ValueId output : node.outputs) {
            if (active(output)) source_[output] = node.inputs.front();
        }
    }
    if (joining.empty()) return;
    Sets sets(graph.values.size());
    std::vector<ValueId> outputs;
    for (const Node* node : joining) {
        const ValueId output = node->outputs.empty() ? no_value : node->outputs.front();
        if (!active(output)) continue;
        for (const ValueId input : node->inputs) {
            if (active(input)) sets.join(root(input), root(output));
        }
        outputs.push_back(output);
    }
    std::map<ValueId, std::size_t> place;
    for (const ValueId output : outputs) {
        const auto [found, added] = place.emplace(sets.find(root(output)), groups_.size());
        if (added) groups_.push_back({{}, output});
    }
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        if (source_[value] != no_value || !activations[value]) continue;
        const auto found = place.find(sets.find(value));
        if (found != place.end()) groups_[found->second].members.push_back(value);
    }
}

ValueId Sharing::root(ValueId value) const {
    while (source_[value] != no_value) value = source_[value];
    return value;
}

}  // namespace qcalib
