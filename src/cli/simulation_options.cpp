#include "cli/simulation_options.h"

#include <array>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

template <std::size_t count>
std::vector<std::string> texts(const std::array<std::string_view, count>& names) {
    return {names.begin(), names.end()};
}

template <typename Enum, std::size_t count>
void set_switch(Enum& value, const std::string& text, const char* flag,
                const std::array<std::string_view, count>& names) {
    if (text.empty()) return;
    for (std::size_t i = 0; i < count; ++i) {
        if (names[i] != text) continue;
        value = static_cast<Enum>(i);
        return;
    }
    const std::vector<std::string> choices = texts(names);
    fail("{}: expected {}, found '{}'{}", flag, join(choices, " or "), printable(text),
         did_you_mean(text, choices));
}

}  // namespace

void SwitchOptions::add_to(CLI::App& app) {
    const std::string group = "Switches (what they are without a flag, the target's rules say)";
    app.add_option("--rounding", rounding_,
                   "Of a value halfway between two codes: half-up, half-away or half-even")
        ->group(group);
    app.add_option(
           "--weights", weights_,
           "Which encoding a weight is quantized with: the given one, one made anew of the weights in "
           "the model (file), or of these after they were clipped to the given grid's ends (clipped)")
        ->group(group)
        ->type_name("given|file|clipped");
    app.add_option("--bias", bias_, "Biases: float, int32 (at the scale of input times weight) or int8")
        ->group(group);
    app.add_option(
           "--input-ranges", input_ranges_,
           "Ranges of the inputs and of what is computed of them without weights: given, or measured on "
           "the converter's list (list)")
        ->group(group)
        ->type_name("given|list");
    app.add_option("--pre-activations", pre_activations_,
                   "Values that one Relu or Clip alone reads: quantized or skipped")
        ->group(group);
}

SimulationSwitches SwitchOptions::switches(const Target& target) const {
    SimulationSwitches switches = target.simulation.switches;
    set_switch(switches.rounding, rounding_, "--rounding", rounding_names);
    set_switch(switches.weights, weights_, "--weights", weight_source_names);
    set_switch(switches.bias, bias_, "--bias", bias_form_names);
    set_switch(switches.inputs, input_ranges_, "--input-ranges", input_range_names);
    set_switch(switches.pre_activations, pre_activations_, "--pre-activations", pre_activation_names);
    return switches;
}

}  // namespace qcalib
