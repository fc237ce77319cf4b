#include "target/circle_propagation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

using Way = CircleHandRule::Way;

constexpr double equal_scales = 1e-6;  // luci-interpreter's tolerance
constexpr double far_apart = 16;       // four of eight bits

bool same_grid(const Encoding& a, const Encoding& b) {
    return static_cast<float>(a.scale) == static_cast<float>(b.scale) && a.offset == b.offset;
}

// What luci-interpreter takes for equal.
bool runs_as_one(const Encoding& a, const Encoding& b) {
    return std::abs(a.scale - b.scale) <= equal_scales && a.offset == b.offset;
}

std::string quoted_name(const CircleGraph& graph, ValueId value) {
    return fmt::format("'{}'", printable(graph.name(value)));
}

bool is_lowest(const Tensor& tensor) {
    return numbers_of(tensor.view()) ==
           std::vector<double>(tensor.view().elements(), std::numeric_limits<float>::lowest());
}

}  // namespace

const Encoding* CircleEncodings::first(ValueId value) const {
    if (value == no_value || !of[value].entry || of[value].entry->encodings.empty()) return nullptr;
    return &of[value].entry->encodings.front();
}

std::vector<ValueId> CirclePropagation::inputs_of(const Node& node, const CircleHandRule& rule) const {
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (rule.inputs.empty() || std::ranges::count(rule.inputs, i) > 0) inputs.push_back(node.inputs[i]);
    }
    return inputs;
}

bool CirclePropagation::hand(ValueId from, ValueId to, const Node& node, const Evidence& evidence) {
    const Encoding& given = *encodings_.first(from);
    const Encoding* present = encodings_.first(to);
    if (present != nullptr && same_grid(*present, given) && encodings_.of[to].entry->encodings.size() == 1)
        return false;
    if (encodings_.kept[to]) {
        remarks_.add(fmt::format("{}: keeps its own encoding, though {} would give it that of {}",
                                 quoted_name(graph_, to), label(graph_.graph(), node),
                                 quoted_name(graph_, from)));
        return false;
    }
    if (graph_.is_constant(to) && encodings_.coding[to] == CircleCoding::given) {
        remarks_.add(fmt::format(
            "{}: several operators read this constant, which has one entry: it keeps the encoding of the "
            "first, though {} would give it that of {}",
            quoted_name(graph_, to), label(graph_.graph(), node), quoted_name(graph_, from)));
        return false;
    }
    Encoded& handed = encodings_.of[to];
    handed.entry = TensorEncoding{graph_.name(to), {given}, {}, "shared"};
    Decision& decision = handed.decision;
    decision.tensor = graph_.name(to);
    decision.kind = graph_.is_constant(to) ? Decision::Kind::constant : Decision::Kind::activation;
    decision.method = fmt::format("shared with {}", quoted_name(graph_, from));
    decision.origin = "shared";
    decision.no_encoding.clear();
    decision.ranges = encodings_.of[from].decision.ranges;
    decision.rules = encodings_.of[from].decision.rules;
    decision.notes.push_back(fmt::format("target '{}', {}: {}", target_.name, node.op_type, evidence.source));
    decision.by_rules = false;
    if (graph_.is_constant(to)) encodings_.coding[to] = CircleCoding::given;
    return true;
}

void CirclePropagation::to_padding_of(const Node& node, const CircleHandRule& rule) {
    const std::vector<ValueId> inputs = inputs_of(node, rule);
    const ValueId output = node.outputs.front();
    const ValueId data = inputs.front();
    const ValueId padding = inputs.back();
    if (graph_.is_constant(padding) && is_lowest(graph_.constant(padding))) {
        if (lacks(data)) return;
        hand(data, output, node, rule.evidence);
        hand(data, padding, node, rule.evidence);
        return;
    }
    for (const ValueId input : inputs) {
        if (graph_.is_constant(input) || (graph_.is_activation(input) && graph_.users(input) == 1))
            hand(output, input, node, rule.evidence);
    }
}

void CirclePropagation::to_inputs_of(const Node& node) {
    if (node.outputs.empty() || lacks(node.outputs.front())) return;
    if (const CircleHandRule* rule = target_.circle->hand_rule(node.op_type, Way::to_padding))
        to_padding_of(node, *rule);
    const CircleHandRule* rule = target_.circle->hand_rule(node.op_type, Way::to_inputs);
    if (rule == nullptr || (rule->unless_fused && fused_activation(node) != "NONE")) return;
    if (node.op_type == "CONCATENATION") remark_far_apart(node);
    for (const ValueId input : inputs_of(node, *rule)) {
        const bool alone = graph_.is_activation(input) && graph_.users(input) == 1 &&
                           !(rule->not_from_parts && graph_.is_part(input));
        if (alone || graph_.is_constant(input)) hand(node.outputs.front(), input, node, rule->evidence);
    }
}

// A detector's scores beside its boxes: what is small is left with few codes.
void CirclePropagation::remark_far_apart(const Node& node) {
    ValueId finest = no_value;
    const Encoding& output = *encodings_.first(node.outputs.front());
    for (const ValueId input : node.inputs) {
        if (!graph_.is_activation(input) || lacks(input)) continue;
        if (finest == no_value || encodings_.first(input)->scale < encodings_.first(finest)->scale)
            finest = input;
    }
    if (finest == no_value || encodings_.first(finest)->scale * far_apart > output.scale) return;
    remarks_.add(
        fmt::format("{}: its output's scale {:.4g} leaves {} about {:.3g} of its {} codes (its own scale is "
                    "{:.4g}): give such "
                    "tensors outputs of their own, or use --act-bits 16",
                    label(graph_.graph(), node), output.scale, quoted_name(graph_, finest),
                    std::exp2(bits_) * encodings_.first(finest)->scale / output.scale, std::exp2(bits_),
                    encodings_.first(finest)->scale));
}

void CirclePropagation::to_inputs() {
    for (const Node& node : std::views::reverse(graph_.graph().nodes)) to_inputs_of(node);
}

void CirclePropagation::fix(const Node& node, ValueId output) {
    const std::string op_type = fused_activation(node) == "TANH" ? "TANH" : node.op_type;
    const FixedRule* rule = target_.fixed_rule(op_type);
    const FixedRule::Grid* grid = rule == nullptr ? nullptr : rule->grid(bits_, bits_ != 8);
    if (grid == nullptr) return;
    const Encoding fixed = circle_encoding_of(grid->step, bits_ == 8 ? -grid->offset : 0, bits_);
    if (encodings_.kept[output]) {
        if (same_grid(*encodings_.first(output), fixed)) return;
        remarks_.add(
            fmt::format("{}: has another encoding than target '{}' fixes for {}, which may not heed it",
                        quoted_name(graph_, output), target_.name, op_type));
        return;
    }
    Encoded& encoded = encodings_.of[output];
    encoded.entry = TensorEncoding{graph_.name(output), {fixed}, {}, "fixed"};
    encoded.decision.method = encoded.decision.origin = "fixed";
    encoded.decision.ranges = {{fixed.min, fixed.max}};
    encoded.decision.by_rules = false;
    encoded.decision.notes.push_back(
        fmt::format("target '{}' fixes {}: {}", target_.name, op_type, rule->evidence.source));
}

void CirclePropagation::make_whole(const Node& node, ValueId output) {
    if (std::ranges::count(target_.circle->whole_steps, node.op_type) == 0 || encodings_.kept[output]) return;
    Encoded& encoded = encodings_.of[output];
    Encoding& encoding = encoded.entry->encodings.front();
    const auto step = static_cast<float>(encoding.scale);
    const float whole = step < 1 ? 1.0F : std::round(step);
    encoding = circle_encoding_of(whole, circle_zero_point(encoding), bits_);
    encoded.decision.by_rules = false;
    encoded.decision.notes.push_back(
        fmt::format("target '{}', {}: steps of whole numbers, zero point kept", target_.name, node.op_type));
}

void CirclePropagation::fix_outputs() {
    for (const Node& node : graph_.graph().nodes) {
        if (node.outputs.empty() || lacks(node.outputs.front())) continue;
        fix(node, node.outputs.front());
        make_whole(node, node.outputs.front());
    }
}

bool CirclePropagation::to_outputs_of(const Node& node) {
    const CircleHandRule* rule = target_.circle->hand_rule(node.op_type, Way::to_outputs);
    if (rule == nullptr) return false;
    const std::vector<ValueId> inputs = inputs_of(node, *rule);
    if (inputs.empty() || lacks(inputs.front())) return false;
    bool changed = false;
    for (const ValueId output : node.outputs) {
        if (!lacks(output)) changed |= hand(inputs.front(), output, node, rule->evidence);
    }
    return changed;
}

bool CirclePropagation::equalize_all(const Node& node, const CircleHandRule& rule) {
    const ValueId output = node.outputs.front();
    std::vector<ValueId> inputs = inputs_of(node, rule);
    std::erase_if(inputs, [&](ValueId input) { return lacks(input); });
    if (inputs.empty() || lacks(output)) return false;
    const Encoding& first = *encodings_.first(inputs.front());
    const bool one = std::ranges::all_of(
        inputs, [&](ValueId input) { return runs_as_one(*encodings_.first(input), first); });
    if (one && runs_as_one(first, *encodings_.first(output))) return false;
    if (one) return hand(inputs.front(), output, node, rule.evidence);
    remarks_.add(fmt::format(
        "{}: its inputs have different encodings, which luci-interpreter does not run ({}): give them one by "
        "overrides, or put QUANTIZE before them in the model",
        label(graph_.graph(), node), rule.evidence.source));
    return false;
}

bool CirclePropagation::equalize(const Node& node) {
    if (!target_.circle->executable || node.outputs.empty()) return false;
    if (const CircleHandRule* rule = target_.circle->hand_rule(node.op_type, Way::all_equal))
        return equalize_all(node, *rule);
    const CircleHandRule* rule = target_.circle->hand_rule(node.op_type, Way::equal);
    if (rule == nullptr) return false;
    const ValueId input = inputs_of(node, *rule).front();
    const ValueId output = node.outputs.front();
    if (lacks(input) || lacks(output) || runs_as_one(*encodings_.first(input), *encodings_.first(output)))
        return false;
    const Encoding before = *encodings_.first(output);
    if (!hand(input, output, node, rule->evidence)) return false;
    const Encoding& after = *encodings_.first(output);
    remarks_.add(fmt::format(
        "{}: takes the encoding of {} (scale {:.6g}, zero point {}) in place of its own (scale {:.6g}, zero "
        "point {}): luci-interpreter runs {} only so",
        quoted_name(graph_, output), quoted_name(graph_, input), after.scale, circle_zero_point(after),
        before.scale, circle_zero_point(before), node.op_type));
    return true;
}

void CirclePropagation::to_outputs() {
    bool changed = true;
    for (std::size_t round = 0; changed && round <= graph_.graph().nodes.size(); ++round) {
        changed = false;
        for (const Node& node : graph_.graph().nodes) {
            changed |= to_outputs_of(node);
            changed |= equalize(node);
        }
    }
}

}  // namespace qcalib
