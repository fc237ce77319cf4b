#include "simulate/diagnosis.h"

#include <algorithm>
#include <array>
#include <functional>

namespace qcalib {

namespace {

constexpr double partly = 0.5;  // of the squared distance that is left
constexpr double equal = 0.01;  // of the squared distance at first: nearer to each other is the same

struct Change {
    std::size_t group = 0;  // changes of one switch
    SwitchChange change;
    std::function<void(SimulationSwitches&)> apply;
};

template <typename Enum, std::size_t count>
void add_changes(std::vector<Change>& changes, Enum SimulationSwitches::*field, const SimulationSwitches& now,
                 std::string_view name, const std::array<std::string_view, count>& values,
                 const std::array<std::string_view, count>& texts) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = static_cast<Enum>(i);
        if (now.*field == value) continue;
        const std::size_t group = std::hash<std::string_view>()(name);
        changes.push_back({group,
                           {std::string(name), std::string(values[i]), std::string(texts[i])},
                           [field, value](SimulationSwitches& switches) { switches.*field = value; }});
    }
}

std::vector<Change> possible_changes(const SimulationSwitches& now, bool measured) {
    std::vector<Change> changes;
    add_changes(changes, &SimulationSwitches::weights, now, "weights", weight_source_names,
                {"weights encoded as the file of encodings says",
                 "weights encoded anew from those in the model, whatever the file of encodings says",
                 "weights encoded anew, after they were clipped to the ends of the given grids"});
    if (measured) {
        add_changes(changes, &SimulationSwitches::inputs, now, "input-ranges", input_range_names,
                    {"ranges of the inputs as given",
                     "ranges of the inputs, and of what is computed of them without weights, measured on the "
                     "converter's own list"});
    }
    add_changes(changes, &SimulationSwitches::bias, now, "bias", bias_form_names,
                {"biases in float", "biases as 32-bit integers at the scale of input times weight",
                 "biases as 8-bit integers"});
    add_changes(
        changes, &SimulationSwitches::pre_activations, now, "pre-activations", pre_activation_names,
        {"values before a Relu or Clip quantized themselves", "values before a Relu or Clip not quantized"});
    add_changes(changes, &SimulationSwitches::rounding, now, "rounding", rounding_names,
                {"halves rounded up", "halves rounded away from zero", "halves rounded to even"});
    return changes;
}

bool nearer(const TriedChanges& a, const TriedChanges& b) {
    return a.errors.squared_steps < b.errors.squared_steps;
}

// Of those with so many changes, the nearest and what is as near.
std::vector<TriedChanges> best_of(const std::vector<TriedChanges>& tried, std::size_t changes,
                                  double tolerance) {
    std::vector<TriedChanges> found;
    for (const TriedChanges& one : tried) {
        if (one.changes.size() == changes) found.push_back(one);
    }
    std::ranges::stable_sort(found, nearer);
    if (found.empty()) return found;
    const double nearest = found.front().errors.squared_steps;
    std::erase_if(found, [&](const auto& one) { return one.errors.squared_steps > nearest + tolerance; });
    return found;
}

void judge(Diagnosis& diagnosis) {
    const DumpErrors& before = diagnosis.tried.front().errors;
    if (before.different == 0) {
        diagnosis.verdict = Diagnosis::Verdict::nothing_to_explain;
        return;
    }
    for (const std::size_t changes : {std::size_t{1}, std::size_t{2}}) {
        std::vector<TriedChanges> best = best_of(diagnosis.tried, changes, 1e-6 * before.squared_steps);
        if (best.empty() || best.front().errors.different > 0) continue;
        diagnosis.verdict = Diagnosis::Verdict::explained;
        diagnosis.findings = std::move(best);
        return;
    }
    std::vector<TriedChanges> single = best_of(diagnosis.tried, 1, equal * before.squared_steps);
    std::vector<TriedChanges> pair = best_of(diagnosis.tried, 2, equal * before.squared_steps);
    // What quantizes less is nearer to everything: the elements with another code must be fewer, too.
    const auto near_enough = [&](const std::vector<TriedChanges>& found) {
        if (found.empty()) return false;
        const DumpErrors& left = found.front().errors;
        return left.squared_steps <= (1 - partly) * before.squared_steps &&
               static_cast<double>(left.different) <= (1 - partly) * static_cast<double>(before.different);
    };
    if (!near_enough(pair) && !near_enough(single)) return;
    diagnosis.verdict = Diagnosis::Verdict::partly;
    // A second change has to be worth it.
    const bool one_will_do =
        near_enough(single) && single.front().errors.squared_steps <=
                                   pair.front().errors.squared_steps + equal * before.squared_steps;
    diagnosis.findings = one_will_do ? std::move(single) : std::move(pair);
}

}  // namespace

Diagnosis diagnose(const SimulationRun& run, const DumpFolder& against) {
    const std::vector<Change> changes = possible_changes(run.switches, !run.measured.empty());
    Diagnosis diagnosis;
    std::vector<Variant> variants;
    const SimulatedEncodings base = resolve_encodings(run.model, run.given, run.switches, run.measured);
    const auto add = [&](std::span<const Change* const> chosen) {
        SimulationSwitches switches = run.switches;
        TriedChanges tried;
        for (const Change* change : chosen) {
            change->apply(switches);
            tried.changes.push_back(change->change);
        }
        diagnosis.tried.push_back(std::move(tried));
        const SimulatedEncodings encodings = resolve_encodings(run.model, run.given, switches, run.measured);
        variants.push_back(
            {"", make_quantization(run.model, encodings, switches.rounding, switches.bias, run.remarks)});
    };
    add({});
    for (const Change& change : changes) add(std::array{&change});
    for (std::size_t i = 0; i < changes.size(); ++i) {
        for (std::size_t k = i + 1; k < changes.size(); ++k) {
            if (changes[i].group != changes[k].group) add(std::array{&changes[i], &changes[k]});
        }
    }
    VariantSettings settings;
    settings.compared.resize(run.model.graph()->values.size());
    settings.against = &against;
    settings.steps = steps_of(run.model, base);
    settings.carries = run.carries;
    const std::vector<VariantErrors> errors = run_variants(run, variants, settings, nullptr);
    for (std::size_t i = 0; i < errors.size(); ++i) {
        for (const DumpErrors& value : errors[i].dumps) diagnosis.tried[i].errors.add(value);
    }
    judge(diagnosis);
    std::stable_sort(diagnosis.tried.begin() + 1, diagnosis.tried.end(), nearer);
    return diagnosis;
}

}  // namespace qcalib
