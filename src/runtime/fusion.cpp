#include "runtime/fusion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/activation.h"
#include "runtime/value_uses.h"

namespace qcalib {

namespace {

// Numbers of no higher rank leave the rank of what they are combined with as it is.
constexpr std::size_t scalar = 0;
constexpr std::size_t rank_of_convolutions = 3;  // at least

// One step along a chain: what is done, the nodes that did it, and what comes out.
struct Link {
    Activation activation;
    std::vector<NodeIndex> nodes;
    ValueId output = no_value;
};

// The node's one output, or no_value where it has another number of them or leaves it out.
ValueId only_output(const Node& node) {
    return node.outputs.size() == 1 ? node.outputs[0] : no_value;
}

bool is_product(const Node& node, ValueId a, ValueId b) {
    return node.op_type == "Mul" && node.domain.empty() && node.inputs.size() == 2 &&
           ((node.inputs[0] == a && node.inputs[1] == b) || (node.inputs[0] == b && node.inputs[1] == a));
}

class ChainFinder {
  public:
    ChainFinder(const Graph& graph, const ValueUses& uses) : graph_(graph), uses_(uses) {}

    // What happens to `value` before anybody sees it, link by link.
    std::vector<Link> chain_from(ValueId value) const {
        std::vector<Link> chain;
        while (std::optional<Link> link = link_from(value)) {
            value = link->output;
            chain.push_back(std::move(*link));
        }
        return chain;
    }

  private:
    std::optional<Link> link_from(ValueId value) const {
        if (!uses_.hidden(value)) return std::nullopt;
        const std::vector<NodeIndex>& users = uses_.users(value);
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
        if (!activation || !uses_.is_float(only_output(node))) return std::nullopt;
        return Link{*activation, {index}, only_output(node)};
    }

    std::optional<Activation> activation_of(const Node& node, ValueId value) const {
        using enum Activation::Kind;
        if (!node.domain.empty() || only_output(node) == no_value) return std::nullopt;
        if (node.op_type == "Relu") return Activation{leaky_relu, 0, 0};
        if (node.op_type == "LeakyRelu") return Activation{leaky_relu, node.attribute("alpha", 0.01F), 0};
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

    // x times a gate made of x: HardSwish.
    std::optional<Link> gated_link(ValueId value, NodeIndex gate_index, NodeIndex product_index) const {
        const Node& gate = graph_.nodes[gate_index];
        if (!gate.domain.empty() || only_output(gate) == no_value) return std::nullopt;
        if (gate.op_type == "Add") return written_out_hard_swish(value, gate_index, product_index);
        const Node& product = graph_.nodes[product_index];
        if (!multiplies(product, value, only_output(gate)) || !used_once(only_output(gate)))
            return std::nullopt;
        const Link link{
            {Activation::Kind::hard_swish, 0, 0}, {gate_index, product_index}, only_output(product)};
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
        if (!shift || shift->b != 3 || !used_once(only_output(add))) return std::nullopt;
        const NodeIndex clip_index = uses_.only_user(only_output(add));
        const Node& clip = graph_.nodes[clip_index];
        if (clip.op_type != "Clip") return std::nullopt;
        const std::optional<Activation> bounds = clip_of(clip, only_output(add));
        if (!bounds || bounds->a != 0 || bounds->b != 6 || !used_once(only_output(clip))) return std::nullopt;
        const Node& product = graph_.nodes[product_index];
        if (!multiplies(product, value, only_output(clip)) || !used_once(only_output(product)))
            return std::nullopt;
        const NodeIndex division_index = uses_.only_user(only_output(product));
        const Node& division = graph_.nodes[division_index];
        if (division.op_type != "Div" || division.inputs.size() != 2 ||
            division.inputs[0] != only_output(product) || number(division.inputs[1]) != 6.0F) {
            return std::nullopt;
        }
        return Link{{Activation::Kind::hard_swish, 0, 0},
                    {add_index, clip_index, product_index, division_index},
                    only_output(division)};
    }

    bool multiplies(const Node& node, ValueId a, ValueId b) const {
        return is_product(node, a, b) && uses_.is_float(only_output(node));
    }
    bool used_once(ValueId value) const { return uses_.only_user(value) != no_node; }
    std::optional<float> number(ValueId value) const { return uses_.number(value, rank_of_convolutions); }

    const Graph& graph_;
    const ValueUses& uses_;
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

namespace {

// Makes the changes to a copy of a graph.
class GraphFuser {
  public:
    GraphFuser(std::shared_ptr<const Graph> graph, const ValueUses& uses)
        : original_(std::move(graph)), uses_(uses), absorbed_(original_->nodes.size(), false) {}

    void fuse_convolution(NodeIndex index) {
        const Node& node = original_->nodes[index];
        const std::vector<Link> chain = ChainFinder(*original_, uses_).chain_from(node.outputs[0]);
        std::vector<Activation> activations;
        std::vector<NodeIndex> nodes{index};
        for (const Link& link : chain) {
            if (!append(activations, link.activation)) break;
            nodes.insert(nodes.end(), link.nodes.begin(), link.nodes.end());
        }
        if (activations.empty()) return;
        Node whole = node;
        whole.attributes["activations"] = to_strings(activations);
        replace(nodes, std::move(whole));
    }

    // Sigmoid, Mul with its input.
    void fuse_swish(NodeIndex index) {
        const Node& sigmoid = original_->nodes[index];
        if (sigmoid.inputs.size() != 1) return;
        const NodeIndex product = uses_.only_user(only_output(sigmoid));
        if (product == no_node ||
            !is_product(original_->nodes[product], sigmoid.inputs[0], only_output(sigmoid)))
            return;
        Node whole = sigmoid;
        whole.op_type = "Swish";
        replace({index, product}, std::move(whole));
    }

    // Div by the root of 2, Erf, Add 1, Mul with what was divided, Mul by 1/2.
    void fuse_gelu(NodeIndex index) {
        const Node& division = original_->nodes[index];
        if (division.inputs.size() != 2) return;
        const std::optional<float> root = uses_.number(division.inputs[1], scalar);
        if (!root || std::abs(*root - std::numbers::sqrt2_v<float>) > 1e-6F) return;
        const NodeIndex erf = next(index, "Erf");
        const NodeIndex sum = erf == no_node ? no_node : next(erf, "Add");
        if (sum == no_node || other_number(sum, erf) != 1.0F) return;
        const NodeIndex product = next(sum, "Mul");
        if (product == no_node ||
            !is_product(original_->nodes[product], division.inputs[0], only_output(original_->nodes[sum]))) {
            return;
        }
        const NodeIndex half = next(product, "Mul");
        if (half == no_node || other_number(half, product) != 0.5F) return;
        Node whole = division;
        whole.op_type = "Gelu";
        whole.inputs = {division.inputs[0]};
        replace({index, erf, sum, product, half}, std::move(whole));
    }

    FusedGraph take() {
        for (NodeIndex index = 0; index < absorbed_.size(); ++index) {
            if (!absorbed_[index]) continue;
            changed_->nodes[index].inputs.clear();
            changed_->nodes[index].outputs.clear();
        }
        if (changed_ == nullptr) return {original_, std::move(absorbed_)};
        return {std::move(changed_), std::move(absorbed_)};
    }

  private:
    // The only reader of the node's output, where it is a node of that kind.
    NodeIndex next(NodeIndex index, std::string_view op_type) const {
        const NodeIndex user = uses_.only_user(only_output(original_->nodes[index]));
        if (user == no_node) return no_node;
        const Node& node = original_->nodes[user];
        return node.op_type == op_type && node.domain.empty() && node.outputs.size() == 1 ? user : no_node;
    }

    // The number that the node combines with the output of `from`.
    std::optional<float> other_number(NodeIndex index, NodeIndex from) const {
        const Node& node = original_->nodes[index];
        if (node.inputs.size() != 2) return std::nullopt;
        const std::size_t own = node.inputs[0] == only_output(original_->nodes[from]) ? 0 : 1;
        return uses_.number(node.inputs[1 - own], scalar);
    }

    // Puts `whole` in the place of the last of `nodes`, whose output it makes.
    void replace(std::span<const NodeIndex> nodes, Node whole) {
        if (std::any_of(nodes.begin(), nodes.end(), [&](NodeIndex index) { return absorbed_[index]; }))
            return;
        if (changed_ == nullptr) changed_ = std::make_shared<Graph>(*original_);
        for (const NodeIndex index : nodes) absorbed_[index] = true;
        const NodeIndex last = nodes.back();
        absorbed_[last] = false;
        whole.domain = fused_domain;
        whole.outputs = original_->nodes[last].outputs;
        changed_->nodes[last] = std::move(whole);
    }
    void replace(std::initializer_list<NodeIndex> nodes, Node whole) {
        replace(std::span(nodes.begin(), nodes.size()), std::move(whole));
    }

    std::shared_ptr<const Graph> original_;
    const ValueUses& uses_;
    std::shared_ptr<Graph> changed_;  // a copy, from the first change on
    std::vector<bool> absorbed_;
};

}  // namespace

FusedGraph fuse_nodes(const std::shared_ptr<const Graph>& graph, const std::vector<bool>& wanted,
                      const std::function<const Tensor*(ValueId)>& constant) {
    const ValueUses uses(*graph, wanted, constant);
    GraphFuser fuser(graph, uses);
    for (NodeIndex index = 0; index < graph->nodes.size(); ++index) {
        const Node& node = graph->nodes[index];
        const bool plain = node.domain.empty() && node.owner == no_node && node.outputs.size() == 1 &&
                           node.outputs[0] != no_value && constant(node.outputs[0]) == nullptr;
        if (!plain) continue;
        if (node.op_type == "Conv") fuser.fuse_convolution(index);
        if (node.op_type == "Sigmoid") fuser.fuse_swish(index);
        if (node.op_type == "Div") fuser.fuse_gelu(index);
    }
    return fuser.take();
}

}  // namespace qcalib
