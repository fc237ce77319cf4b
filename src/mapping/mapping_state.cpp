#include "mapping/mapping_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <string_view>

#include "base/text.h"
#include "mapping/operator_kind.h"

namespace qcalib {

namespace {

constexpr std::size_t most_region_nodes = 64;

// The first value for which `is_it` holds on the way from `value` to the outputs, in order of distance.
template <typename Condition>
ValueId first_behind(const MappedSide& side, ValueId value, Condition is_it) {
    std::deque<ValueId> open_values = {value};
    std::vector<bool> met(side.graph.values.size());
    while (!open_values.empty()) {
        const ValueId at = open_values.front();
        open_values.pop_front();
        if (is_it(at)) return at;
        for (const NodeIndex node : side.consumers[at]) {
            for (const ValueId output : side.graph.nodes[node].outputs) {
                if (output == no_value || met[output]) continue;
                met[output] = true;
                open_values.push_back(output);
            }
        }
    }
    return no_value;
}

// A name without what converters add around it.
std::string_view core_of(std::string_view name) {
    for (const std::string_view prefix :
         {"StatefulPartitionedCall/", "PartitionedCall/", "serving_default_", "onnx_tf_prefix_"}) {
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    }
    const std::size_t colon = name.rfind(':');
    if (colon != std::string_view::npos && colon > 0) name = name.substr(0, colon);
    for (const std::string_view suffix : {"/post_tr", "/pre_tr", "/tr", "_output_0"}) {
        if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
    }
    return name;
}

}  // namespace

void MappedSide::index() {
    consumers.assign(graph.values.size(), {});
    position.assign(graph.values.size(), 0);
    for (NodeIndex i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        for (const ValueId input : node.inputs) {
            if (input != no_value) consumers[input].push_back(i);
        }
        for (const ValueId input : node.captured) consumers[input].push_back(i);
        for (const ValueId output : node.outputs) {
            if (output != no_value) position[output] = i + 1;
        }
    }
}

const Node* MappedSide::producer(ValueId value) const {
    const NodeIndex node = graph.values[value].producer;
    return node == no_node ? nullptr : &graph.nodes[node];
}

const CandidateMap& CandidatePair::best() const {
    double least = maps.front().difference.largest;
    for (const CandidateMap& one : maps) least = std::min(least, one.difference.largest);
    return *std::find_if(maps.begin(), maps.end(),
                         [&](const CandidateMap& one) { return one.difference.largest <= 2 * least; });
}

void MappingState::pair(TensorPair pair) {
    pair.circle_shape = circle.values[pair.circle].shape;
    pair.onnx_shape = onnx.values[pair.onnx].shape;
    std::size_t& there = onnx_group[pair.onnx];
    std::size_t& here = circle_group[pair.circle];
    if (here == 0) here = there;
    if (here == 0) here = ++groups;
    if (there == 0) there = here;
    partners[pair.onnx].push_back(pair.circle);
    for (const ValueId equal : pair.also) {
        partners[equal].push_back(pair.circle);
        if (onnx_group[equal] == 0) onnx_group[equal] = here;
    }
    pairs[pair.circle] = std::move(pair);
}

ValueId MappingState::paired_behind(ValueId circle_value) const {
    return first_behind(circle, circle_value, [&](ValueId value) {
        return pairs[value].has_value() && circle.is_activation(value);
    });
}

ValueId MappingState::paired_behind_onnx(ValueId onnx_value) const {
    return first_behind(onnx, onnx_value,
                        [&](ValueId value) { return is_paired_onnx(value) && onnx.is_activation(value); });
}

std::vector<NodeIndex> MappingState::region_of(ValueId circle_value) const {
    std::vector<NodeIndex> region;
    if (!pairs[circle_value]) return region;
    const std::size_t group = circle_group[circle_value];
    std::deque<ValueId> open_values = {pairs[circle_value]->onnx};
    while (!open_values.empty() && region.size() < most_region_nodes) {
        const ValueId at = open_values.front();
        open_values.pop_front();
        const NodeIndex index = onnx.graph.values[at].producer;
        if (index == no_node || std::find(region.begin(), region.end(), index) != region.end()) continue;
        region.push_back(index);
        for (const ValueId input : onnx.graph.nodes[index].inputs) {
            if (input == no_value) continue;
            const bool same = onnx_group[input] == group && group != 0;
            if (!is_paired_onnx(input) || same || onnx.is_constant(input)) open_values.push_back(input);
        }
    }
    return region;
}

int name_votes(const std::string& circle_name, const std::string& onnx_name, const std::string& onnx_node) {
    if (circle_name == onnx_name) return 3;
    int votes = 0;
    for (const std::string& part : split(circle_name, ';')) {
        const std::string_view core = core_of(part);
        if (core.empty()) continue;
        if (core == core_of(onnx_name) || core == onnx_node) votes = std::max(votes, 2);
        const bool inside = onnx_name.size() > 2 && core.find(core_of(onnx_name)) != std::string_view::npos;
        if (inside || (onnx_node.size() > 2 && core.find(onnx_node) != std::string_view::npos))
            votes = std::max(votes, 1);
    }
    return votes;
}

double pair_score(const MappingState& state, ValueId circle, ValueId onnx) {
    const Node* here = state.circle.producer(circle);
    const Node* there = state.onnx.producer(onnx);
    double score = 0;
    if (here != nullptr && there != nullptr) {
        if (operator_kind(*here) == operator_kind(*there)) score += 4;
        const std::string_view fused = fused_activation(*here);
        const std::string kind = operator_kind(*there);
        if ((fused == "RELU" && kind == "relu") || (fused == "RELU6" && kind == "clip") ||
            (fused == "TANH" && kind == "tanh"))
            score += 4;
    } else if (here == nullptr && there == nullptr) {
        score += 4;
    }
    score += name_votes(state.circle.name(circle), state.onnx.name(onnx),
                        there == nullptr ? std::string() : there->name);
    const auto is_output = [](const Graph& graph, ValueId value) {
        return std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end();
    };
    if (is_output(state.circle.graph, circle) && is_output(state.onnx.graph, onnx)) score += 2;
    return score;
}

}  // namespace qcalib
