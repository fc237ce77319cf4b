#include "graph/verify.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "base/text.h"

namespace qcalib {

namespace {

constexpr int suggestion_limit = 20;
constexpr std::string_view missing = "missing";

// The node that makes each value first, or no_node; inputs and initializers need none.
std::vector<NodeIndex> producers_of(const Graph& graph) {
    std::vector<NodeIndex> producers(graph.values.size(), no_node);
    std::vector<bool> given(graph.values.size());
    for (const ValueId input : graph.inputs) given[input] = true;
    for (ValueId id = 0; id < graph.values.size(); ++id)
        given[id] = given[id] || graph.values[id].initializer;
    for (const Node& node : graph.nodes) {
        for (const Body& body : node.bodies) {
            for (const ValueId input : body.inputs) given[input] = true;
        }
    }
    for (NodeIndex i = 0; i < graph.nodes.size(); ++i) {
        for (const ValueId output : graph.nodes[i].outputs) {
            if (output == no_value || given[output] || producers[output] != no_node) continue;
            producers[output] = i;
        }
    }
    return producers;
}

template <typename Visit>
void for_each_use(const Node& node, Visit visit) {
    for (const ValueId input : node.inputs) {
        if (input != no_value) visit(input);
    }
    for (const ValueId captured : node.captured) visit(captured);
}

// Orders the nodes of the graph or of one body so that producers come first, the earliest in the file of
// those that are ready each time. Positions are indices into those nodes.
class Sorter {
  public:
    using Position = std::uint32_t;

    Sorter(const Graph& graph, std::span<const NodeIndex> producers, std::span<const NodeIndex> nodes)
        : graph_(graph), producers_(producers), nodes_(nodes), waiting_(nodes.size()), users_(nodes.size()) {
        for (Position i = 0; i < nodes.size(); ++i) positions_.emplace(nodes[i], i);
        for (Position i = 0; i < nodes.size(); ++i) {
            for_each_use(graph.nodes[nodes[i]], [&](ValueId value) {
                const Position producer = producer_of(value);
                if (producer == nowhere) return;
                users_[producer].push_back(i);
                ++waiting_[i];
            });
            if (waiting_[i] == 0) ready_.push(i);
        }
        advance();
    }

    bool complete() const { return order_.size() == nodes_.size(); }
    std::vector<NodeIndex> order() const { return nodes_at(order_); }

    // The nodes of one cycle in the order of their data flow; takes them out, so that the next call answers
    // another. Only where the order is not complete.
    std::vector<NodeIndex> take_cycle() {
        Position node = first_waiting();
        std::vector<Position> path;
        std::vector<bool> seen(nodes_.size());
        while (!seen[node]) {
            seen[node] = true;
            path.push_back(node);
            node = waiting_producer(node);
        }
        path.erase(path.begin(), std::find(path.begin(), path.end(), node));
        for (const Position member : path) waiting_[member] = 0;
        for (const Position member : path) finish(member);
        advance();
        std::reverse(path.begin(), path.end());
        return nodes_at(path);
    }

  private:
    static constexpr Position nowhere = std::numeric_limits<Position>::max();

    Position producer_of(ValueId value) const {
        const auto found = positions_.find(producers_[value]);
        return found == positions_.end() ? nowhere : found->second;
    }

    std::vector<NodeIndex> nodes_at(std::span<const Position> positions) const {
        std::vector<NodeIndex> nodes;
        nodes.reserve(positions.size());
        for (const Position position : positions) nodes.push_back(nodes_[position]);
        return nodes;
    }

    void advance() {
        while (!ready_.empty()) {
            const Position next = ready_.top();
            ready_.pop();
            finish(next);
        }
    }

    void finish(Position node) {
        order_.push_back(node);
        for (const Position user : users_[node]) {
            if (waiting_[user] > 0 && --waiting_[user] == 0) ready_.push(user);
        }
    }

    Position first_waiting() const {
        const auto found =
            std::find_if(waiting_.begin(), waiting_.end(), [](std::size_t count) { return count > 0; });
        return static_cast<Position>(found - waiting_.begin());
    }

    // A node that waits has a producer that waits too.
    Position waiting_producer(Position node) const {
        Position found = nowhere;
        for_each_use(graph_.nodes[nodes_[node]], [&](ValueId value) {
            const Position producer = producer_of(value);
            if (found == nowhere && producer != nowhere && waiting_[producer] > 0) found = producer;
        });
        return found;
    }

    const Graph& graph_;
    std::span<const NodeIndex> producers_;
    std::span<const NodeIndex> nodes_;
    std::unordered_map<NodeIndex, Position> positions_;
    std::vector<std::size_t> waiting_;  // uses whose producer is not in order_ yet
    std::vector<std::vector<Position>> users_;
    std::vector<Position> order_;
    std::priority_queue<Position, std::vector<Position>, std::greater<>> ready_;
};

// What makes values, as far as they can be seen from where the check is.
struct Makers {
    explicit Makers(const Graph& graph) : made(graph.values.size()), producers(producers_of(graph)) {
        for (ValueId id = 0; id < graph.values.size(); ++id) {
            if (graph.values[id].initializer) made[id] = "an initializer";
        }
    }

    std::vector<std::optional<std::string>> made;
    std::vector<NodeIndex> producers;
    int suggestions = 0;
};

// Checks the graph or, with `where` before each finding, one body.
class Verifier {
  public:
    Verifier(const Graph& graph, Makers& makers, std::string where, std::vector<std::string>& findings)
        : graph_(graph), makers_(makers), where_(std::move(where)), findings_(findings) {}

    void run(std::span<const ValueId> inputs, std::span<const ValueId> outputs,
             std::span<const NodeIndex> nodes) {
        check_inputs(inputs);
        for (const NodeIndex node : nodes) check_made_once(graph_.nodes[node]);
        for (const NodeIndex node : nodes) check_uses(graph_.nodes[node]);
        check_outputs(outputs);
        check_cycles(nodes);
        for (const NodeIndex node : nodes) check_bodies(graph_.nodes[node]);
        if (!where_.empty()) {
            for (const ValueId value : own_) makers_.made[value].reset();  // seen in this body only
        }
    }

  private:
    template <typename... Arguments>
    void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        findings_.push_back(where_ + fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    std::string name(ValueId id) const { return printable(graph_.values[id].name); }

    void make(ValueId value, std::string_view maker) {
        makers_.made[value] = std::string(maker);
        own_.push_back(value);
    }

    void check_inputs(std::span<const ValueId> inputs) {
        const bool outermost = where_.empty();
        const std::string kind = outermost ? "graph input" : "input";
        for (const ValueId input : inputs) {
            if (std::find(own_.begin(), own_.end(), input) != own_.end()) {
                add("{} '{}' is listed twice", kind, name(input));
            }
            make(input, outermost ? "a graph input" : "an input");
        }
    }

    void check_made_once(const Node& node) {
        for (const ValueId output : node.outputs) {
            if (output == no_value) continue;
            if (makers_.made[output] && *makers_.made[output] != missing) {
                add("'{}' is made twice: by {} and as {}", name(output), label(graph_, node),
                    *makers_.made[output]);
            } else {
                make(output, "the output of " + label(graph_, node));
            }
        }
    }

    void check_uses(const Node& node) {
        for_each_use(node, [&](ValueId value) {
            if (makers_.made[value]) return;
            add("{} uses '{}', which nothing makes{}", label(graph_, node), name(value), nearest_made(value));
            make(value, missing);  // said once
        });
    }

    void check_outputs(std::span<const ValueId> outputs) {
        for (const ValueId output : outputs) {
            if (makers_.made[output]) continue;
            add("{} '{}' is made by nothing{}", where_.empty() ? "graph output" : "output", name(output),
                nearest_made(output));
            make(output, missing);
        }
    }

    void check_cycles(std::span<const NodeIndex> nodes) {
        Sorter sorter(graph_, makers_.producers, nodes);
        while (!sorter.complete()) {
            std::vector<std::string> labels;
            for (const NodeIndex node : sorter.take_cycle())
                labels.push_back(label(graph_, graph_.nodes[node]));
            if (labels.size() == 1) {
                add("{} uses its own output", labels.front());
            } else {
                add("nodes in a cycle, each using what the one before makes: {}", join(labels, ", "));
            }
        }
    }

    void check_bodies(const Node& node) {
        for (const Body& body : node.bodies) {
            const std::string where =
                fmt::format("{}{}, {}: ", where_, label(graph_, node), printable(body.attribute));
            Verifier(graph_, makers_, where, findings_).run(body.inputs, body.outputs, body.nodes);
        }
    }

    // The search costs time in large graphs: the first findings are enough to see what is wrong with the
    // names.
    std::string nearest_made(ValueId value) {
        if (makers_.suggestions == suggestion_limit) return "";
        ++makers_.suggestions;
        std::vector<std::string> names;
        for (ValueId id = 0; id < graph_.values.size(); ++id) {
            if (id != value && makers_.made[id]) names.push_back(graph_.values[id].name);
        }
        return did_you_mean(graph_.values[value].name, names);
    }

    const Graph& graph_;
    Makers& makers_;
    std::string where_;
    std::vector<std::string>& findings_;
    std::vector<ValueId> own_;
};

// Puts all nodes into one order: those of bodies right before the node they belong to.
class Flattener {
  public:
    explicit Flattener(const Graph& graph) : graph_(graph), producers_(producers_of(graph)) {
        place_.assign(graph.nodes.size(), no_node);
    }

    // False where nodes are in a cycle.
    bool add(std::span<const NodeIndex> nodes) {
        const Sorter sorter(graph_, producers_, nodes);
        if (!sorter.complete()) return false;
        for (const NodeIndex index : sorter.order()) {
            for (const Body& body : graph_.nodes[index].bodies) {
                if (!add(body.nodes)) return false;
            }
            place_[index] = static_cast<NodeIndex>(order_.size());
            order_.push_back(index);
        }
        return true;
    }

    std::vector<Node> take_nodes(std::vector<Node>& nodes) const {
        std::vector<Node> sorted;
        sorted.reserve(nodes.size());
        for (const NodeIndex index : order_) {
            Node& node = sorted.emplace_back(std::move(nodes[index]));
            if (node.owner != no_node) node.owner = place_[node.owner];
            for (Body& body : node.bodies) {
                for (NodeIndex& inner : body.nodes) inner = place_[inner];
                std::sort(body.nodes.begin(), body.nodes.end());
            }
        }
        return sorted;
    }

  private:
    const Graph& graph_;
    std::vector<NodeIndex> producers_;
    std::vector<NodeIndex> order_;
    std::vector<NodeIndex> place_;  // new index by old
};

}  // namespace

std::vector<std::string> verify(const Graph& graph, ModelInputs inputs) {
    std::vector<std::string> findings;
    Makers makers(graph);
    Verifier(graph, makers, "", findings).run(graph.inputs, graph.outputs, graph.outermost_nodes());
    for (const ValueId input : graph.inputs) {
        const Value& value = graph.values[input];
        if (inputs == ModelInputs::any || value.declared_type != DataType::string) continue;
        findings.push_back(fmt::format("graph input '{}': expected a tensor of numbers, found strings",
                                       printable(value.name)));
    }
    return findings;
}

bool sort_nodes(Graph& graph) {
    Flattener flattener(graph);
    if (!flattener.add(graph.outermost_nodes())) return false;
    graph.nodes = flattener.take_nodes(graph.nodes);
    const std::vector<NodeIndex> producers = producers_of(graph);
    for (ValueId id = 0; id < graph.values.size(); ++id) graph.values[id].producer = producers[id];
    return true;
}

}  // namespace qcalib
