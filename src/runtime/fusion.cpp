#include "runtime/fusion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/activation.h"

namespace qcalib {

namespace {

// One step along a chain: what is done, the nodes that did it, and what comes out.
struct Link {
    Activation activation;
    std::vector<NodeIndex> nodes;
    ValueId output = no_value;
};

class ChainFinder {
  public:
    ChainFinder(const Graph& graph, const std::vector<bool>& wanted,
                const std::function<const Tensor*(ValueId)>& constant)
        : graph_(graph), constant_(constant), seen_(wanted), users_(graph.values.size()) {
        for (const ValueId output : graph.outputs) seen_[output] = true;
        for (NodeIndex index = 0; index < graph.nodes.size(); ++index) list_uses(index);
    }

    // What happens to `value` before anybody sees it, link by link.
    std::vector<Link> chain_from(ValueId value) const {
        std::vector<Link> chain;
        while (std::optional<Link> link = link_from(value)) {
            value = link->output;
            chain.push_back(std::move(*link));
        }
        return chain;
    }

    bool is_float(ValueId value) const {
        const DataType declared = graph_.values[value].declared_type;
        return declared == DataType::float32 || declared == DataType::undefined;
    }

  private:
    void list_uses(NodeIndex index) {
        const Node& node = graph_.nodes[index];
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

    bool hidden(ValueId value) const { return !seen_[value] && is_float(value); }

    std::optional<Link> link_from(ValueId value) const {
        if (!hidden(value)) return std::nullopt;
        const std::vector<NodeIndex>& users = users_[value];
        if (users.size() == 1) return single_link(value, users[0]);
        if (users.size() != 2) return std::nullopt;
        for (const auto& [gate, product] : {std::pair(users[0], users[1]), std::pair(users[1], users[0])}) {
            if (std::optional<Link> link = gated_link(value, gate, product)) return link;
        }
        return std::nullopt;
    }

    // A node that does something to each element alone.
    std::optional<Link> single_link(ValueId value, NodeIndex index) const {
        const Node& node = graph_.nodes[index];
        std::optional<Activation> activation = activation_of(node, value);
        if (!activation || !is_float(node.outputs[0])) return std::nullopt;
        return Link{*activation, {index}, node.outputs[0]};
    }

    std::optional<Activation> activation_of(const Node& node, ValueId value) const {
        using enum Activation::Kind;
        if (!node.domain.empty() || node.outputs.size() != 1 || node.outputs[0] == no_value)
            return std::nullopt;
        if (node.op_type == "Relu") return Activation{leaky_relu, 0, 0};
        if (node.op_type == "LeakyRelu") return Activation{leaky_relu, node.attribute("alpha", 0.01F), 0};
        if (node.op_type == "Sigmoid") return Activation{sigmoid, 0, 0};
        if (node.op_type == "HardSwish") return Activation{hard_swish, 0, 0};
        if (node.op_type == "Clip") return clip_of(node, value);
        return linear_of(node, value);
    }

    std::optional<Activation> clip_of(const Node& node, ValueId value) const {
        if (node.inputs[0] != value) return std::nullopt;
        Activation clip{Activation::Kind::clip, node.attribute("min", std::numeric_limits<float>::lowest()),
                        node.attribute("max", std::numeric_limits<float>::max())};
        const std::array<float*, 2> bounds{&clip.a, &clip.b};
        for (std::size_t i = 1; i < node.inputs.size() && i < 3; ++i) {
            if (node.inputs[i] == no_value) continue;
            const std::optional<float> bound = number(node.inputs[i]);
            if (!bound) return std::nullopt;
            *bounds[i - 1] = *bound;
        }
        if (!(clip.a <= clip.b)) return std::nullopt;
        return clip;
    }

    // x + c, x - c, c x.
    std::optional<Activation> linear_of(const Node& node, ValueId value) const {
        if (node.inputs.size() != 2) return std::nullopt;
        const std::size_t own = node.inputs[0] == value ? 0 : 1;
        const std::optional<float> other = number(node.inputs[1 - own]);
        if (!other || !std::isfinite(*other)) return std::nullopt;
        if (node.op_type == "Add") return Activation{Activation::Kind::linear, 1, *other};
        if (node.op_type == "Sub" && own == 0) return Activation{Activation::Kind::linear, 1, -*other};
        if (node.op_type == "Mul") return Activation{Activation::Kind::linear, *other, 0};
        return std::nullopt;
    }

    // x times a gate made of x: SiLU and HardSwish.
    std::optional<Link> gated_link(ValueId value, NodeIndex gate_index, NodeIndex product_index) const {
        const Node& gate = graph_.nodes[gate_index];
        if (!gate.domain.empty() || gate.outputs.size() != 1 || gate.outputs[0] == no_value)
            return std::nullopt;
        if (gate.op_type == "Add") return written_out_hard_swish(value, gate_index, product_index);
        const Node& product = graph_.nodes[product_index];
        if (!multiplies(product, value, gate.outputs[0]) || !used_once(gate.outputs[0])) return std::nullopt;
        Link link{{Activation::Kind::silu, 1, 0}, {gate_index, product_index}, product.outputs[0]};
        if (gate.op_type == "Sigmoid") return link;
        link.activation.kind = Activation::Kind::hard_swish;
        const bool of_hard_swish =
            std::abs(gate.attribute("alpha", 0.2F) * 6 - 1) < 1e-6F && gate.attribute("beta", 0.5F) == 0.5F;
        if (gate.op_type == "HardSigmoid" && of_hard_swish) return link;
        return std::nullopt;
    }

    // Add 3, Clip to 0 and 6, Mul with x, Div by 6.
    std::optional<Link> written_out_hard_swish(ValueId value, NodeIndex add_index,
                                               NodeIndex product_index) const {
        const Node& add = graph_.nodes[add_index];
        const std::optional<Activation> shift = linear_of(add, value);
        if (!shift || shift->b != 3 || !used_once(add.outputs[0])) return std::nullopt;
        const NodeIndex clip_index = users_[add.outputs[0]][0];
        const Node& clip = graph_.nodes[clip_index];
        if (clip.op_type != "Clip") return std::nullopt;
        const std::optional<Activation> bounds = clip_of(clip, add.outputs[0]);
        if (!bounds || bounds->a != 0 || bounds->b != 6 || !used_once(clip.outputs[0])) return std::nullopt;
        const Node& product = graph_.nodes[product_index];
        if (!multiplies(product, value, clip.outputs[0]) || !used_once(product.outputs[0]))
            return std::nullopt;
        const NodeIndex division_index = users_[product.outputs[0]][0];
        const Node& division = graph_.nodes[division_index];
        if (division.op_type != "Div" || division.inputs[0] != product.outputs[0] ||
            number(division.inputs[1]) != 6.0F) {
            return std::nullopt;
        }
        return Link{{Activation::Kind::hard_swish, 0, 0},
                    {add_index, clip_index, product_index, division_index},
                    division.outputs[0]};
    }

    bool multiplies(const Node& node, ValueId a, ValueId b) const {
        return node.op_type == "Mul" && node.domain.empty() && node.inputs.size() == 2 &&
               ((node.inputs[0] == a && node.inputs[1] == b) ||
                (node.inputs[0] == b && node.inputs[1] == a)) &&
               is_float(node.outputs[0]);
    }

    bool used_once(ValueId value) const { return hidden(value) && users_[value].size() == 1; }

    std::optional<float> number(ValueId value) const {
        if (value == no_value) return std::nullopt;
        const Tensor* tensor = constant_(value);
        if (tensor == nullptr || tensor->type() != DataType::float32 || tensor->view().elements() != 1) {
            return std::nullopt;
        }
        // A number of a higher rank than the convolution would raise the output's.
        if (tensor->shape().size() > 3) return std::nullopt;
        return static_cast<float>(numbers_of(tensor->view())[0]);
    }

    const Graph& graph_;
    const std::function<const Tensor*(ValueId)>& constant_;
    std::vector<bool> seen_;  // wanted, or used in a way that no chain goes through
    std::vector<std::vector<NodeIndex>> users_;
};

}  // namespace

namespace {

// Adds to a convolution's activations; false where that cannot be. Numbers that follow each other become one
// multiplication and one addition. oneDNN 2.6 takes one kind twice with the numbers of the first, so a kind
// comes once.
bool append(std::vector<Activation>& activations, const Activation& next) {
    constexpr auto linear = Activation::Kind::linear;
    if (!activations.empty() && next.kind == linear && activations.back().kind == linear) {
        Activation& last = activations.back();
        last = {linear, next.a * last.a, next.a * last.b + next.b};
        return true;
    }
    const bool there = std::any_of(activations.begin(), activations.end(), [&](const Activation& activation) {
        return activation.kind == next.kind;
    });
    if (!there) activations.push_back(next);
    return !there;
}

}  // namespace

FusedGraph fuse_convolutions(std::shared_ptr<const Graph> graph, const std::vector<bool>& wanted,
                             const std::function<const Tensor*(ValueId)>& constant) {
    const ChainFinder finder(*graph, wanted, constant);
    FusedGraph fused{graph, std::vector<bool>(graph->nodes.size(), false)};
    std::shared_ptr<Graph> changed;
    for (NodeIndex index = 0; index < graph->nodes.size(); ++index) {
        const Node& node = graph->nodes[index];
        if (node.op_type != "Conv" || !node.domain.empty() || node.owner != no_node ||
            node.outputs.size() != 1 || node.outputs[0] == no_value) {
            continue;
        }
        const std::vector<Link> chain = finder.chain_from(node.outputs[0]);
        if (chain.empty()) continue;
        if (changed == nullptr) changed = std::make_shared<Graph>(*graph);
        std::vector<Activation> activations;
        const Link* last_link = nullptr;
        for (const Link& link : chain) {
            if (!append(activations, link.activation)) break;
            last_link = &link;
            for (const NodeIndex done : link.nodes) fused.absorbed[done] = true;
        }
        Node whole = node;
        whole.domain = fused_domain;
        whole.outputs = {last_link->output};
        whole.attributes["activations"] = to_strings(activations);
        fused.absorbed[index] = true;
        const NodeIndex last = last_link->nodes.back();
        fused.absorbed[last] = false;
        changed->nodes[last] = std::move(whole);
        changed->values[last_link->output].producer = last;
    }
    for (NodeIndex index = 0; index < graph->nodes.size(); ++index) {
        if (!fused.absorbed[index]) continue;
        changed->nodes[index].inputs.clear();
        changed->nodes[index].outputs.clear();
    }
    if (changed != nullptr) fused.graph = std::move(changed);
    return fused;
}

}  // namespace qcalib
