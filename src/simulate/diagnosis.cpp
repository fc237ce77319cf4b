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
    bool of_chain = false;  // without an effect where the arithmetic is fake
    SwitchChange change;
    std::function<void(SimulationSwitches&)> apply;
};

template <typename Switches, typename Enum, std::size_t count>
void add_changes(std::vector<Change>& changes, Enum Switches::*field, const SimulationSwitches& now,
                 std::string_view name, const std::array<std::string_view, count>& values,
                 const std::array<std::string_view, count>& texts) {
    constexpr bool of_chain = std::is_same_v<Switches, ChainSwitches>;
    const auto part = [](auto& switches) -> auto& {
        if constexpr (of_chain) {
            return switches.chain;
        } else {
            return switches;
        }
    };
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = static_cast<Enum>(i);
        if (part(now).*field == value) continue;
        const std::size_t group = std::hash<std::string_view>()(name);
        changes.push_back(
            {group,
             of_chain,
             {std::string(name), std::string(values[i]), std::string(texts[i])},
             [field, value, part](SimulationSwitches& switches) { part(switches).*field = value; }});
    }
}

// The assumptions of the integer chain, one value each.
template <typename Add>
void each_of_chain(const Add& add) {
    add(&ChainSwitches::network_input, "network-input", network_input_names,
        std::array<std::string_view, 2>{"inputs on signed codes at a power-of-two scale",
                                        "inputs on codes as their encodings say"});
    add(&ChainSwitches::leading_clip, "leading-clip", leading_clip_names,
        std::array<std::string_view, 2>{"the Clip of an input as a batch norm of weight 1",
                                        "no layer for the Clip of an input"});
    add(&ChainSwitches::batch_norm_weights, "batch-norm-weights", top_weight_names,
        std::array<std::string_view, 2>{"the largest weight of a batch norm saturated: 127 of 128",
                                        "the largest weight of a batch norm not saturated"});
    add(&ChainSwitches::layer_weights, "layer-weights", top_weight_names,
        std::array<std::string_view, 2>{"the largest weight of a layer saturated: 127 of 128",
                                        "the largest weight of a layer not saturated"});
    add(&ChainSwitches::shift_rounding, "shift-rounding", shift_rounding_names,
        std::array<std::string_view, 3>{"shifted sums rounded half up", "shifted sums cut off",
                                        "shifted sums rounded half to even"});
    add(&ChainSwitches::output_scale, "output-scale", output_scale_names,
        std::array<std::string_view, 2>{"outputs at the scale of the sums divided by a power of two",
                                        "outputs at the scale of their encodings"});
    add(&ChainSwitches::element_signs, "element-signs", element_sign_names,
        std::array<std::string_view, 2>{"signs of codes by the graph", "signs of codes by the encodings"});
}

std::vector<Change> possible_changes(const SimulationSwitches& now, bool measured, bool has_chain) {
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
                 "biases as 8-bit integers", "biases as products of two integers"});
    if (!has_chain) std::erase_if(changes, [](const Change& one) { return one.change.value == "split"; });
    add_changes(
        changes, &SimulationSwitches::pre_activations, now, "pre-activations", pre_activation_names,
        {"values before a Relu or Clip quantized themselves", "values before a Relu or Clip not quantized"});
    add_changes(changes, &SimulationSwitches::rounding, now, "rounding", rounding_names,
                {"halves rounded up", "halves rounded away from zero", "halves rounded to even"});
    if (!has_chain) return changes;
    add_changes(changes, &SimulationSwitches::arithmetic, now, "arithmetic", arithmetic_names,
                {"layers in float on rounded values, as quantization-aware training computes",
                 "layers on integer codes, sums shifted to the output's scale"});
    each_of_chain([&](auto field, std::string_view name, const auto& values, const auto& texts) {
        add_changes(changes, field, now, name, values, texts);
    });
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

// Whether these changes of one simulation have an effect together.
bool have_effect(std::span<const Change* const> chosen, const SimulationSwitches& now) {
    SimulationSwitches after = now;
    for (const Change* change : chosen) change->apply(after);
    return after.arithmetic == Arithmetic::integer ||
           std::ranges::none_of(chosen, [](const Change* change) { return change->of_chain; });
}

bool is_integer(const TriedChanges& tried) {
    return tried.changes.size() == 1 && tried.changes[0].name == "arithmetic" &&
           tried.changes[0].value == "integer";
}

// Where the integer chain explains: which of its assumptions that hangs on.
void find_causes(Diagnosis& diagnosis, const SimulationSwitches& now) {
    const auto chain = std::ranges::find_if(diagnosis.findings, is_integer);
    if (chain == diagnosis.findings.end()) return;
    each_of_chain([&](auto field, std::string_view name, const auto& values, const auto& texts) {
        const auto place = static_cast<std::size_t>(now.chain.*field);
        std::uint64_t different = 0;
        for (const TriedChanges& tried : diagnosis.tried) {
            const bool without =
                tried.changes.size() == 2 &&
                std::ranges::any_of(tried.changes, [&](const auto& one) { return one.name == name; });
            if (without && tried.changes[0].name == "arithmetic")
                different = std::max(different, tried.errors.different);
        }
        if (different <= chain->errors.different) return;
        diagnosis.causes.push_back(
            {{std::string(name), std::string(values[place]), std::string(texts[place])}, different});
    });
    std::ranges::stable_sort(diagnosis.causes,
                             [](const auto& a, const auto& b) { return a.different > b.different; });
}

void give_advice(Diagnosis& diagnosis) {
    const auto is_leading = [](const SwitchChange& change) {
        return change.name == "leading-clip" || change.name == "batch-norm-weights";
    };
    bool leading = std::ranges::any_of(diagnosis.causes,
                                       [&](const ChainCause& cause) { return is_leading(cause.assumption); });
    for (const TriedChanges& found : diagnosis.findings)
        leading = leading || std::ranges::any_of(found.changes, is_leading);
    if (!leading) return;
    diagnosis.advice.push_back(
        "drop the leading Clip: TIDL makes a batch norm of it whose weight 1 has no code. Build the QAT "
        "model with "
        "quantize_in=False, or take the Clip of the input out of the ONNX model");
}

}  // namespace

Diagnosis diagnose(const SimulationRun& run, const DumpFolder& against) {
    const bool has_chain = run.model.target().simulation.has_chain;
    const std::vector<Change> changes = possible_changes(run.switches, !run.measured.empty(), has_chain);
    Diagnosis diagnosis;
    std::vector<Variant> variants;
    ChainWeightCache weights;
    const SimulatedEncodings base = resolve_encodings(run.model, run.given, run.switches, run.measured);
    const auto add = [&](std::span<const Change* const> chosen) {
        if (!have_effect(chosen, run.switches)) return;
        SimulationSwitches switches = run.switches;
        TriedChanges tried;
        for (const Change* change : chosen) {
            change->apply(switches);
            tried.changes.push_back(change->change);
        }
        diagnosis.tried.push_back(std::move(tried));
        const SimulatedEncodings encodings = resolve_encodings(run.model, run.given, switches, run.measured);
        variants.push_back({"", make_quantization(run.model, encodings, switches, run.remarks, &weights)});
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
    settings.steps = steps_of(run.model, base, variants.front().quantization.chain.get());
    settings.carries = run.carries;
    const std::vector<VariantErrors> errors = run_variants(run, variants, settings, nullptr);
    for (std::size_t i = 0; i < errors.size(); ++i) {
        for (const DumpErrors& value : errors[i].dumps) diagnosis.tried[i].errors.add(value);
    }
    judge(diagnosis);
    find_causes(diagnosis, run.switches);
    give_advice(diagnosis);
    std::stable_sort(diagnosis.tried.begin() + 1, diagnosis.tried.end(), nearer);
    return diagnosis;
}

}  // namespace qcalib
