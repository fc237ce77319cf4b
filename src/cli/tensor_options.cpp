#include "cli/tensor_options.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "target/needed_tensors.h"

namespace qcalib {

namespace {

const std::vector<std::string> statistics_choices = {"full", "extremes"};

bool may_be_float(const Value& value) {
    return value.declared_type == DataType::undefined || is_floating(value.declared_type);
}

void add_matching(const std::string& pattern, const Graph& graph, TensorNames::value_type& names) {
    std::vector<std::string> all;
    bool any = false;
    for (const Value& value : graph.values) {
        if (!may_be_float(value)) continue;
        all.push_back(value.name);
        if (!glob_match(pattern, value.name)) continue;
        names.insert(value.name);
        any = true;
    }
    if (any) return;
    const ValueId other = graph.find(pattern);
    if (other != no_value) {
        fail("--tensors: expected a float tensor, found '{}', which is {}", printable(pattern),
             name_of(graph.values[other].declared_type));
    }
    fail("--tensors: no float tensor of the model matches '{}'{}", printable(pattern),
         did_you_mean(pattern, all));
}

// Names of what the emission's target needs and is not kept.
void check_kept(const TensorNames& names, const Graph& graph, const Target& target) {
    constexpr std::size_t most = 5;
    std::vector<std::string> lacking;
    for (const std::string& name : needed_tensors(graph, target)) {
        const Value& value = graph.values[graph.find(name)];
        if (is_floating(value.declared_type) && !names->contains(name)) {
            lacking.push_back(fmt::format("'{}'", printable(name)));
        }
    }
    if (lacking.empty()) return;
    const std::size_t count = lacking.size();
    if (count > most) lacking.resize(most);
    fail("--tensors: target '{}' needs {} more: {}{}: add --tensors target", target.name, count,
         join(lacking, ", "), count > most ? ", ..." : "");
}

// Whether the patterns of methods can match a tensor of the model at all.
void check_patterns(const Graph& graph, const Emission& emission, const AssignmentOptions& assignment) {
    std::vector<std::string> names;
    for (const Value& value : graph.values) names.push_back(value.name);
    activation_methods(assignment, emission.target).check_patterns(names, "--method");
    weight_methods(assignment, emission.target).check_patterns(names, "--weight-method");
}

void check_counted(const Emission& emission, const AssignmentOptions& assignment) {
    const MethodTable methods = activation_methods(assignment, emission.target);
    const MethodChoice* choice = methods.needing_histogram();
    if (choice == nullptr) return;
    fail("--statistics: method '{}' needs histograms, which 'extremes' leaves out: use --statistics full",
         choice->method->name());
}

}  // namespace

void TensorOptions::add_to(CLI::App& app) {
    const std::string group = "Statistics";
    app.add_option("--statistics", settings_.statistics,
                   "full, or extremes: least and greatest values alone, for methods that need no more")
        ->group(group)
        ->capture_default_str();
    app.add_option("--tensors", settings_.tensors,
                   "Whose statistics are kept: all, target (what the targets of --emit need), or a name with "
                   "* and ?; "
                   "may be given again")
        ->group(group)
        ->allow_extra_args(false)
        ->capture_default_str();
    app.add_flag("--no-derivation", settings_.no_derivation,
                 "Count every tensor, also where its statistics follow from another's (the file is the same)")
        ->group(group);
}

TensorNames TensorOptions::names(const Graph& graph, std::span<const Emission> emissions) const {
    if (std::find(settings_.tensors.begin(), settings_.tensors.end(), "all") != settings_.tensors.end()) {
        if (settings_.tensors.size() > 1) fail("--tensors: expected 'all' alone, found more beside it");
        return std::nullopt;
    }
    TensorNames::value_type names;
    for (const std::string& text : settings_.tensors) {
        if (text != "target") {
            add_matching(text, graph, names);
            continue;
        }
        if (emissions.empty()) fail("--tensors target: expected --emit to say for which targets, found none");
        for (const Emission& emission : emissions) {
            const std::vector<std::string> needed = needed_tensors(graph, emission.target);
            names.insert(needed.begin(), needed.end());
        }
    }
    for (const Emission& emission : emissions) check_kept(names, graph, emission.target);
    return names;
}

void TensorOptions::apply(const Graph& graph, std::span<const Emission> emissions,
                          const AssignmentOptions& assignment, CalibrationOptions& options) const {
    if (std::find(statistics_choices.begin(), statistics_choices.end(), settings_.statistics) ==
        statistics_choices.end()) {
        fail("--statistics: expected full or extremes, found '{}'{}", printable(settings_.statistics),
             did_you_mean(settings_.statistics, statistics_choices));
    }
    options.counter.extremes_only = settings_.statistics == "extremes";
    options.derive = !settings_.no_derivation;
    options.tensors = names(graph, emissions);
    for (const Emission& emission : emissions) {
        check_patterns(graph, emission, assignment);
        if (options.counter.extremes_only) check_counted(emission, assignment);
    }
    if (!options.tensors) return;
    std::vector<std::string> given = settings_.tensors;
    std::sort(given.begin(), given.end());
    for (const std::string& text : given) options.settings += "\ntensors=" + text;
}

}  // namespace qcalib
