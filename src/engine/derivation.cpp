#include "engine/derivation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "statistics/derived_statistics.h"

namespace qcalib {

namespace {

// What a rule sees of a node.
struct NodeView {
    const Program& program;
    const Plan& plan;
    const Node& node;

    // The one number that an input is, where it hangs on initializers alone.
    std::optional<float> scalar(std::size_t input) const {
        if (input >= node.inputs.size() || node.inputs[input] == no_value) return std::nullopt;
        const Tensor* constant = program.constant(node.inputs[input]);
        if (constant == nullptr || constant->type() != DataType::float32) return std::nullopt;
        if (constant->view().elements() != 1) return std::nullopt;
        float value = 0;
        std::copy_n(constant->data(), sizeof value, reinterpret_cast<std::byte*>(&value));
        return value;
    }
    bool given(std::size_t input) const {
        return input < node.inputs.size() && node.inputs[input] != no_value;
    }
};

using Rule = std::optional<Derivation> (*)(const NodeView&);

Derivation of_first_input(const NodeView& view, Derivation::Rule rule) {
    Derivation derivation;
    derivation.rule = rule;
    derivation.sources = {view.node.inputs[0]};
    return derivation;
}

// Views and permutations.
std::optional<Derivation> same_elements(const NodeView& view) {
    return of_first_input(view, Derivation::Rule::same);
}

// Dropout hands its input on, except in training.
std::optional<Derivation> dropout(const NodeView& view) {
    if (view.given(2)) return std::nullopt;
    return same_elements(view);
}

std::optional<Derivation> relu(const NodeView& view) {
    Derivation derivation = of_first_input(view, Derivation::Rule::clip);
    derivation.bounds = {0, std::numeric_limits<double>::infinity()};
    return derivation;
}

// The bounds are attributes before opset 11, else inputs; one left out is the greatest finite float32.
std::optional<Derivation> clip(const NodeView& view) {
    float low = std::numeric_limits<float>::lowest();
    float high = std::numeric_limits<float>::max();
    if (view.node.opset < 11) {
        low = view.node.attribute<float>("min", low);
        high = view.node.attribute<float>("max", high);
    }
    const auto read = [&](std::size_t input, float& bound) {
        if (!view.given(input)) return true;
        const std::optional<float> value = view.scalar(input);
        bound = value.value_or(bound);
        return value.has_value();
    };
    if (!read(1, low) || !read(2, high)) return std::nullopt;
    Derivation derivation = of_first_input(view, Derivation::Rule::clip);
    derivation.bounds = {low, high};
    return derivation;
}

// The k for which `factor` is 2^k, or nothing.
std::optional<int> power_of_two(float factor) {
    int exponent = 0;
    if (!(factor >= std::numeric_limits<float>::min()) || std::isinf(factor)) return std::nullopt;
    if (std::frexp(factor, &exponent) != 0.5F) return std::nullopt;
    return exponent - 1;
}

std::optional<Derivation> multiply(const NodeView& view) {
    for (const std::size_t input : {0, 1}) {
        const std::optional<float> factor = view.scalar(1 - input);
        const std::optional<int> power = factor ? power_of_two(*factor) : std::nullopt;
        if (!power) continue;
        Derivation derivation;
        derivation.rule = Derivation::Rule::scale;
        derivation.sources = {view.node.inputs[input]};
        derivation.power = *power;
        return derivation;
    }
    return std::nullopt;
}

std::optional<Derivation> divide(const NodeView& view) {
    const std::optional<float> divisor = view.scalar(1);
    const std::optional<int> power = divisor ? power_of_two(*divisor) : std::nullopt;
    if (!power) return std::nullopt;
    Derivation derivation = of_first_input(view, Derivation::Rule::scale);
    derivation.power = -*power;
    return derivation;
}

std::optional<Derivation> concat(const NodeView& view) {
    Derivation derivation;
    derivation.rule = Derivation::Rule::join;
    derivation.sources = view.node.inputs;
    return derivation;
}

std::optional<Derivation> repeat(const NodeView& view) {
    return of_first_input(view, Derivation::Rule::repeat);
}

// The table of rules: operators of ONNX's own domain, first output.
struct Operator {
    std::string_view op_type;
    Rule rule;
};
constexpr std::array operators{
    Operator{"Reshape", same_elements},
    Operator{"Flatten", same_elements},
    Operator{"Squeeze", same_elements},
    Operator{"Unsqueeze", same_elements},
    Operator{"Identity", same_elements},
    Operator{"Dropout", dropout},
    Operator{"Transpose", same_elements},
    Operator{"DepthToSpace", same_elements},
    Operator{"SpaceToDepth", same_elements},
    Operator{"Relu", relu},
    Operator{"Clip", clip},
    Operator{"Mul", multiply},
    Operator{"Div", divide},
    Operator{"Concat", concat},
    Operator{"Tile", repeat},
    Operator{"Expand", repeat},
};

bool made_in_body(const Graph& graph, ValueId value) {
    const NodeIndex producer = graph.values[value].producer;
    return producer != no_node && graph.nodes[producer].owner != no_node;
}

bool needs_histograms(Derivation::Rule rule) {
    return rule != Derivation::Rule::same && rule != Derivation::Rule::join;
}

// True where every source is counted and of the output's type. What a node makes as float16 or bfloat16 it
// rounds to that type: then bounds and products would not be what was computed here.
bool sources_serve(const NodeView& view, const Derivation& derivation, ValueId output,
                   const std::vector<bool>& known) {
    const auto type_of = [&](ValueId value) {
        const DataType declared = view.program.graph().values[value].declared_type;
        return declared == DataType::undefined ? view.plan.declared_type(value) : declared;
    };
    const DataType type = type_of(output);
    if (type == DataType::undefined) return false;
    const bool rounds =
        derivation.rule == Derivation::Rule::clip || derivation.rule == Derivation::Rule::scale;
    const bool relu = derivation.rule == Derivation::Rule::clip && std::isinf(derivation.bounds.max);
    if (rounds && !relu && type != DataType::float32) return false;
    return std::all_of(derivation.sources.begin(), derivation.sources.end(), [&](ValueId source) {
        return source != no_value && known[source] && type_of(source) == type;
    });
}

}  // namespace

DerivationTable::DerivationTable(const Program& program, const Plan& plan, std::span<const ValueId> counted,
                                 const CounterSettings& settings)
    : derivations_(program.graph().values.size()), uses_(program.graph().values.size(), 0) {
    std::vector<bool> known(program.graph().values.size(), false);
    for (const ValueId value : counted) known[value] = !made_in_body(program.graph(), value);
    for (const Node& node : program.graph().nodes) {
        if (node.owner != no_node || !node.domain.empty()) continue;
        if (node.inputs.empty() || node.outputs.empty()) continue;
        const ValueId output = node.outputs[0];
        if (output == no_value || !known[output] || program.constant(output) != nullptr) continue;
        const auto* found = std::find_if(operators.begin(), operators.end(),
                                         [&](const Operator& one) { return one.op_type == node.op_type; });
        if (found == operators.end()) continue;
        const NodeView view{program, plan, node};
        std::optional<Derivation> derivation = found->rule(view);
        if (!derivation || !sources_serve(view, *derivation, output, known)) continue;
        if (settings.extremes_only && needs_histograms(derivation->rule)) continue;
        for (const ValueId source : derivation->sources) ++uses_[source];
        derivations_[output] = std::move(derivation);
    }
}

const Derivation* DerivationTable::of(ValueId value) const {
    return value < derivations_.size() && derivations_[value] ? &*derivations_[value] : nullptr;
}

bool derive(const Derivation& derivation, std::span<const TensorStatistics* const> sources,
            std::span<const float> elements, const CounterSettings& settings, TensorStatistics& result) {
    const TensorStatistics& first = *sources[0];
    switch (derivation.rule) {
        case Derivation::Rule::same:
            result = first;
            return true;
        case Derivation::Rule::clip:
            return derive_clipped(first, derivation.bounds, settings, result);
        case Derivation::Rule::scale:
            // A factor of a higher rank may repeat the elements.
            if (first.elements() != elements.size()) return false;
            return derive_scaled(first, derivation.power, settings, elements, result);
        case Derivation::Rule::join:
            return derive_joined(sources, result);
        case Derivation::Rule::repeat:
            if (first.elements() == 0) return derive_repeated(first, 0, result);
            return derive_repeated(first, elements.size() / first.elements(), result);
    }
    return false;
}

}  // namespace qcalib
