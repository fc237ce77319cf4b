#include "target/assignment.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "target/float_values.h"
#include "target/needed_tensors.h"
#include "target/parameters.h"

namespace qcalib {

namespace {

int resolve_bits(std::optional<int> chosen, int default_bits, const std::vector<int>& widths,
                 std::string_view flag, const Target& target) {
    const int bits = chosen.value_or(default_bits);
    if (std::find(widths.begin(), widths.end(), bits) != widths.end()) return bits;
    fail("{}: expected one of {}, which target '{}' takes, found {}", flag, fmt::join(widths, ", "),
         target.name, bits);
}

ResolvedOptions resolve(const AssignmentOptions& options, const Target& target, Remarks& remarks) {
    GridRules grid;
    grid.least_range = options.least_range.value_or(target.least_range);
    grid.power_of_two = options.power_of_two.value_or(target.power_of_two);
    grid.include_zero = options.include_zero.value_or(target.include_zero);
    grid.rounding = target.rounding;
    ResolvedOptions resolved{activation_methods(options, target), weight_methods(options, target), grid,
                             grid};
    resolved.activations.bits = resolve_bits(options.activation_bits, target.activations.bits,
                                             target.activations.widths, "--act-bits", target);
    resolved.weights.bits = resolve_bits(options.weight_bits, target.weights.bits, target.weights.widths,
                                         "--weight-bits", target);
    const bool unsigned_symmetric =
        options.unsigned_symmetric.value_or(target.activations.unsigned_symmetric);
    if (options.symmetric_activations.value_or(target.activations.symmetric)) {
        resolved.activations.scheme = unsigned_symmetric ? Scheme::unsigned_symmetric : Scheme::symmetric;
    }
    if (options.symmetric_weights.value_or(target.weights.symmetric))
        resolved.weights.scheme = Scheme::symmetric;
    resolved.per_channel_weights = options.per_channel_weights.value_or(target.weights.per_channel);
    resolved.nonfinite = options.nonfinite.value_or(target.nonfinite);
    resolved.masks = options.masks.value_or(target.masks);
    if (resolved.per_channel_weights && target.weights.per_channel_symmetric &&
        options.symmetric_weights == false) {
        remarks.add(fmt::format(
            "target '{}': per-channel weights are symmetric though asymmetric was asked for", target.name));
    }
    return resolved;
}

void check_counted(const StatisticsFile& statistics, const MethodTable& methods) {
    if (!statistics.header().counter.extremes_only) return;
    const MethodChoice* choice = methods.needing_histogram();
    if (choice == nullptr) return;
    fail(
        "{}: expected histograms, which method '{}' needs, found extremes alone: calibrate with --statistics "
        "full",
        statistics.path().string(), choice->method->name());
}

// The values of the graph in the order in which they come to be: its inputs, then what each node makes.
std::vector<ValueId> values_in_order(const Graph& graph) {
    std::vector<ValueId> values = graph.inputs;
    for (const Node& node : graph.nodes) {
        std::copy_if(node.outputs.begin(), node.outputs.end(), std::back_inserter(values),
                     [](ValueId output) { return output != no_value; });
    }
    return values;
}

// What the statistics hold of the values of a graph.
class CountedValues {
  public:
    CountedValues(const Graph& graph, const StatisticsFile& statistics) : activations_(graph.values.size()) {
        for (ValueId value = 0; value < graph.values.size(); ++value) {
            const auto found = statistics.find(graph.values[value].name);
            if (!found) continue;
            places_.emplace(value, *found);
            activations_[value] = !statistics.header().tensors[*found].constant;
        }
    }

    bool counted(ValueId value) const { return places_.find(value) != places_.end(); }
    std::size_t place(ValueId value) const { return places_.at(value); }
    const std::vector<bool>& activations() const { return activations_; }

  private:
    std::unordered_map<ValueId, std::size_t> places_;
    std::vector<bool> activations_;
};

void check_complete(const Graph& graph, const ConstantLookup& constant, const StatisticsFile& statistics,
                    const CountedValues& values, const Target& target) {
    const auto known_float = [&](ValueId value) {
        if (values.counted(value)) return true;
        const Tensor* tensor = constant(value);
        return tensor != nullptr && is_floating(tensor->type());
    };
    const std::vector<bool> floats = float_values(graph, known_float);
    const std::vector<bool> fused = fused_values(graph, target);
    constexpr std::size_t most = 10;
    std::vector<std::string> shown;
    std::size_t missing = 0;
    for (const ValueId value : values_in_order(graph)) {
        if (!floats[value] || fused[value] || values.counted(value) || constant(value) != nullptr) continue;
        if (++missing <= most) shown.push_back(fmt::format("'{}'", printable(graph.values[value].name)));
    }
    if (missing == 0) return;
    fail(
        "{}: expected every float tensor that target '{}' encodes, {} not counted: {}{}: calibrate with "
        "--tensors all",
        statistics.path().string(), target.name, missing, join(shown, ", "), missing > most ? ", ..." : "");
}

void check_constants(const Graph& graph, const ConstantLookup& constant, const StatisticsFile& statistics,
                     const CountedValues& values) {
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        if (!values.counted(value) || values.activations()[value] || constant(value) != nullptr) continue;
        fail(
            "{}: '{}' was counted as a constant, found none of that name in the model: expected statistics "
            "of this "
            "model",
            statistics.path().string(), printable(graph.values[value].name));
    }
}

constexpr const char* without_value = "no sample gave it a finite value that is no mask";

// One remark for all of them: a branch that is never taken may have hundreds.
void add_without_encoding(std::span<const std::string> names, Remarks& remarks) {
    constexpr std::size_t most = 5;
    if (names.empty()) return;
    std::vector<std::string> shown;
    for (const std::string& name : names.first(std::min(most, names.size()))) {
        shown.push_back(fmt::format("'{}'", printable(name)));
    }
    const std::size_t more = names.size() - shown.size();
    const std::string all = join(shown, ", ") + (more == 0 ? "" : fmt::format(" and {} more", more));
    remarks.add(fmt::format("{}: no encoding: {}", all, without_value));
}

std::optional<TensorEncoding> encode_activation(const TensorSamples& samples, const ResolvedOptions& options,
                                                Remarks& remarks) {
    check_values(samples.name(), samples.statistics(), options, remarks);
    const MethodChoice& choice = options.methods.of(samples.name());
    const auto range = choice.choose(samples, options.activations);
    if (!range) {
        options.note({samples.name(),
                      Decision::Kind::activation,
                      to_string(choice),
                      {},
                      options.activations,
                      without_value});
        return std::nullopt;
    }
    options.note(
        {samples.name(), Decision::Kind::activation, to_string(choice), {*range}, options.activations, {}});
    return TensorEncoding{samples.name(), {encode(*range, options.activations)}, {}, choice.method->name()};
}

// Patterns of methods have to match something that gets an encoding.
void check_patterns(const Graph& graph, const CountedValues& values, std::span<const Parameter> parameters,
                    const ResolvedOptions& options) {
    std::vector<std::string> activations;
    std::vector<std::string> weights;
    for (const ValueId value : values_in_order(graph)) {
        if (values.activations()[value]) activations.push_back(graph.values[value].name);
    }
    for (const Parameter& parameter : parameters) {
        if (is_weight(parameter)) weights.push_back(graph.values[parameter.value].name);
    }
    options.methods.check_patterns(activations, "--method");
    options.weight_methods.check_patterns(weights, "--weight-method");
}

}  // namespace

MethodTable activation_methods(const AssignmentOptions& options, const Target& target) {
    return {parse_method(target.default_method), options.methods};
}

MethodTable weight_methods(const AssignmentOptions& options, const Target& target) {
    return {parse_method(target.weights.method), options.weight_methods};
}

EncodingSet assign_encodings(const Graph& graph, const ConstantLookup& constant,
                             const StatisticsFile& statistics, const Target& target,
                             const AssignmentOptions& options, Remarks& remarks,
                             std::vector<Decision>* decisions) {
    ResolvedOptions resolved = resolve(options, target, remarks);
    resolved.decisions = decisions;
    check_counted(statistics, resolved.methods);
    const CountedValues values(graph, statistics);
    check_complete(graph, constant, statistics, values, target);
    check_constants(graph, constant, statistics, values);

    const std::vector<Parameter> parameters = find_parameters(graph, constant, values.activations(), target);
    check_patterns(graph, values, parameters, resolved);

    EncodingSet set;
    std::vector<std::string> without;
    for (const ValueId value : values_in_order(graph)) {
        if (!values.activations()[value]) continue;
        const TensorSamples samples(statistics, values.place(value));
        if (auto entry = encode_activation(samples, resolved, remarks)) {
            set.activations.push_back(std::move(*entry));
        } else {
            without.push_back(samples.name());
        }
    }
    add_without_encoding(without, remarks);
    ParameterEncoder encoder(graph, target, resolved, statistics.header().counter, remarks);
    for (const Parameter& parameter : parameters) {
        const Tensor& value = *constant(parameter.value);
        if (auto entry = encoder.encode(parameter, value)) set.parameters.push_back(std::move(*entry));
        value.release_pages();
    }
    encoder.finish();
    return set;
}

}  // namespace qcalib
