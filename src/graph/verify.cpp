#include "graph/verify.h"

#include <algorithm>
#include <functional>
#include <queue>

#include <fmt/format.h>

#include "base/text.h"

namespace qcalib {

namespace {

using NodeIndex = std::uint32_t;
constexpr int suggestion_limit = 20;
constexpr NodeIndex no_node = std::numeric_limits<NodeIndex>::max();

// The node that makes each value first, or no_node; inputs and initializers need none.
std::vector<NodeIndex> producers_of(const Graph& graph) {
    std::vector<NodeIndex> producers(graph.values.size(), no_node);
    std::vector<bool> given(graph.values.size());
    for (const ValueId input : graph.inputs) given[input] = true;
    for (ValueId id = 0; id < graph.values.size(); ++id)
        given[id] = given[id] || graph.values[id].initializer;
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

// Orders nodes so that producers come first, the earliest in the file of those that are ready each time.
class Sorter {
  public:
    explicit Sorter(const Graph& graph)
        : graph_(graph),
          producers_(producers_of(graph)),
          waiting_(graph.nodes.size()),
          users_(graph.nodes.size()) {
        for (NodeIndex i = 0; i < graph.nodes.size(); ++i) {
            for_each_use(graph.nodes[i], [&](ValueId value) {
                if (producers_[value] == no_node) return;
                users_[producers_[value]].push_back(i);
                ++waiting_[i];
            });
            if (waiting_[i] == 0) ready_.push(i);
        }
        advance();
    }

    const std::vector<NodeIndex>& order() const { return order_; }
    bool complete() const { return order_.size() == graph_.nodes.size(); }

    // The nodes of one cycle in the order of their data flow; takes them out, so that the next call answers
    // another. Only where the order is not complete.
    std::vector<NodeIndex> take_cycle() {
        NodeIndex node = first_waiting();
        std::vector<NodeIndex> path;
        std::vector<bool> seen(graph_.nodes.size());
        while (!seen[node]) {
            seen[node] = true;
            path.push_back(node);
            node = waiting_producer(node);
        }
        path.erase(path.begin(), std::find(path.begin(), path.end(), node));
        for (const NodeIndex member : path) waiting_[member] = 0;
        for (const NodeIndex member : path) finish(member);
        advance();
        std::reverse(path.begin(), path.end());
        return path;
    }

  private:
    void advance() {
        while (!ready_.empty()) {
            const NodeIndex next = ready_.top();
            ready_.pop();
            finish(next);
        }
    }

    void finish(NodeIndex node) {
        order_.push_back(node);
        for (const NodeIndex user : users_[node]) {
            if (waiting_[user] > 0 && --waiting_[user] == 0) ready_.push(user);
        }
    }

    NodeIndex first_waiting() const {
        const auto found =
            std::find_if(waiting_.begin(), waiting_.end(), [](std::size_t count) { return count > 0; });
        return static_cast<NodeIndex>(found - waiting_.begin());
    }

    // A node that waits has a producer that waits too.
    NodeIndex waiting_producer(NodeIndex node) const {
        NodeIndex found = no_node;
        for_each_use(graph_.nodes[node], [&](ValueId value) {
            const NodeIndex producer = producers_[value];
            if (found == no_node && producer != no_node && waiting_[producer] > 0) found = producer;
        });
        return found;
    }

    const Graph& graph_;
    std::vector<NodeIndex> producers_;
    std::vector<std::size_t> waiting_;  // uses whose producer is not in order_ yet
    std::vector<std::vector<NodeIndex>> users_;
    std::vector<NodeIndex> order_;
    std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<>> ready_;
};

class Verifier {
  public:
    Verifier(const Graph& graph, const Graph* outer, std::string where, std::vector<std::string>& findings)
        : graph_(graph),
          outer_(outer),
          where_(std::move(where)),
          findings_(findings),
          made_(graph.values.size()) {}

    void run() {
        check_inputs();
        check_captures();
        for (ValueId id = 0; id < graph_.values.size(); ++id) {
            if (graph_.values[id].initializer && !made_[id]) made_[id] = "an initializer";
        }
        for (const Node& node : graph_.nodes) check_made_once(node);
        for (const Node& node : graph_.nodes) check_uses(node);
        check_outputs();
        check_cycles();
        for (const Node& node : graph_.nodes) check_subgraphs(node);
    }

  private:
    template <typename... Arguments>
    void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        findings_.push_back(where_ + fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    std::string name(ValueId id) const { return printable(graph_.values[id].name); }

    void check_inputs() {
        for (const ValueId input : graph_.inputs) {
            if (made_[input]) add("graph input '{}' is listed twice", name(input));
            made_[input] = "a graph input";
            if (outer_ == nullptr && graph_.values[input].declared_type == DataType::string) {
                add("graph input '{}': expected a tensor of numbers, found strings", name(input));
            }
        }
    }

    void check_captures() {
        for (const auto& [id, outer_name] : graph_.captures) {
            made_[id] = "a value of the outer graph";
            if (outer_ == nullptr || outer_->find(outer_name) == no_value) {
                add("'{}' is taken from an outer graph that has no such value", printable(outer_name));
            }
        }
    }

    void check_made_once(const Node& node) {
        for (const ValueId output : node.outputs) {
            if (output == no_value) continue;
            if (made_[output]) {
                add("'{}' is made twice: by {} and as {}", name(output), label(graph_, node), *made_[output]);
            } else {
                made_[output] = "the output of " + label(graph_, node);
            }
        }
    }

    void check_uses(const Node& node) {
        for_each_use(node, [&](ValueId value) {
            if (made_[value]) return;
            add("{} uses '{}', which nothing makes{}", label(graph_, node), name(value), nearest_made(value));
            made_[value] = "missing";  // said once
        });
    }

    void check_outputs() {
        for (const ValueId output : graph_.outputs) {
            if (made_[output]) continue;
            add("graph output '{}' is made by nothing{}", name(output), nearest_made(output));
            made_[output] = "missing";
        }
    }

    void check_cycles() {
        Sorter sorter(graph_);
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

    void check_subgraphs(const Node& node) {
        for (const auto& [attribute, value] : node.attributes) {
            const auto* body = std::get_if<std::shared_ptr<const Graph>>(&value);
            if (body == nullptr) continue;
            Verifier(**body, &graph_,
                     fmt::format("{}{}, {}: ", where_, label(graph_, node), printable(attribute)), findings_)
                .run();
        }
    }

    // The search costs time in large graphs: the first findings are enough to see what is wrong with the
    // names.
    std::string nearest_made(ValueId value) {
        if (suggestions_ == suggestion_limit) return "";
        ++suggestions_;
        std::vector<std::string> names;
        for (ValueId id = 0; id < graph_.values.size(); ++id) {
            if (id != value && made_[id]) names.push_back(graph_.values[id].name);
        }
        return did_you_mean(graph_.values[value].name, names);
    }

    const Graph& graph_;
    const Graph* outer_;
    std::string where_;
    std::vector<std::string>& findings_;
    std::vector<std::optional<std::string>> made_;  // what makes each value
    int suggestions_ = 0;
};

}  // namespace

std::vector<std::string> verify(const Graph& graph) {
    std::vector<std::string> findings;
    Verifier(graph, nullptr, "", findings).run();
    return findings;
}

bool sort_nodes(Graph& graph) {
    const Sorter sorter(graph);
    if (!sorter.complete()) return false;
    std::vector<Node> sorted;
    sorted.reserve(graph.nodes.size());
    for (const NodeIndex index : sorter.order()) sorted.push_back(std::move(graph.nodes[index]));
    graph.nodes = std::move(sorted);
    const std::vector<NodeIndex> producers = producers_of(graph);
    for (ValueId id = 0; id < graph.values.size(); ++id) graph.values[id].producer = producers[id];
    return true;
}

}  // namespace qcalib
