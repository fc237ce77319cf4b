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

ParameterUse use_of(const Node& node, std::size_t input, const Target& target, const Fusions& fusions) {
    ParameterUse use{&node, input, nullptr, nullptr, nullptr};
    if (!node.domain.empty()) return use;  // rules speak of ONNX's own operators
    use.lost = fusions.losing(node, input);
    if (use.lost != nullptr) return use;
    use.weight = target.weight_rule(node.op_type, input);
    use.skip = target.skip_rule(node.op_type, input);
    return use;
}

// How a use takes part in a remark on shared constants.
std::string_view role_of(const ParameterUse& use) {
    return use.weight != nullptr ? "weight" : use.skipped() ? "unencoded input" : "operand";
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
    return use.skipped();
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
                                       const std::vector<bool>& activations, const Target& target,
                                       const Fusions& fusions) {
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
            parameters[found->second].uses.push_back(use_of(node, input, target, fusions));
        }
    }
    return parameters;
}

std::string ParameterEncoder::reason_of(const Parameter& parameter) const {
    const ParameterUse& use = parameter.uses.front();
    if (use.lost != nullptr) {
        return fmt::format("target '{}' makes it a part of {} '{}'", target_.name, use.lost->pattern->name,
                           printable(graph_.values[use.lost->output].name));
    }
    return fmt::format("target '{}' encodes no input {} of {}: {}", target_.name, use.input,
                       use.skip->op_type, use.skip->evidence.source);
}

Encoded ParameterEncoder::encode(const Parameter& parameter, const Tensor& value,
                                 const TensorOverride& given) {
    const std::string& name = graph_.values[parameter.value].name;
    Encoded result;
    result.decision.tensor = name;
    result.decision.kind = Decision::Kind::constant;
    if (std::all_of(parameter.uses.begin(), parameter.uses.end(), is_skipped)) {
        const TensorEncoding* base = options_.base == nullptr ? nullptr : options_.base->find(name);
        if (base == nullptr || given.skip) {
            result.decision.no_encoding = reason_of(parameter);
            return result;
        }
        result.decision.rules = options_.weights;
        const std::vector<int> any_width{base->width()};
        GridRules any_grid = options_.weights;
        any_grid.power_of_two = false;
        result.entry = encoder_.kept(*base, any_grid, any_width, result.decision, remarks_);
        result.decision.notes.push_back("kept though " + reason_of(parameter));
        return result;
    }
    if (value.view().elements() == 0) {
        remarks_.add(fmt::format("'{}': no encoding: the constant has no elements", printable(name)));
        result.decision.no_encoding = "the constant has no elements";
        return result;
    }
    const Tensor floats = to_float32(value, fmt::format("'{}'", printable(name)));
    const bool weight = is_weight(parameter);
    remark_shared(parameter, weight ? "a weight" : "an operand");
    if (!weight) return encode_constant(name, floats, given);
    const std::optional<Tensor> folded =
        options_.tidl == nullptr ? std::nullopt : options_.tidl->folded(parameter.value);
    result = encode_weight(parameter, folded ? *folded : floats, given);
    if (folded) result.decision.notes.emplace_back("with the batch normalization behind it taken in");
    return result;
}

GridRules ParameterEncoder::weight_grid(const std::string& name, std::optional<int> axis,
                                        const TensorOverride& given) const {
    GridRules grid = encoder_.grid(given, options_.weights, target_.weights.widths, name);
    if (!axis || !target_.weights.per_channel_symmetric) return grid;
    if (given.symmetric == false) {
        fail(
            "{}: symmetric: expected true for '{}', whose channels target '{}' takes only symmetric, found "
            "false",
            encoder_.labels(given).front(), printable(name), target_.name);
    }
    grid.scheme = Scheme::symmetric;
    return grid;
}

// Nothing, with a remark, where the base's channels are none that the tensor can have.
const TensorEncoding* ParameterEncoder::base_of(const std::string& name, const Tensor& value, bool weight) {
    const TensorEncoding* base = options_.base == nullptr ? nullptr : options_.base->find(name);
    if (base == nullptr || base->per_block() || base->encodings.size() <= 1) return base;
    const Shape& shape = value.shape();
    const auto fits = [&](std::size_t axis) {
        return shape[axis] == static_cast<std::int64_t>(base->encodings.size());
    };
    bool any = false;
    for (std::size_t axis = 0; weight && axis < shape.size(); ++axis) {
        const bool asked = !base->axis || *base->axis == static_cast<int>(axis);
        any = any || (asked && fits(axis));
    }
    if (any) return base;
    remarks_.add(fmt::format("'{}': the base's {} channels{} do not fit the shape {}: encoded anew",
                             printable(name), base->encodings.size(),
                             base->axis ? fmt::format(" along axis {}", *base->axis) : "", to_string(shape)));
    return nullptr;
}

Encoded ParameterEncoder::encode_weight(const Parameter& parameter, const Tensor& value,
                                        const TensorOverride& given) {
    const std::string& name = graph_.values[parameter.value].name;
    const MethodChoice& choice = options_.weight_methods.of(name);
    const TensorEncoding* base = base_of(name, value, true);
    const bool one = given.skip || given.range || given.step;
    const std::optional<int> axis = one ? std::nullopt : weight_axis(parameter, value);
    look_at_channels(parameter, value, axis.has_value() || (base != nullptr && base->encodings.size() > 1));
    TensorTask task{name,
                    Decision::Kind::weight,
                    options_.weights,
                    target_.weights.widths,
                    to_string(choice),
                    "weights",
                    [&](const GridRules& grid) {
                        return std::optional(chosen_weight_ranges(value, {}, name, choice, grid).front());
                    },
                    {},
                    nullptr,
                    nullptr,
                    base};
    if (one) {
        Counter counter(CounterSettings{counter_.mask_below, false});
        const TensorStatistics statistics = counter.count(value.view().as<float>());
        task.statistics = &statistics;
        return encoder_.encode(task, given, remarks_);
    }
    const bool ranged = base != nullptr && (!base->encodings.empty() || base->type == CodeType::floating);
    if (!ranged && !axis) return encoder_.encode(task, given, remarks_);

    Encoded result;
    Decision& decision = result.decision;
    decision.tensor = name;
    decision.kind = Decision::Kind::weight;
    decision.overrides = encoder_.labels(given);
    const std::optional<int> final_axis = ranged ? base->axis : axis;
    GridRules grid = weight_grid(name, final_axis, given);
    if (!given.bits) grid.bits = base_width(base, target_.weights.widths).value_or(grid.bits);
    decision.rules = grid;
    if (ranged && ((!given.bits && !given.symmetric) || base->encodings.empty() || base->per_block())) {
        result.entry = encoder_.kept(*base, grid, target_.weights.widths, decision, remarks_);
        return result;
    }
    decision.method = ranged ? "base" : task.method;
    decision.origin = given.empty() ? task.origin : "override";
    if (ranged) {
        for (const Encoding& encoding : base->encodings)
            decision.ranges.push_back({encoding.min, encoding.max});
    } else {
        decision.ranges = chosen_weight_ranges(value, axis, name, choice, grid);
    }
    result.entry = TensorEncoding{name, {}, final_axis, decision.origin};
    for (const Range& range : decision.ranges) result.entry->encodings.push_back(qcalib::encode(range, grid));
    return result;
}

Encoded ParameterEncoder::encode_constant(const std::string& name, const Tensor& value,
                                          const TensorOverride& given) {
    Counter counter(CounterSettings{counter_.mask_below, !(given.range || given.step)});
    const TensorStatistics statistics = counter.count(value.view().as<float>());
    if (!given.skip) check_values(name, statistics, options_, remarks_);
    TensorTask task{name,
                    Decision::Kind::constant,
                    options_.activations,
                    target_.activations.widths,
                    "minmax",
                    "constant",
                    [&](const GridRules&) { return statistics.extremes; },
                    "the constant has no finite value that is no mask",
                    &statistics,
                    nullptr,
                    base_of(name, value, false)};
    if (target_.constants.width == ConstantRule::Width::of_weights) {
        task.grid.bits = options_.weights.bits;
        task.widths = target_.weights.widths;
    }
    task.grid.scheme = target_.constants.symmetric ? Scheme::symmetric : Scheme::asymmetric;
    Encoded result = encoder_.encode(task, given, remarks_);
    if (!result.entry && !given.skip)
        remarks_.add(fmt::format("'{}': no encoding: {}", printable(name), task.without));
    return result;
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
