#include "target/circle_assignment.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "target/circle_constants.h"
#include "target/step_grid.h"

namespace qcalib {

namespace {

std::string quoted_tensor(const std::string& name) {
    return fmt::format("'{}'", printable(name));
}

std::vector<bool> bias_values(const CircleGraph& graph, const Target& target) {
    std::vector<bool> biases(graph.graph().values.size(), false);
    for (const Node& node : graph.graph().nodes) {
        const CircleBiasRule* rule = target.circle->bias_rule(node.op_type);
        if (rule == nullptr || node.inputs.size() <= rule->bias) continue;
        if (graph.is_constant(node.inputs[rule->bias])) biases[node.inputs[rule->bias]] = true;
    }
    return biases;
}

// What overrides and the base give single tensors before any step.
class CircleKept {
  public:
    CircleKept(const CircleInputs& in, const CircleGraph& graph, CircleEncodings& encodings, Remarks& remarks)
        : in_(in),
          graph_(graph),
          encodings_(encodings),
          remarks_(remarks),
          bits_(in.options.activations.bits) {}

    void apply(ValueId value) {
        const std::string& name = graph_.name(value);
        const TensorOverride given = in_.options.overrides->of(name);
        check(given, name);
        const TensorEncoding* base = in_.options.base == nullptr ? nullptr : in_.options.base->find(name);
        if (base != nullptr && !base->encodings.empty()) keep_base(value, *base);
        if (given.range)
            keep(value, {circle_encoding(*given.range, bits_, *in_.target.circle)}, {}, "override");
        if (given.step) keep(value, {with_step(value, *given.step)}, {}, "override");
        if (given.range || given.step) {
            encodings_.of[value].decision.overrides = labels(given);
            if (given.range) encodings_.of[value].decision.ranges = {*given.range};
        }
    }

    void copy(ValueId value, const TensorEncoding& source) {
        const TensorOverride given = in_.options.overrides->of(graph_.name(value));
        if (source.encodings.size() > 1 || source.width() != bits_) {
            fail("{}: copy: expected a tensor with one encoding of {} bits, found {} with {} of {} bits",
                 labels(given).front(), bits_, quoted_tensor(source.tensor), source.encodings.size(),
                 source.width());
        }
        keep(value, source.encodings, {}, "override");
        encodings_.of[value].decision.method = fmt::format("copied from {}", quoted_tensor(source.tensor));
        encodings_.of[value].decision.overrides = labels(given);
    }

  private:
    std::vector<std::string> labels(const TensorOverride& given) const {
        std::vector<std::string> labels;
        for (const std::size_t index : given.from) labels.push_back(in_.options.overrides->label(index));
        return labels;
    }

    void check(const TensorOverride& given, const std::string& name) const {
        if (given.empty()) return;
        if (given.skip) {
            fail(
                "{}: skip: target '{}' takes no tensor without an entry, and q-implant stops at the first: "
                "{}",
                labels(given).front(), in_.target.name, quoted_tensor(name));
        }
        if (given.bits && *given.bits != bits_) {
            fail(
                "{}: bits: expected {}, as all tensors of the run have (--act-bits), found {} for {}: "
                "q-implant "
                "gives an output the type of its operator's first input, so that other widths need QUANTIZE "
                "operators in the model",
                labels(given).front(), bits_, *given.bits, quoted_tensor(name));
        }
        if (given.symmetric && *given.symmetric != (bits_ != 8)) {
            fail(
                "{}: symmetric: expected {}, found {} for {}: target '{}' has uint8 asymmetric and int16 "
                "symmetric",
                labels(given).front(), bits_ != 8, *given.symmetric, quoted_tensor(name), in_.target.name);
        }
    }

    Encoding with_step(ValueId value, double step) const {
        std::optional<Range> data;
        if (graph_.is_constant(value)) {
            data = weight_ranges(graph_.constant(value).view(), {}, graph_.name(value)).front();
        } else {
            data = in_.range(value);
        }
        const Encoding encoding = encode_with_step(step, data, in_.options.activations);
        return circle_encoding_of(step, bits_ == 8 ? -encoding.offset : 0, bits_);
    }

    // What a base says, on a grid the target has.
    Encoding on_grid(const Encoding& given, bool range_alone) const {
        const std::int64_t zero_point = -given.offset;
        if (!range_alone && given.bits == bits_ && bits_ == 8 && zero_point >= 0 && zero_point <= 255)
            return circle_encoding_of(given.scale, zero_point, bits_);
        if (!range_alone && given.bits == bits_ && bits_ == 16 && given.symmetric)
            return circle_encoding_of(given.scale, 0, bits_);
        return circle_encoding({given.min, given.max}, bits_, *in_.target.circle);
    }

    void keep_base(ValueId value, const TensorEncoding& base) {
        const bool several = base.encodings.size() > 1;
        const std::optional<int> axis = several ? base.axis : std::nullopt;
        if (several && !fits(value, base)) {
            remarks_.add(fmt::format("{}: the base's {} channels do not fit the tensor: encoded anew",
                                     quoted_tensor(base.tensor), base.encodings.size()));
            return;
        }
        std::vector<Encoding> encodings;
        const bool range_alone = in_.options.base->range_alone(base.tensor);
        for (const Encoding& one : base.encodings) encodings.push_back(on_grid(one, range_alone));
        keep(value, std::move(encodings), axis, "base");
        if (!base.origin.empty()) encodings_.of[value].decision.notes.push_back("from " + base.origin);
    }

    bool fits(ValueId value, const TensorEncoding& base) const {
        if (!graph_.is_constant(value) || base.per_block() || !base.axis) return false;
        const Shape& shape = graph_.constant(value).shape();
        const int axis = *base.axis < 0 ? *base.axis + static_cast<int>(shape.size()) : *base.axis;
        return axis >= 0 && axis < static_cast<int>(shape.size()) &&
               shape[static_cast<std::size_t>(axis)] == static_cast<std::int64_t>(base.encodings.size());
    }

    void keep(ValueId value, std::vector<Encoding> kept, std::optional<int> axis, const std::string& origin) {
        Encoded& encoded = encodings_.of[value];
        encoded.decision.tensor = graph_.name(value);
        encoded.decision.kind =
            graph_.is_constant(value) ? Decision::Kind::constant : Decision::Kind::activation;
        encoded.decision.method = encoded.decision.origin = origin;
        encoded.decision.no_encoding.clear();
        encoded.decision.rules = in_.options.activations;
        encoded.decision.by_rules = false;
        encoded.decision.ranges.clear();
        for (const Encoding& one : kept) encoded.decision.ranges.push_back({one.min, one.max});
        encoded.entry = TensorEncoding{graph_.name(value), std::move(kept), axis, origin};
        encodings_.kept[value] = true;
    }

    const CircleInputs& in_;
    const CircleGraph& graph_;
    CircleEncodings& encodings_;
    Remarks& remarks_;
    int bits_;
};

void choose_range(const CircleInputs& in, const CircleGraph& graph, ValueId value, Encoded& encoded) {
    Decision& decision = encoded.decision;
    decision.tensor = graph.name(value);
    decision.kind = Decision::Kind::activation;
    decision.method = in.method(value);
    decision.rules = in.options.activations;
    decision.by_rules = false;
    const std::optional<Range> range = in.range(value);
    if (!range) {
        decision.no_encoding = "no sample gave it a finite value that is no mask";
        return;
    }
    decision.ranges = {*range};
    decision.origin = decision.method.substr(0, decision.method.find(':'));
    encoded.entry = TensorEncoding{graph.name(value),
                                   {circle_encoding(*range, in.options.activations.bits, *in.target.circle)},
                                   {},
                                   decision.origin};
}

CircleEncodings run_steps(const CircleInputs& in, const CircleEncodings* copied_from, Remarks& remarks) {
    const CircleGraph graph(in.graph);
    const std::vector<bool> biases = bias_values(graph, in.target);
    CircleEncodings encodings(in.graph.values.size());
    CircleKept kept(in, graph, encodings, remarks);
    for (const ValueId value : graph.floats()) {
        if (graph.is_activation(value)) choose_range(in, graph, value, encodings.of[value]);
        if (biases[value]) continue;
        kept.apply(value);
        const std::optional<std::string> source = in.options.overrides->of(graph.name(value)).copy;
        if (!source || copied_from == nullptr) continue;
        const std::optional<TensorEncoding>& entry = copied_from->of[in.graph.find(*source)].entry;
        if (!entry)
            fail("{}: copy: {} has no encoding", quoted_tensor(graph.name(value)), quoted_tensor(*source));
        kept.copy(value, *entry);
    }
    CirclePropagation propagation(graph, in.target, in.options.activations.bits, encodings, remarks);
    CircleConstants constants(graph, in.target, in.options, encodings, remarks);
    propagation.to_inputs();
    constants.encode_operands();
    propagation.fix_outputs();
    propagation.to_outputs();
    constants.encode_weights();
    constants.encode_biases();
    return encodings;
}

bool any_copies(const CircleInputs& in) {
    return std::ranges::any_of(in.graph.values, [&](const Value& value) {
        return in.options.overrides->of(value.name).copy.has_value();
    });
}

bool same_entry(const std::optional<TensorEncoding>& a, const std::optional<TensorEncoding>& b) {
    if (!a || !b) return a.has_value() == b.has_value();
    return a->encodings == b->encodings && a->axis == b->axis;
}

// Remarks for overrides without which every tensor would have the same encoding.
void remark_unheeded(const CircleInputs& in, const CircleEncodings& encodings, Remarks& remarks) {
    const OverrideTable& overrides = *in.options.overrides;
    if (overrides.size() == 0) return;
    const OverrideTable none({}, in.target.name, in.target.scale_is_multiplier);
    ResolvedOptions options = in.options;
    options.overrides = &none;
    Remarks said_already;
    const CircleEncodings without =
        run_steps({in.graph, in.target, options, in.range, in.method}, nullptr, said_already);
    const CircleGraph graph(in.graph);
    const std::vector<bool> biases = bias_values(graph, in.target);
    std::vector<bool> heeded(overrides.size(), false);
    std::vector<bool> on_bias(overrides.size(), false);
    for (const ValueId value : graph.floats()) {
        for (const std::size_t index : overrides.of(graph.name(value)).from) {
            if (biases[value]) on_bias[index] = true;
            if (!biases[value] && !same_entry(encodings.of[value].entry, without.of[value].entry))
                heeded[index] = true;
        }
    }
    for (std::size_t index = 0; index < heeded.size(); ++index) {
        if (heeded[index]) continue;
        remarks.add(
            fmt::format("{} changed nothing for target '{}': {}", overrides.label(index), in.target.name,
                        on_bias[index] ? "the scale of a bias is that of its input times that of its weight"
                                       : "what it matches is no float tensor, has the same encoding "
                                         "without it, or heeds a stronger one"));
    }
}

void add_to_set(const CircleGraph& graph, const CircleEncodings& encodings, EncodingSet& set,
                std::vector<Decision>* decisions) {
    for (const bool constants : {false, true}) {
        for (const ValueId value : graph.floats()) {
            if (graph.is_constant(value) != constants) continue;
            const Encoded& encoded = encodings.of[value];
            if (encoded.entry) (constants ? set.parameters : set.activations).push_back(*encoded.entry);
            if (decisions != nullptr) decisions->push_back(encoded.decision);
        }
    }
}

// Names of tensors for a message, the first few of them.
std::string some_names(const std::vector<std::string>& names) {
    constexpr std::size_t most = 10;
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < std::min(most, names.size()); ++i) shown.push_back(quoted_tensor(names[i]));
    return join(shown, ", ") + (names.size() > most ? ", ..." : "");
}

void check_all_counted(const CircleGraph& graph, const StatisticsFile& statistics, const Target& target,
                       const ResolvedOptions& options) {
    std::vector<std::string> missing;
    for (const ValueId value : graph.floats()) {
        const std::string& name = graph.name(value);
        if (graph.is_constant(value) || statistics.find(name)) continue;
        const TensorOverride given = options.overrides->of(name);
        if (!given.range && !given.copy && options.base->find(name) == nullptr) missing.push_back(name);
    }
    if (missing.empty()) return;
    fail(
        "{}: expected every float tensor, each of which needs an entry for target '{}', {} not counted: {}: "
        "calibrate with --tensors all",
        statistics.path().string(), target.name, missing.size(), some_names(missing));
}

}  // namespace

CircleEncodings circle_encodings(const CircleInputs& inputs, Remarks& remarks) {
    if (!any_copies(inputs)) return run_steps(inputs, nullptr, remarks);
    Remarks said_later;
    const CircleEncodings first = run_steps(inputs, nullptr, said_later);
    return run_steps(inputs, &first, remarks);
}

EncodingSet assign_circle_encodings(const Graph& graph, const StatisticsFile& statistics,
                                    const Target& target, const ResolvedOptions& options, Remarks& remarks,
                                    std::vector<Decision>* decisions) {
    const CircleGraph circle(graph);
    check_all_counted(circle, statistics, target, options);
    std::vector<std::string> activations;
    std::vector<std::string> names;
    for (const Value& value : graph.values) names.push_back(value.name);
    for (const ValueId value : circle.floats()) {
        if (circle.is_constant(value)) continue;
        activations.push_back(circle.name(value));
        const std::optional<std::size_t> place = statistics.find(circle.name(value));
        if (place) check_values(circle.name(value), statistics.tensor(*place), options, remarks);
    }
    options.methods.check_patterns(activations, "--method");
    const CircleInputs inputs{
        graph, target, options,
        [&](ValueId value) -> std::optional<Range> {
            const std::optional<std::size_t> place = statistics.find(circle.name(value));
            if (!place) return std::nullopt;
            const TensorSamples samples(statistics, *place);
            return options.methods.of(circle.name(value)).choose(samples, options.activations);
        },
        [&](ValueId value) { return to_string(options.methods.of(circle.name(value))); }};
    const CircleEncodings encodings = circle_encodings(inputs, remarks);
    EncodingSet set;
    add_to_set(circle, encodings, set, decisions);
    std::unordered_map<std::string, std::string> reasons;
    std::vector<std::string> without;
    for (const ValueId value : circle.floats()) {
        if (encodings.of[value].entry) continue;
        without.push_back(circle.name(value));
        reasons.emplace(circle.name(value), encodings.of[value].decision.no_encoding);
    }
    if (!without.empty()) {
        fail(
            "{}: expected a range for every float tensor, without which q-implant stops, found none for {}: "
            "{}: "
            "give them one by --override",
            statistics.path().string(), some_names(without),
            encodings.of[graph.find(without.front())].decision.no_encoding);
    }
    options.base->remark_dropped(names, set, reasons, remarks);
    remark_unheeded(inputs, encodings, remarks);
    return set;
}

void check_circle_options(const AssignmentOptions& options, const Target& target) {
    const int bits = options.activation_bits.value_or(target.activations.bits);
    const auto refuse = [&](std::string_view flag, std::string_view why) {
        fail("{}: target '{}' {}", flag, target.name, why);
    };
    if (bits != 8 && bits != 16)
        fail("--act-bits: expected one of 8, 16, which target '{}' takes, found {}", target.name, bits);
    if (options.weight_bits && *options.weight_bits != bits) {
        fail(
            "--weight-bits: expected {}, the width of activations, which target '{}' gives weights too, "
            "found {}",
            bits, target.name, *options.weight_bits);
    }
    if (bits != 8 && options.per_channel_weights == false)
        refuse("--weights per-tensor",
               "takes one scale a weight only for uint8 (circle-quantizer refuses layer for int16)");
    if (options.symmetric_activations && *options.symmetric_activations != (bits != 8))
        refuse("--symmetric-activations", "has uint8 asymmetric and int16 symmetric");
    if (options.symmetric_weights && *options.symmetric_weights != (bits != 8))
        refuse("--symmetric-weights", "has uint8 asymmetric and int16 symmetric");
    if (options.power_of_two == true) refuse("--power-of-two", "has no such steps");
    if (options.include_zero == false) refuse("--include-zero", "has zero in every range");
    if (options.least_range || !options.least_range_name.empty())
        refuse("--least-range", "has least steps instead, 1e-5 for uint8 and 1e-8 for int16");
    if (options.bias_bits)
        refuse("--bias-bits", "always has biases, int32 beside uint8 and int64 beside int16");
}

std::map<ValueId, Tensor> circle_fake_quantized_weights(const Graph& graph, const Target& target,
                                                        const AssignmentOptions& options) {
    const OverrideTable overrides(options.overrides, target.name, target.scale_is_multiplier);
    ResolvedOptions resolved{
        &overrides, nullptr, activation_methods(options, target), weight_methods(options, target), {}, {}};
    resolved.activations.bits = options.activation_bits.value_or(target.activations.bits);
    resolved.per_channel_weights = options.per_channel_weights.value_or(target.weights.per_channel);
    const CircleGraph circle(graph);
    CircleEncodings encodings(graph.values.size());
    Remarks said_later;
    CircleConstants constants(circle, target, resolved, encodings, said_later);
    constants.encode_weights();
    std::map<ValueId, Tensor> replaced;
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        if (!encodings.of[value].entry || !circle.is_constant(value)) continue;
        const TensorEncoding& entry = *encodings.of[value].entry;
        const Tensor codes = circle_codes(circle.constant(value), entry, encodings.coding[value]);
        replaced.emplace(value, circle_values(codes, entry));
    }
    return replaced;
}

}  // namespace qcalib
