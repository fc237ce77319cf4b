#include "target/resolver.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "target/bias_encoding.h"

namespace qcalib {

namespace {

std::string quoted(const std::string& name) {
    return fmt::format("'{}'", printable(name));
}

const Node* producer_of(const Graph& graph, ValueId value) {
    const NodeIndex producer = graph.values[value].producer;
    return producer == no_node ? nullptr : &graph.nodes[producer];
}

bool same_encodings(const std::optional<TensorEncoding>& a, const std::optional<TensorEncoding>& b) {
    if (!a || !b) return a.has_value() == b.has_value();
    return a->encodings == b->encodings && a->axis == b->axis && a->type == b->type &&
           a->width() == b->width();
}

std::vector<bool> activations_of(const ResolverInputs& in) {
    std::vector<bool> activations = in.values.activations();
    for (ValueId value = 0; value < activations.size(); ++value) {
        if (in.values.computed()[value]) activations[value] = true;
    }
    return activations;
}

}  // namespace

Resolver::Resolver(const ResolverInputs& inputs, Remarks& remarks)
    : in_(inputs),
      remarks_(remarks),
      encoder_(in_.target, *in_.options.overrides),
      parameter_encoder_(in_.graph, in_.target, in_.options, in_.statistics.header().counter, remarks),
      sharing_(in_.graph, in_.target, activations_of(in_)),
      states_(in_.graph.values.size(), State::open),
      results_(in_.graph.values.size()) {
    for (const Parameter& parameter : in_.parameters) parameter_of_.emplace(parameter.value, &parameter);
}

// Counted, or known to be a float that overrides or the base speak of.
bool Resolver::is_activation(ValueId value) const {
    if (in_.values.activations()[value]) return true;
    if (!in_.values.computed()[value]) return false;
    if (in_.options.tidl != nullptr && in_.options.tidl->carried(value)) return true;
    return !in_.options.overrides->of(name_of(value)).empty() ||
           in_.options.base->find(name_of(value)) != nullptr;
}

bool Resolver::follows(ValueId value, const TensorOverride& given) const {
    return sharing_.source(value) != no_value && given.empty() &&
           in_.options.base->find(name_of(value)) == nullptr;
}

const Encoded& Resolver::final(ValueId value) {
    if (states_[value] == State::done) return results_[value];
    path_.push_back(value);
    if (states_[value] == State::busy) {
        std::vector<std::string> names;
        const auto first = std::find(path_.begin(), path_.end(), value);
        std::transform(first, path_.end(), std::back_inserter(names),
                       [&](ValueId one) { return quoted(name_of(one)); });
        const TensorOverride given = in_.options.overrides->of(name_of(value));
        fail("{}: copy: expected tensors that do not lead back to themselves, found {}",
             given.empty() ? "override" : in_.options.overrides->label(given.from.front()),
             join(names, " -> "));
    }
    states_[value] = State::busy;
    const TensorOverride given = in_.options.overrides->of(name_of(value));
    results_[value] = decide(value, given, remarks_, parameter_encoder_);
    if (!given.empty()) remark_own_encoding(value, results_[value]);
    states_[value] = State::done;
    path_.pop_back();
    return results_[value];
}

Encoded Resolver::decide(ValueId value, const TensorOverride& given, Remarks& remarks,
                         ParameterEncoder& parameters) {
    if (given.copy) return copied(value, given);
    const auto parameter = parameter_of_.find(value);
    if (parameter != parameter_of_.end()) {
        const Tensor& constant = *in_.constant(value);
        Encoded result = parameters.encode(*parameter->second, constant, given);
        if (!result.entry && !given.skip) result = bias(*parameter->second, std::move(result), remarks);
        constant.release_pages();
        return result;
    }
    const bool in_base =
        in_.options.base->find(name_of(value)) != nullptr && !in_.options.base->range_alone(name_of(value));
    if (in_.options.tidl != nullptr && in_.options.tidl->swallowed_by(value) != no_value) {
        const TidlTensors& tidl = *in_.options.tidl;
        Encoded none;
        none.decision.tensor = name_of(value);
        none.decision.rules = in_.options.activations;
        none.decision.no_encoding = fmt::format(
            "target '{}' has no such tensor: it lies inside the {}, whose output is {}", in_.target.name,
            tidl.describe(*tidl.layers().around(value)), quoted(name_of(tidl.swallowed_by(value))));
        return none;
    }
    if (in_.fusions.vanishes(value) && !in_base) {
        Encoded none;
        none.decision.tensor = name_of(value);
        none.decision.rules = in_.options.activations;
        none.decision.no_encoding = fmt::format("target '{}' fuses it into {}", in_.target.name,
                                                in_.fusions.label(*in_.fusions.around(value)));
        return none;
    }
    if (follows(value, given)) {
        const Encoded& source = final(sharing_.source(value));
        if (source.entry) return shared(value, source);
    }
    return own(value, given, remarks);
}

Encoded Resolver::bias(const Parameter& parameter, Encoded none, Remarks& remarks) {
    if (!in_.options.bias_bits) return none;
    const std::string& name = name_of(parameter.value);
    std::optional<TensorEncoding> entry;
    for (const ParameterUse& use : parameter.uses) {
        const std::optional<BiasOperands> operands = bias_operands(use, in_.graph, in_.constant, in_.target);
        if (!operands) return none;
        const std::optional<TensorEncoding>& data = final(operands->data).entry;
        const std::optional<TensorEncoding>& weight = final(operands->weight).entry;
        if (!data || !weight || data->encodings.size() != 1 || weight->encodings.empty() ||
            weight->per_block()) {
            remarks.add(fmt::format("{}: no encoding for this bias: the input or the weight of {} has none",
                                    quoted(name), label(in_.graph, *use.node)));
            return none;
        }
        TensorEncoding found = encode_bias(name, *in_.constant(parameter.value), data->encodings.front(),
                                           *weight, in_.options, remarks);
        if (entry && *entry != found) {
            remarks.add(
                fmt::format("{}: no encoding for this bias: it is that of several layers, with other scales",
                            quoted(name)));
            return none;
        }
        entry = std::move(found);
    }
    none.decision.kind = Decision::Kind::bias;
    none.decision.method = none.decision.origin = entry->origin;
    none.decision.no_encoding.clear();
    none.decision.by_rules = false;
    none.decision.rules.bits = *in_.options.bias_bits;
    for (const Encoding& encoding : entry->encodings)
        none.decision.ranges.push_back({encoding.min, encoding.max});
    none.entry = std::move(entry);
    return none;
}

Encoded Resolver::copied(ValueId value, const TensorOverride& given) {
    const std::string label = in_.options.overrides->label(given.from.front());
    const ValueId from = in_.graph.find(*given.copy);
    const bool known = from != no_value && (is_activation(from) || parameter_of_.contains(from));
    if (!known)
        fail("{}: copy: expected a tensor that gets an encoding, found '{}'", label, printable(*given.copy));
    const Encoded& source = final(from);
    if (!source.entry) {
        fail("{}: copy: expected a tensor that gets an encoding, found '{}': {}", label,
             printable(*given.copy), source.decision.no_encoding);
    }
    check_copy(value, *source.entry, *given.copy, label);
    Encoded result = source;
    result.entry->tensor = name_of(value);
    result.entry->origin = "override";
    result.decision.tensor = name_of(value);
    result.decision.method = fmt::format("copy of {}", quoted(*given.copy));
    result.decision.origin = "override";
    result.decision.overrides = encoder_.labels(given);
    result.decision.by_rules = false;
    result.decision.notes.clear();
    return result;
}

// Widths and channels that the tensor cannot have are an Error.
void Resolver::check_copy(ValueId value, const TensorEncoding& entry, const std::string& from,
                          const std::string& label) const {
    const auto parameter = parameter_of_.find(value);
    const bool weight = parameter != parameter_of_.end() && is_weight(*parameter->second);
    const std::vector<int>& widths = weight ? in_.target.weights.widths : in_.target.activations.widths;
    if (entry.type == CodeType::integer &&
        std::find(widths.begin(), widths.end(), entry.width()) == widths.end()) {
        fail("{}: copy: expected one of {} bits, which target '{}' takes for '{}', found '{}' of {}", label,
             fmt::join(widths, ", "), in_.target.name, printable(name_of(value)), printable(from),
             entry.width());
    }
    if (entry.encodings.size() <= 1) return;
    const Tensor* constant = in_.constant(value);
    const auto axis = static_cast<std::size_t>(entry.axis.value_or(0));
    const bool fits = constant != nullptr && !entry.per_block() && axis < constant->shape().size() &&
                      constant->shape()[axis] == static_cast<std::int64_t>(entry.encodings.size());
    if (fits) return;
    fail("{}: copy: expected channels that fit '{}', found '{}' with {} of them", label,
         printable(name_of(value)), printable(from), entry.encodings.size());
}

Encoded Resolver::shared(ValueId value, const Encoded& source) const {
    Encoded result = source;
    const Node* node = producer_of(in_.graph, value);
    const SharingRule* rule = in_.target.sharing_rule(node->op_type);
    result.entry->tensor = name_of(value);
    result.entry->origin = "shared";
    result.decision.tensor = name_of(value);
    result.decision.kind = Decision::Kind::activation;
    result.decision.method = fmt::format("shared with {}", quoted(name_of(sharing_.source(value))));
    result.decision.origin = "shared";
    result.decision.overrides.clear();
    result.decision.notes = {
        fmt::format("target '{}', {}: {}", in_.target.name, node->op_type, rule->evidence.source)};
    result.decision.by_rules = false;
    return result;
}

Encoded Resolver::own(ValueId value, const TensorOverride& given, Remarks& remarks) const {
    const std::string& name = name_of(value);
    const MethodChoice& choice = in_.options.methods.of(name);
    std::optional<TensorSamples> samples;
    if (in_.values.counted(value)) samples.emplace(in_.statistics, in_.values.place(value));
    const auto shared_range = shared_ranges_.find(value);
    const Node* node = producer_of(in_.graph, value);
    TensorTask task{
        name,
        Decision::Kind::activation,
        in_.options.activations,
        in_.target.activations.widths,
        to_string(choice),
        choice.method->name(),
        [&](const GridRules& grid) { return samples ? choice.choose(*samples, grid) : std::nullopt; },
        samples ? without_value : "it was not counted",
        samples ? &samples->statistics() : nullptr,
        node != nullptr && node->domain.empty() ? in_.target.fixed_rule(node->op_type) : nullptr,
        in_.options.base->find(name)};
    if (shared_range != shared_ranges_.end()) {
        task.method = fmt::format("{}, united with what shares {}", task.method,
                                  quoted(name_of(shared_range->second.output)));
        task.origin = "shared";
        task.choose = [&](const GridRules&) { return std::optional(shared_range->second.range); };
    }
    if (in_.options.tidl != nullptr) ask_tidl(value, samples ? &samples->statistics() : nullptr, task);
    if (task.base != nullptr && task.base->encodings.size() > 1) {
        remarks.add(fmt::format("{}: the base's {} encodings are none of an activation: encoded anew",
                                quoted(name), task.base->encodings.size()));
        task.base = nullptr;
    }
    if (samples && !given.skip) check_values(name, samples->statistics(), in_.options, remarks);
    Encoded result = encoder_.encode(task, given, remarks);
    if (in_.options.tidl != nullptr && result.entry && !result.entry->encodings.empty())
        result.decision.notes.push_back(tidl_scale_text(result.entry->encodings.front()));
    if (const Fusion* fusion = in_.fusions.around(value)) {
        result.decision.notes.push_back(fmt::format(
            "{} fused into {}", fusion->pattern->keeps_entries ? "it may be" : "the target has it",
            in_.fusions.label(*fusion)));
    }
    return result;
}

// The grid by TIDL's layers; the range of a Clip where the model has one, the extremes of a network's input.
void Resolver::ask_tidl(ValueId value, const TensorStatistics* statistics, TensorTask& task) const {
    const TidlTensors& tidl = *in_.options.tidl;
    task.grid = tidl.grid(value, task.grid);
    if (const std::optional<Range> carried = tidl.carried(value)) {
        task.method = "the model's own Clip";
        task.origin = "clip";
        task.choose = [range = *carried](const GridRules&) { return std::optional(range); };
        task.without.clear();
    } else if (tidl.is_input(value) && statistics != nullptr) {
        task.method = "minmax, as TIDL takes it for a network's input";
        task.choose = [statistics](const GridRules&) { return statistics->extremes; };
    }
}

// Where an override gives a tensor that shares another one's encoding one of its own.
void Resolver::remark_own_encoding(ValueId value, const Encoded& decided) {
    const ValueId source = sharing_.source(value);
    if (source == no_value || !decided.entry || states_[source] != State::done) return;
    if (same_encodings(decided.entry, results_[source].entry)) return;
    remarks_.add(
        fmt::format("{}: {} gives it an encoding of its own, though target '{}' takes that of {} for {}",
                    quoted(name_of(value)), decided.decision.overrides.front(), in_.target.name,
                    quoted(name_of(source)), producer_of(in_.graph, value)->op_type));
}

void Resolver::share_range(const Sharing::Group& group) {
    std::optional<Range> all;
    std::vector<ValueId> sharing;
    for (const ValueId member : group.members) {
        const TensorOverride given = in_.options.overrides->of(name_of(member));
        if (given.skip || given.copy || !is_activation(member) || in_.fusions.vanishes(member)) continue;
        Remarks said_later;
        const Encoded decided = own(member, given, said_later);
        if (!decided.entry || decided.entry->encodings.empty()) continue;
        const std::string& origin = decided.decision.origin;
        const bool chosen = origin != "base" && origin != "fixed" && decided.decision.method != "base" &&
                            !given.range && !given.step;
        const Range range = decided.decision.ranges.front();
        if (chosen) sharing.push_back(member);
        all = all ? Range{std::min(all->min, range.min), std::max(all->max, range.max)} : range;
    }
    if (group.members.size() < 2 || !all) return;
    for (const ValueId member : sharing) shared_ranges_.emplace(member, SharedRange{*all, group.output});
}

Resolution Resolver::resolve() {
    for (const Sharing::Group& group : sharing_.groups()) share_range(group);
    Resolution resolution;
    for (const ValueId value : values_in_order(in_.graph)) {
        if (!is_activation(value)) continue;
        const Encoded& decided = final(value);
        resolution.decisions.push_back(decided.decision);
        if (decided.entry) {
            resolution.set.activations.push_back(*decided.entry);
        } else {
            resolution.reasons.emplace(name_of(value), decided.decision.no_encoding);
            if (decided.decision.no_encoding == without_value)
                resolution.without_data.push_back(name_of(value));
        }
    }
    for (const Parameter& parameter : in_.parameters) {
        const Encoded& decided = final(parameter.value);
        resolution.decisions.push_back(decided.decision);
        if (decided.entry) {
            resolution.set.parameters.push_back(*decided.entry);
        } else {
            resolution.reasons.emplace(name_of(parameter.value), decided.decision.no_encoding);
        }
    }
    parameter_encoder_.finish();
    return resolution;
}

std::string Resolver::why_unheeded(std::size_t index) const {
    const Override& one = in_.options.overrides->at(index);
    for (ValueId value = 0; value < in_.graph.values.size(); ++value) {
        const std::string& name = name_of(value);
        if (one.pattern != name && !glob_match(one.pattern, name)) continue;
        const std::vector<std::size_t> from = in_.options.overrides->of(name).from;
        if (states_[value] != State::done)
            return fmt::format("{} holds no floating-point numbers, or meets no activation", quoted(name));
        if (std::find(from.begin(), from.end(), index) == from.end())
            return fmt::format("for {} stronger overrides hold", quoted(name));
        if (!results_[value].entry)
            return fmt::format("{}: {}", quoted(name), results_[value].decision.no_encoding);
        return fmt::format("{} has the same encoding without it", quoted(name));
    }
    return "it matches nothing";
}

std::vector<std::string> Resolver::unheeded_overrides() {
    const OverrideTable& overrides = *in_.options.overrides;
    std::vector<bool> heeded(overrides.size(), false);
    Remarks said_already;
    ParameterEncoder parameters(in_.graph, in_.target, in_.options, in_.statistics.header().counter,
                                said_already);
    for (ValueId value = 0; value < in_.graph.values.size() && overrides.size() > 0; ++value) {
        if (states_[value] != State::done) continue;
        for (const std::size_t index : overrides.of(name_of(value)).from) {
            if (heeded[index]) continue;
            const Encoded without =
                decide(value, overrides.of(name_of(value), index), said_already, parameters);
            heeded[index] = !same_encodings(without.entry, results_[value].entry);
        }
    }
    std::vector<std::string> remarks;
    for (std::size_t index = 0; index < heeded.size(); ++index) {
        if (heeded[index]) continue;
        remarks.push_back(fmt::format("{} changed nothing for target '{}': {}", overrides.label(index),
                                      in_.target.name, why_unheeded(index)));
    }
    return remarks;
}

}  // namespace qcalib
