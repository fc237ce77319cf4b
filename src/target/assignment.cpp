#include "target/assignment.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "target/circle_assignment.h"
#include "target/counted_values.h"
#include "target/emission_remarks.h"
#include "target/fusions.h"
#include "target/needed_tensors.h"
#include "target/parameters.h"
#include "target/resolver.h"
#include "target/tidl_findings.h"
#include "target/tidl_rules.h"
#include "target/tidl_tensors.h"

namespace qcalib {

namespace {

int resolve_bits(std::optional<int> chosen, int default_bits, const std::vector<int>& widths,
                 std::string_view flag, const Target& target) {
    const int bits = chosen.value_or(default_bits);
    if (std::find(widths.begin(), widths.end(), bits) != widths.end()) return bits;
    fail("{}: expected one of {}, which target '{}' takes, found {}", flag, fmt::join(widths, ", "),
         target.name, bits);
}

double resolve_least_range(const AssignmentOptions& options, const Target& target) {
    if (options.least_range_name.empty()) return options.least_range.value_or(target.least_range);
    std::vector<std::string> names;
    for (const NamedLeastRange& one : target.least_ranges) {
        if (one.name == options.least_range_name) return one.value;
        names.push_back(one.name);
    }
    fail("--least-range: expected a number above 0{}, found '{}'{}",
         names.empty()
             ? ""
             : fmt::format(" or one of {}, which target '{}' names", join(names, ", "), target.name),
         printable(options.least_range_name), did_you_mean(options.least_range_name, names));
}

std::optional<int> resolve_bias_bits(const AssignmentOptions& options, const Target& target) {
    if (!options.bias_bits) return std::nullopt;
    if (!target.biases) fail("--bias-bits: target '{}' takes no encodings for biases", target.name);
    return resolve_bits(options.bias_bits, 0, target.biases->widths, "--bias-bits", target);
}

ResolvedOptions resolve(const AssignmentOptions& options, const Target& target, Remarks& remarks) {
    GridRules grid = target.grid_rules();
    grid.least_range = resolve_least_range(options, target);
    grid.power_of_two = options.power_of_two.value_or(target.power_of_two);
    grid.include_zero = options.include_zero.value_or(target.include_zero);
    ResolvedOptions resolved{
        nullptr, nullptr, activation_methods(options, target), weight_methods(options, target), grid, grid};
    resolved.bias_bits = resolve_bias_bits(options, target);
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

// What check_complete() needs to know of a value.
using NeedsStatistics = std::function<bool(ValueId)>;

void check_complete(const Graph& graph, const StatisticsFile& statistics, const Target& target,
                    const NeedsStatistics& needs_statistics) {
    constexpr std::size_t most = 10;
    std::vector<std::string> shown;
    std::size_t missing = 0;
    for (const ValueId value : values_in_order(graph)) {
        if (!needs_statistics(value)) continue;
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

// TIDL's symmetric styles have no asymmetric codes.
void check_tidl_options(const AssignmentOptions& options, const Target& target) {
    if (!target.tidl->symmetric()) return;
    const auto refuse = [&](std::string_view flag) {
        fail(
            "{}: target '{}' has symmetric codes alone (quantization_scale_type 0 and 1, TDA4VM); "
            "'tidl-asym' has others",
            flag, target.name);
    };
    if (options.symmetric_activations == false) refuse("--symmetric-activations no");
    if (options.symmetric_weights == false) refuse("--symmetric-weights no");
}

}  // namespace

void check_form(const Graph& graph, const Target& target) {
    const bool circle = is_circle_graph(graph);
    if (circle == (target.circle != nullptr) || graph.nodes.empty()) return;
    if (circle) {
        fail(
            "target '{}': expected an ONNX model, found one of a .circle or .tflite file, whose operators "
            "its "
            "rules do not know (target 'circle' does)",
            target.name);
    }
    fail(
        "target '{}': expected a .circle or .tflite model, found an ONNX one: q-implant takes tensors by the "
        "names and layouts that the converter gave them, so convert the model (one-import-onnx) and "
        "calibrate "
        "the file it makes; `qcalib map` carries encodings over from the ONNX model",
        target.name);
}

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
    check_form(graph, target);
    if (target.circle != nullptr) check_circle_options(options, target);
    ResolvedOptions resolved = resolve(options, target, remarks);
    const std::optional<TidlTensors> tidl =
        target.tidl == nullptr ? std::nullopt
                               : std::optional<TidlTensors>(std::in_place, graph, constant, target);
    if (tidl) check_tidl_options(options, target);
    const OverrideTable overrides(
        tidl ? tidl_overrides(options.overrides, graph, *tidl, target, resolved.activations.bits, remarks)
             : options.overrides,
        target.name, target.scale_is_multiplier);
    resolved.tidl = tidl ? &*tidl : nullptr;
    const BaseEncodings no_base;
    const BaseTable base(options.base ? *options.base : no_base);
    resolved.overrides = &overrides;
    resolved.base = &base;
    check_counted(statistics, resolved.methods);
    std::vector<std::string> names;
    for (const Value& value : graph.values) names.push_back(value.name);
    overrides.check_names(names);
    if (target.circle != nullptr) {
        resolved.weights.bits = resolved.activations.bits;
        resolved.activations.scheme = resolved.weights.scheme =
            resolved.activations.bits == 8 ? Scheme::asymmetric : Scheme::symmetric;
        return assign_circle_encodings(graph, statistics, target, resolved, remarks, decisions);
    }

    const CountedValues values(graph, constant, statistics);
    const Fusions fusions(graph, constant, target);
    const std::vector<bool> fused = fused_values(graph, target);
    check_complete(graph, statistics, target, [&](ValueId value) {
        if (!values.floats()[value] || values.counted(value) || constant(value) != nullptr) return false;
        if (fused[value] || fusions.vanishes(value)) return false;
        if (tidl && (tidl->swallowed_by(value) != no_value || tidl->carried(value))) return false;
        const std::string& name = graph.values[value].name;
        const TensorOverride given = overrides.of(name);
        const TensorEncoding* entry = base.find(name);
        const bool explained = given.range || given.skip || given.copy ||
                               (entry != nullptr && !entry->encodings.empty() && !given.step);
        return !explained;
    });
    check_constants(graph, constant, statistics, values);
    const std::vector<Parameter> parameters =
        find_parameters(graph, constant, values.computed(), target, fusions);
    check_patterns(graph, values, parameters, resolved);

    Resolver resolver({graph, constant, statistics, target, resolved, values, fusions, parameters}, remarks);
    Resolution resolution = resolver.resolve();
    add_without_encoding(resolution.without_data, remarks);
    for (std::string& remark : resolver.unheeded_overrides()) remarks.add(std::move(remark));
    base.remark_dropped(names, resolution.set, resolution.reasons, remarks);
    for (std::string& remark : emission_remarks(graph, fusions, resolution.set))
        remarks.add(std::move(remark));
    if (tidl) {
        add_tidl_findings({graph, constant, statistics, target, options, *tidl, resolution.set},
                          resolution.decisions, remarks);
    }
    if (decisions != nullptr) {
        std::move(resolution.decisions.begin(), resolution.decisions.end(), std::back_inserter(*decisions));
    }
    return std::move(resolution.set);
}

}  // namespace qcalib
