#include "target/parameters.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

bool meets_activation(const Node& node, const std::vector<bool>& activations) {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId input) { return input != no_value && activations[input]; });
}

ParameterUse use_of(const Node& node, std::size_t input, const Target& target) {
    ParameterUse use{&node, input, nullptr, nullptr};
    if (!node.domain.empty()) return use;  // rules speak of ONNX's own operators
    use.weight = target.weight_rule(node.op_type, input);
    use.skip = target.skip_rule(node.op_type, input);
    return use;
}

// How a use takes part in a remark on shared constants.
std::string_view role_of(const ParameterUse& use) {
    return use.weight != nullptr ? "weight" : use.skip != nullptr ? "unencoded input" : "operand";
}

bool is_use_as_weight(const ParameterUse& use) {
    return use.weight != nullptr;
}
// Whether it is a weight whose channels lie on no axis because its operator works in groups.
bool in_groups(const ParameterUse& use) {
    return use.weight->per_channel == WeightRule::PerChannel::ungrouped &&
           use.node->attribute<std::int64_t>("group", 1) != 1;
}
bool is_skipped(const ParameterUse& use) {
    return use.skip != nullptr;
}

// "'a', 'b', 'c' and 9 more".
std::string listed(const std::vector<std::string>& names) {
    constexpr std::size_t most = 5;
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < std::min(most, names.size()); ++i) {
        shown.push_back(fmt::format("'{}'", printable(names[i])));
    }
    const std::string text = join(shown, ", ");
    return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

}  // namespace

bool is_weight(const Parameter& parameter) {
    return std::any_of(parameter.uses.begin(), parameter.uses.end(),
                       [](const ParameterUse& use) { return use.weight != nullptr; });
}

std::vector<Parameter> find_parameters(const Graph& graph, const ConstantLookup& constant,
                                       const std::vector<bool>& activations, const Target& target) {
    std::vector<Parameter> parameters;
    std::unordered_map<ValueId, std::size_t> place;
    for (const Node& node : graph.nodes) {
        if (!meets_activation(node, activations)) continue;
        for (std::size_t input = 0; input < node.inputs.size(); ++input) {
            const ValueId value = node.inputs[input];
            if (value == no_value || activations[value]) continue;
            const Tensor* tensor = constant(value);
            if (tensor == nullptr || !is_floating(tensor->type())) continue;
            const auto [found, added] = place.emplace(value, parameters.size());
            if (added) parameters.push_back({value, {}});
            parameters[found->second].uses.push_back(use_of(node, input, target));
        }
    }
    return parameters;
}

std::optional<TensorEncoding> ParameterEncoder::encode(const Parameter& parameter, const Tensor& value) {
    const std::string& name = graph_.values[parameter.value].name;
    if (std::all_of(parameter.uses.begin(), parameter.uses.end(), is_skipped)) {
        const ParameterUse& use = parameter.uses.front();
        note_none(name, fmt::format("target '{}' encodes no input {} of {}: {}", target_.name, use.input,
                                    use.skip->op_type, use.skip->evidence.source));
        return std::nullopt;
    }
    if (value.view().elements() == 0) {
        remarks_.add(fmt::format("'{}': no encoding: the constant has no elements", printable(name)));
        note_none(name, "the constant has no elements");
        return std::nullopt;
    }
    const Tensor floats = to_float32(value, fmt::format("'{}'", printable(name)));
    const bool weight = is_weight(parameter);
    remark_shared(parameter, weight ? "a weight" : "an operand");
    if (weight) return encode_weight(parameter, floats);
    return encode_constant(name, floats);
}

TensorEncoding ParameterEncoder::encode_weight(const Parameter& parameter, const Tensor& value) {
    const std::string& name = graph_.values[parameter.value].name;
    const std::optional<int> axis = weight_axis(parameter, value);
    const MethodChoice& choice = options_.weight_methods.of(name);
    GridRules grid = options_.weights;
    if (axis && target_.weights.per_channel_symmetric) grid.scheme = Scheme::symmetric;
    look_at_channels(parameter, value, axis.has_value());
    TensorEncoding entry{name, {}, axis, "weights"};
    std::vector<Range> ranges = chosen_weight_ranges(value, axis, name, choice, grid);
    for (const Range& range : ranges) entry.encodings.push_back(qcalib::encode(range, grid));
    options_.note({name, Decision::Kind::weight, to_string(choice), std::move(ranges), grid, {}});
    return entry;
}

std::optional<TensorEncoding> ParameterEncoder::encode_constant(const std::string& name,
                                                                const Tensor& value) {
    Counter counter(CounterSettings{counter_.mask_below, true});
    const TensorStatistics& statistics = counter.count(value.view().as<float>());
    check_values(name, statistics, options_, remarks_);
    if (!statistics.extremes) {
        remarks_.add(fmt::format("'{}': no encoding: the constant has no finite value that is no mask",
                                 printable(name)));
        note_none(name, "the constant has no finite value that is no mask");
        return std::nullopt;
    }
    GridRules grid = options_.activations;
    if (target_.constants.width == ConstantRule::Width::of_weights) grid.bits = options_.weights.bits;
    grid.scheme = target_.constants.symmetric ? Scheme::symmetric : Scheme::asymmetric;
    options_.note({name, Decision::Kind::constant, "minmax", {*statistics.extremes}, grid, {}});
    return TensorEncoding{name, {qcalib::encode(*statistics.extremes, grid)}, {}, "constant"};
}

void ParameterEncoder::note_none(const std::string& name, std::string reason) const {
    options_.note({name, Decision::Kind::constant, {}, {}, {}, std::move(reason)});
}

std::optional<int> ParameterEncoder::weight_axis(const Parameter& parameter, const Tensor& value) {
    if (!options_.per_channel_weights) return std::nullopt;
    const std::string& name = graph_.values[parameter.value].name;
    std::vector<std::optional<int>> axes;
    for (const ParameterUse& use : parameter.uses) {
        if (is_use_as_weight(use)) axes.push_back(axis_of_use(name, use, value.descriptor().rank()));
    }
    if (std::all_of(axes.begin(), axes.end(), [&](const auto& axis) { return axis == axes[0]; }))
        return axes[0];
    stays_per_tensor(name, "operators that share it have their channels on different axes");
    return std::nullopt;
}

std::optional<int> ParameterEncoder::axis_of_use(const std::string& name, const ParameterUse& use,
                                                 std::size_t rank) {
    if (rank < 2) return std::nullopt;
    const WeightRule& rule = *use.weight;
    if (rule.per_channel == WeightRule::PerChannel::never) {
        stays_per_tensor(name,
                         fmt::format("target '{}' takes no channels for {}", target_.name, rule.op_type));
        return std::nullopt;
    }
    if (in_groups(use)) {
        stays_per_tensor(name, fmt::format("{} in groups has no axis of all output channels", rule.op_type));
        return std::nullopt;
    }
    return channel_axis(name, use, rank);
}

std::optional<int> ParameterEncoder::channel_axis(const std::string& name, const ParameterUse& use,
                                                  std::size_t rank) const {
    if (rank < 2 || in_groups(use)) return std::nullopt;
    const WeightRule& rule = *use.weight;
    const int dimensions = static_cast<int>(rank);
    int axis = rule.channel_axis < 0 ? rule.channel_axis + dimensions : rule.channel_axis;
    const bool transposed =
        !rule.transposed_by.empty() && use.node->attribute<std::int64_t>(rule.transposed_by, 0) != 0;
    if (transposed && axis >= dimensions - 2) axis = 2 * dimensions - 3 - axis;
    if (axis < 0 || axis >= dimensions) {
        fail("{}: expected a weight '{}' with an axis {}, found {} dimensions", label(graph_, *use.node),
             printable(name), rule.channel_axis, rank);
    }
    return axis;
}

// Dead channels are named, and outliers where they share one encoding with the others.
void ParameterEncoder::look_at_channels(const Parameter& parameter, const Tensor& value, bool per_channel) {
    const std::string& name = graph_.values[parameter.value].name;
    const auto use = std::find_if(parameter.uses.begin(), parameter.uses.end(), is_use_as_weight);
    const std::optional<int> axis = channel_axis(name, *use, value.descriptor().rank());
    if (axis) channels_.look_at(name, weight_ranges(value.view(), axis, name), per_channel);
}

void ParameterEncoder::remark_shared(const Parameter& parameter, std::string_view encoded_as) {
    std::vector<std::string_view> roles;
    std::vector<std::string> examples;
    for (const ParameterUse& use : parameter.uses) {
        const std::string_view role = role_of(use);
        if (std::find(roles.begin(), roles.end(), role) != roles.end()) continue;
        roles.push_back(role);
        examples.push_back(fmt::format("{} of {}", role, label(graph_, *use.node)));
    }
    if (roles.size() == 1) return;
    remarks_.add(fmt::format("'{}': encoded as {} though it has several uses: {}",
                             printable(graph_.values[parameter.value].name), encoded_as,
                             join(examples, ", ")));
}

void ParameterEncoder::stays_per_tensor(const std::string& name, std::string reason) {
    auto known = std::find_if(per_tensor_.begin(), per_tensor_.end(),
                              [&](const PerTensorReason& one) { return one.reason == reason; });
    if (known == per_tensor_.end()) known = per_tensor_.insert(known, {std::move(reason), {}});
    if (std::find(known->weights.begin(), known->weights.end(), name) == known->weights.end()) {
        known->weights.push_back(name);
    }
}

void ParameterEncoder::finish() {
    for (const PerTensorReason& one : per_tensor_) {
        remarks_.add(fmt::format("{}: per tensor though per channel was asked for: {}", listed(one.weights),
                                 one.reason));
    }
    per_tensor_.clear();
    channels_.add_to(remarks_);
}

void check_values(const std::string& name, const TensorStatistics& statistics, const ResolvedOptions& options,
                  Remarks& remarks) {
    std::vector<std::string> parts;
    bool refused = false;
    const auto add = [&](std::uint64_t count, std::string_view what, ValuePolicy policy) {
        if (count == 0) return;
        parts.push_back(fmt::format("{} {}", count, what));
        refused = refused || policy == ValuePolicy::fail;
    };
    add(statistics.nans, "NaN", options.nonfinite);
    add(statistics.positive_infinities, "+Inf", options.nonfinite);
    add(statistics.negative_infinities, "-Inf", options.nonfinite);
    add(statistics.positive_masks, "positive masks", options.masks);
    add(statistics.negative_masks, "negative masks", options.masks);
    if (parts.empty()) return;
    if (refused) {
        fail(
            "'{}': expected finite values that are no masks, found {} (--nonfinite skip and --masks skip "
            "leave them "
            "out)",
            printable(name), join(parts, ", "));
    }
    remarks.add(fmt::format("'{}': left out of its range: {}", printable(name), join(parts, ", ")));
}

}  // namespace qcalib
