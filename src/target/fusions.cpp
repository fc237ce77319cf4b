#include "target/fusions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

using Operand = PatternForm::Operand;

constexpr double number_tolerance = 1e-4;     // relative
constexpr std::size_t most_elements = 65536;  // of a constant that is compared with a number

bool nearly(double a, double b) {
    return std::abs(a - b) <= number_tolerance * std::max(std::abs(a), std::abs(b));
}

bool is_uniform(const Tensor& tensor, double number) {
    if (tensor.descriptor().elements() == 0 || tensor.descriptor().elements() > most_elements) return false;
    const auto equal = [&](auto value) { return nearly(static_cast<double>(value), number); };
    if (tensor.type() == DataType::int32 || tensor.type() == DataType::int64) {
        const std::vector<std::int64_t> values = integers_of(tensor.view());
        return std::all_of(values.begin(), values.end(), equal);
    }
    if (!is_floating(tensor.type())) return false;
    const std::vector<double> values = numbers_of(tensor.view());
    return std::all_of(values.begin(), values.end(), equal);
}

bool is_vector(const Tensor& tensor) {
    const Shape& shape = tensor.shape();
    return shape.empty() || std::all_of(shape.begin(), shape.end() - 1, [](auto size) { return size == 1; });
}

bool is_commutative(const Node& node) {
    return node.op_type == "Add" || node.op_type == "Mul";
}

std::optional<double> number_attribute(const Node& node, const std::string& name) {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) return std::nullopt;
    if (const auto* real = std::get_if<float>(&found->second)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*whole);
    return std::nullopt;
}

// An input of a node, or an attribute in the place of one.
struct Input {
    ValueId value = no_value;
    std::optional<double> number;
};

std::vector<Input> inputs_of(const Node& node) {
    std::vector<Input> inputs;
    for (const ValueId value : node.inputs) inputs.push_back({value, std::nullopt});
    if (node.op_type != "Clip" || inputs.size() != 1) return inputs;
    for (const char* bound : {"min", "max"}) inputs.push_back({no_value, number_attribute(node, bound)});
    return inputs;
}

// Who reads each value: nodes, and whether anybody else does (outputs, bodies).
struct Readers {
    explicit Readers(const Graph& graph) : nodes(graph.values.size()), others(graph.values.size(), false) {
        for (NodeIndex i = 0; i < graph.nodes.size(); ++i) {
            const Node& node = graph.nodes[i];
            for (const ValueId input : node.inputs) {
                if (input != no_value) nodes[input].push_back(i);
            }
            for (const ValueId captured : node.captured) others[captured] = true;
            for (const Body& body : node.bodies) {
                for (const ValueId output : body.outputs) others[output] = true;
            }
        }
        for (const ValueId output : graph.outputs) others[output] = true;
    }
    std::vector<std::vector<NodeIndex>> nodes;
    std::vector<bool> others;
};

// Matches one form with the nodes that end in one node.
class Matcher {
  public:
    Matcher(const Graph& graph, const ConstantLookup& constant, const PatternForm& form,
            const std::vector<bool>& taken)
        : graph_(graph),
          constant_(constant),
          form_(form),
          taken_(taken),
          bound_{std::vector<NodeIndex>(form.statements.size(), no_node),
                 std::vector<ValueId>(form.activations, no_value),
                 {}} {}

    bool match(NodeIndex last) {
        owner_ = graph_.nodes[last].owner;
        return match(form_.statements.size() - 1, last);
    }

    const std::vector<NodeIndex>& nodes() const { return bound_.nodes; }
    const std::vector<ValueId>& activations() const { return bound_.activations; }
    const std::vector<Fusion::LostOperand>& lost() const { return bound_.lost; }

  private:
    // What the parts of the form stand for so far.
    struct Bound {
        std::vector<NodeIndex> nodes;
        std::vector<ValueId> activations;
        std::vector<Fusion::LostOperand> lost;
    };

    bool match(std::size_t statement, NodeIndex index) {
        if (bound_.nodes[statement] != no_node) return bound_.nodes[statement] == index;
        const bool used = std::find(bound_.nodes.begin(), bound_.nodes.end(), index) != bound_.nodes.end();
        if (used || taken_[index]) return false;
        const Node& node = graph_.nodes[index];
        const PatternForm::Statement& asked = form_.statements[statement];
        if (!fits(node, asked)) return false;
        const std::vector<Input> inputs = inputs_of(node);
        if (inputs.size() < asked.operands.size()) return false;
        const Bound before = bound_;
        bound_.nodes[statement] = index;
        if (operands_match(asked.operands, inputs, index, false)) return true;
        if (is_commutative(node) && inputs.size() == 2 && asked.operands.size() == 2) {
            bound_ = before;
            bound_.nodes[statement] = index;
            if (operands_match(asked.operands, inputs, index, true)) return true;
        }
        bound_ = before;
        return false;
    }

    bool fits(const Node& node, const PatternForm::Statement& asked) const {
        const auto& types = asked.op_types;
        if (std::find(types.begin(), types.end(), node.op_type) == types.end()) return false;
        if (!node.domain.empty() || node.owner != owner_ || node.outputs.empty()) return false;
        return std::all_of(asked.attributes.begin(), asked.attributes.end(), [&](const auto& attribute) {
            const std::optional<double> found = number_attribute(node, attribute.name);
            return found && nearly(*found, attribute.value);
        });
    }

    bool operands_match(const std::vector<Operand>& operands, const std::vector<Input>& inputs,
                        NodeIndex node, bool swapped) {
        for (std::size_t i = 0; i < operands.size(); ++i) {
            const std::size_t place = swapped ? 1 - i : i;
            if (!operand_matches(operands[i], inputs[place], node, place)) return false;
        }
        for (std::size_t i = operands.size(); i < inputs.size(); ++i) {
            if (inputs[i].value != no_value && !is_setting(inputs[i].value)) return false;
        }
        return true;
    }

    // A constant, or whole numbers such as a shape.
    bool is_setting(ValueId value) const {
        const DataType type = graph_.values[value].declared_type;
        return constant_(value) != nullptr || type == DataType::int64 || type == DataType::int32;
    }

    bool operand_matches(const Operand& operand, const Input& input, NodeIndex node, std::size_t place) {
        if (input.value == no_value) {
            return input.number && operand.kind == Operand::Kind::number &&
                   nearly(*input.number, operand.number);
        }
        const Tensor* constant = constant_(input.value);
        switch (operand.kind) {
            case Operand::Kind::statement: {
                const NodeIndex producer = graph_.values[input.value].producer;
                return constant == nullptr && producer != no_node &&
                       graph_.nodes[producer].outputs.front() == input.value &&
                       match(operand.index, producer);
            }
            case Operand::Kind::activation: {
                ValueId& bound = bound_.activations[operand.index];
                if (constant != nullptr || (bound != no_value && bound != input.value)) return false;
                bound = input.value;
                return true;
            }
            case Operand::Kind::number:
                if (constant == nullptr || !is_uniform(*constant, operand.number)) return false;
                bound_.lost.push_back({node, place});
                return true;
            case Operand::Kind::lost_constant:
            case Operand::Kind::kept_constant:
                if (constant == nullptr || (operand.vector && !is_vector(*constant))) return false;
                if (operand.kind == Operand::Kind::lost_constant) bound_.lost.push_back({node, place});
                return true;
        }
        return false;
    }

    const Graph& graph_;
    const ConstantLookup& constant_;
    const PatternForm& form_;
    const std::vector<bool>& taken_;
    NodeIndex owner_ = no_node;
    Bound bound_;
};

Fusion fusion_of(const Graph& graph, const FusionPattern& pattern, const Matcher& matcher) {
    Fusion fusion;
    fusion.pattern = &pattern;
    fusion.nodes = matcher.nodes();
    fusion.inputs = matcher.activations();
    fusion.lost = matcher.lost();
    fusion.output = graph.nodes[fusion.nodes.back()].outputs.front();
    for (std::size_t i = 0; i + 1 < fusion.nodes.size(); ++i) {
        for (const ValueId output : graph.nodes[fusion.nodes[i]].outputs) {
            if (output != no_value) fusion.inside.push_back(output);
        }
    }
    return fusion;
}

bool read_inside_alone(const Fusion& fusion, const Readers& readers) {
    return std::all_of(fusion.inside.begin(), fusion.inside.end(), [&](ValueId value) {
        const std::vector<NodeIndex>& nodes = readers.nodes[value];
        return !readers.others[value] && std::all_of(nodes.begin(), nodes.end(), [&](NodeIndex reader) {
            return std::find(fusion.nodes.begin(), fusion.nodes.end(), reader) != fusion.nodes.end();
        });
    });
}

}  // namespace

Fusions::Fusions(const Graph& graph, const ConstantLookup& constant, const Target& target) : graph_(graph) {
    if (target.fusion_patterns.empty()) return;
    const Readers readers(graph);
    std::vector<bool> taken(graph.nodes.size(), false);
    for (const FusionPattern& pattern : target.fusion_patterns) {
        for (const PatternForm& form : pattern.forms) {
            for (NodeIndex last = 0; last < graph.nodes.size(); ++last) {
                Matcher matcher(graph, constant, form, taken);
                if (!matcher.match(last)) continue;
                Fusion fusion = fusion_of(graph, pattern, matcher);
                if (!read_inside_alone(fusion, readers)) continue;
                for (const NodeIndex node : fusion.nodes) taken[node] = true;
                add(std::move(fusion));
            }
        }
    }
}

void Fusions::add(Fusion fusion) {
    for (const ValueId value : fusion.inside) inside_.emplace(value, all_.size());
    outputs_.emplace(fusion.output, all_.size());
    all_.push_back(std::move(fusion));
}

const Fusion* Fusions::find(const std::unordered_map<ValueId, std::size_t>& map, ValueId value) const {
    const auto found = map.find(value);
    return found == map.end() ? nullptr : &all_[found->second];
}

bool Fusions::vanishes(ValueId value) const {
    const Fusion* fusion = around(value);
    return fusion != nullptr && !fusion->pattern->keeps_entries;
}

const Fusion* Fusions::losing(const Node& node, std::size_t input) const {
    const auto index = static_cast<NodeIndex>(&node - graph_.nodes.data());
    for (const Fusion& fusion : all_) {
        if (fusion.pattern->keeps_entries) continue;
        const bool loses = std::any_of(
            fusion.lost.begin(), fusion.lost.end(),
            [&](const Fusion::LostOperand& lost) { return lost.node == index && lost.input == input; });
        if (loses) return &fusion;
    }
    return nullptr;
}

std::string Fusions::label(const Fusion& fusion) const {
    return fmt::format("{} making '{}'", fusion.pattern->name, printable(graph_.values[fusion.output].name));
}

}  // namespace qcalib
