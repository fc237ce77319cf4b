#include "simulate/encodings.h"

#include <algorithm>
#include <cmath>

#include "audit/tensor_names.h"
#include "base/error.h"
#include "base/text.h"
#include "simulate/chain_scales.h"
#include "simulate/grid_walk.h"

namespace qcalib {

namespace {

GridRules arithmetic_of(const Target& target) {
    return target.grid_rules();
}

GridRules activation_rules(const Target& target) {
    GridRules rules = arithmetic_of(target);
    rules.bits = target.activations.bits;
    if (target.activations.symmetric) {
        rules.scheme = target.activations.unsigned_symmetric ? Scheme::unsigned_symmetric : Scheme::symmetric;
    }
    return rules;
}

double greatest_end(const Range& range) {
    return std::max(std::abs(range.min), std::abs(range.max));
}

// The same range on another grid. What was nudged may have reached half a step further.
Encoding with_bits(const Encoding& encoding, GridRules rules) {
    const bool symmetric = encoding.symmetric && encoding.min < 0;
    rules.scheme = symmetric ? Scheme::symmetric : Scheme::asymmetric;
    const double nudge = symmetric || encoding.min == 0 ? 0 : encoding.scale / 2;
    const Range range =
        symmetric ? Range{-encoding.max, encoding.max} : Range{encoding.min - nudge, encoding.max + nudge};
    Encoding result = encode(range, rules);
    result.symmetric = encoding.symmetric;
    return result;
}

// Decides the encodings of one simulation, value by value in the order of the graph.
class Resolver {
  public:
    Resolver(const SimulatedModel& model, const GivenEncodings& given, const SimulationSwitches& switches,
             const MeasuredRanges& measured)
        : model_(model), given_(given), switches_(switches), measured_(measured) {
        for (std::size_t i = 0; i < model.parameters().size(); ++i) {
            const Node* reader = model.parameters()[i].uses.front().node;
            parameters_of_[static_cast<std::size_t>(reader - model.graph()->nodes.data())].push_back(i);
        }
    }

    SimulatedEncodings run() {
        const Graph& graph = *model_.graph();
        for (const ValueId input : graph.inputs) add_activation(input);
        for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
            for (const std::size_t place : parameters_of_[index]) add_parameter(model_.parameters()[place]);
            for (const ValueId output : graph.nodes[index].outputs) {
                if (output != no_value) add_activation(output);
            }
        }
        return std::move(result_);
    }

  private:
    const TensorEncoding* given(ValueId value) const {
        const auto found = given_.by_value.find(value);
        return found == given_.by_value.end() || found->second.encodings.empty() ? nullptr : &found->second;
    }

    void add_activation(ValueId value) {
        if (!model_.is_activation(value) || model_.fusions().vanishes(value)) return;
        if (model_.is_inside_layer(value)) return;
        if (switches_.pre_activations == PreActivations::skipped && model_.is_pre_activation(value)) return;
        std::optional<TensorEncoding> encoding = activation_encoding(value);
        if (!encoding) return;
        encoding->tensor = model_.graph()->values[value].name;
        by_value_.emplace(value, *encoding);
        result_.push_back({value, SimulatedEncoding::Kind::activation, std::move(*encoding), {}});
    }

    std::optional<TensorEncoding> activation_encoding(ValueId value) const {
        const auto given_place = given_.by_value.find(value);
        const bool has_entry = given_place != given_.by_value.end();
        if (has_entry && given_place->second.type == CodeType::floating) return given_place->second;
        if (switches_.inputs == InputRanges::list && model_.is_near_input(value)) {
            if (std::optional<TensorEncoding> found = measured_encoding(value)) return found;
        }
        if (const TensorEncoding* found = given(value)) return *found;
        if (std::optional<TensorEncoding> found = ruled_encoding(value)) return found;
        return measured_encoding(value);
    }

    std::optional<TensorEncoding> measured_encoding(ValueId value) const {
        const auto found = measured_.find(value);
        if (found == measured_.end()) return std::nullopt;
        GridRules rules = activation_rules(model_.target());
        const auto entry = given_.by_value.find(value);
        if (entry != given_.by_value.end() && entry->second.width() >= 2) rules.bits = entry->second.width();
        const Range& range = found->second;
        const Encoding grid =
            model_.target().simulation.has_chain
                ? tidl_grid(greatest_end(range), rules.bits, range.min < 0, model_.target().power_of_two)
                : encode(range, rules);
        return TensorEncoding{"", {grid}, {}, "measured on the converter's list"};
    }

    // What the target fixes, or takes from the first input.
    std::optional<TensorEncoding> ruled_encoding(ValueId value) const {
        const NodeIndex producer = model_.graph()->values[value].producer;
        if (producer == no_node) return std::nullopt;
        const Node& node = model_.graph()->nodes[producer];
        if (!node.domain.empty()) return std::nullopt;
        const Target& target = model_.target();
        if (const FixedRule* rule = target.fixed_rule(node.op_type)) {
            const FixedRule::Grid* grid = rule->grid(target.activations.bits, target.activations.symmetric);
            if (grid != nullptr) return fixed_encoding(*grid);
        }
        const SharingRule* sharing = target.sharing_rule(node.op_type);
        if (sharing == nullptr || sharing->with != SharingRule::With::first_input || node.inputs.empty())
            return std::nullopt;
        const auto source = by_value_.find(node.inputs[0]);
        if (source == by_value_.end()) return std::nullopt;
        if (source->second.encodings.size() > 1) return std::nullopt;
        return source->second;
    }

    static TensorEncoding fixed_encoding(const FixedRule::Grid& grid) {
        Encoding encoding;
        encoding.bits = grid.bits;
        encoding.scale = grid.step;
        encoding.offset = grid.offset;
        encoding.min = static_cast<double>(grid.offset) * grid.step;
        encoding.max = encoding.min + grid.step * static_cast<double>((std::int64_t{1} << grid.bits) - 1);
        encoding.symmetric = grid.symmetric;
        return TensorEncoding{"", {encoding}, {}, "fixed by the target"};
    }

    void add_parameter(const Parameter& parameter) {
        const bool skipped = std::all_of(parameter.uses.begin(), parameter.uses.end(),
                                         [](const ParameterUse& use) { return use.skipped(); });
        if (skipped || model_.constant(parameter.value)->view().elements() == 0) return;
        const bool weight = is_weight(parameter);
        SimulatedEncoding one;
        one.value = parameter.value;
        one.kind = weight ? SimulatedEncoding::Kind::weight : SimulatedEncoding::Kind::constant;
        const auto entry = given_.by_value.find(parameter.value);
        const TensorEncoding* found = entry == given_.by_value.end() ? nullptr : &entry->second;
        const bool grids = found != nullptr && !found->encodings.empty();
        if (found != nullptr && (found->type == CodeType::floating || found->per_block() ||
                                 (grids && (!weight || switches_.weights == WeightSource::given)))) {
            one.encoding = *found;
        } else {
            if (grids && switches_.weights == WeightSource::clipped) one.clip = *found;
            one.encoding = anew(parameter, grids ? found : nullptr, one.clip);
        }
        one.encoding.tensor = model_.graph()->values[parameter.value].name;
        result_.push_back(std::move(one));
    }

    // Of the extremes of the values, on grids like those given, or by the target's rules.
    TensorEncoding anew(const Parameter& parameter, const TensorEncoding* found,
                        const std::optional<TensorEncoding>& clip) const {
        const Target& target = model_.target();
        GridRules rules = arithmetic_of(target);
        std::optional<int> axis;
        if (found != nullptr) {
            rules.bits = found->width();
            if (found->encodings.front().symmetric) rules.scheme = Scheme::symmetric;
            axis = found->per_channel() && found->encodings.size() > 1 ? found->axis : std::nullopt;
        } else if (is_weight(parameter)) {
            rules.bits = target.weights.bits;
            if (target.weights.symmetric) rules.scheme = Scheme::symmetric;
        } else {
            const bool wide = target.constants.width == ConstantRule::Width::of_activations;
            rules.bits = wide ? target.activations.bits : target.weights.bits;
            if (target.constants.symmetric) rules.scheme = Scheme::symmetric;
        }
        const std::string& name = model_.graph()->values[parameter.value].name;
        Tensor values = *model_.constant(parameter.value);
        if (clip) values = clipped_to(values, *clip);
        TensorEncoding encoding{"", {}, axis, clip ? "of the clipped values" : "of the values"};
        const bool weight_of_chain = target.simulation.has_chain && is_weight(parameter);
        for (const Range& range : weight_ranges(values.view(), axis, name)) {
            encoding.encodings.push_back(
                weight_of_chain ? tidl_grid(greatest_end(range), rules.bits, true, target.power_of_two)
                                : encode(range, rules));
        }
        return encoding;
    }

    const SimulatedModel& model_;
    const GivenEncodings& given_;
    const SimulationSwitches& switches_;
    const MeasuredRanges& measured_;
    std::unordered_map<std::size_t, std::vector<std::size_t>> parameters_of_;  // by first node
    std::unordered_map<ValueId, TensorEncoding> by_value_;                     // of activations
    SimulatedEncodings result_;
};

}  // namespace

namespace {

// Remarks for entries of no tensor; an Error where there are no others.
void refuse_foreign(const std::vector<const TensorEncoding*>& foreign, bool no_other,
                    std::span<const std::string> names, Remarks& remarks) {
    constexpr std::size_t shown = 5;
    const auto text_of = [&](const TensorEncoding& entry) {
        return fmt::format("{}: '{}' is no tensor of the model{}", printable(entry.origin),
                           printable(entry.tensor), did_you_mean(entry.tensor, names));
    };
    if (no_other && !foreign.empty())
        fail("{}, nor is any other of the {} entries", text_of(*foreign.front()), foreign.size());
    for (std::size_t i = 0; i < std::min(shown, foreign.size()); ++i) remarks.add(text_of(*foreign[i]));
    if (foreign.size() > shown)
        remarks.add(fmt::format("{} more entries are for no tensor of the model", foreign.size() - shown));
}

}  // namespace

Encoding tidl_grid(double limit, int bits, bool is_signed, bool power_of_two) {
    if (power_of_two && limit > 0) limit = power_of_two_above(limit);
    const std::int64_t half = std::int64_t{1} << (bits - 1);
    Encoding grid;
    grid.bits = bits;
    grid.symmetric = true;
    grid.scale = 1 / chain_scale(bits, is_signed, limit);
    grid.offset = is_signed ? -half : 0;
    grid.min = static_cast<double>(grid.offset) * grid.scale;
    grid.max = grid.min + static_cast<double>(2 * half - 1) * grid.scale;
    return grid;
}

void put_on_grid(EncodingSet& set, const std::unordered_set<std::string>& ranges, const Target& target) {
    if (!target.simulation.has_chain) return;
    for (TensorEncoding& entry : set.activations) {
        if (!ranges.contains(entry.tensor)) continue;
        for (Encoding& one : entry.encodings) {
            one = tidl_grid(greatest_end(Range{one.min, one.max}), target.activations.bits, one.min < 0,
                            target.power_of_two);
        }
    }
}

GivenEncodings match_encodings(const SimulatedModel& model, const EncodingSet& set, Remarks& remarks) {
    const Graph& graph = *model.graph();
    std::vector<std::string> names;
    for (const Value& value : graph.values) names.push_back(value.name);
    const NameMatcher matcher(names);
    GivenEncodings given;
    std::vector<const TensorEncoding*> foreign;
    for (const auto* entries : {&set.activations, &set.parameters}) {
        for (const TensorEncoding& entry : *entries) {
            const std::optional<std::size_t> place = matcher.match(entry.tensor);
            if (!place) {
                foreign.push_back(&entry);
            } else if (names[*place] == entry.tensor) {
                given.by_value.insert_or_assign(static_cast<ValueId>(*place), entry);
            } else {
                given.by_value.emplace(static_cast<ValueId>(*place), entry);
            }
        }
    }
    refuse_foreign(foreign, given.by_value.empty(), names, remarks);
    for (const ValueId value : model.order()) {
        if (!model.is_activation(value) || model.fusions().vanishes(value)) continue;
        if (model.is_inside_layer(value)) continue;
        if (!given.by_value.contains(value)) given.unencoded.push_back(value);
    }
    return given;
}

SimulatedEncodings resolve_encodings(const SimulatedModel& model, const GivenEncodings& given,
                                     const SimulationSwitches& switches, const MeasuredRanges& measured) {
    return Resolver(model, given, switches, measured).run();
}

TensorEncoding with_bits(const TensorEncoding& encoding, int bits, const Target& target) {
    TensorEncoding result = encoding;
    if (encoding.type == CodeType::floating || encoding.lpbq) return result;
    GridRules rules = arithmetic_of(target);
    rules.bits = bits;
    rules.least_range = 1e-12;  // the range is to stay
    for (Encoding& one : result.encodings) one = with_bits(one, rules);
    return result;
}

}  // namespace qcalib
