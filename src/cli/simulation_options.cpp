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
    app.add_option("--bias", bias_,
                   "Biases: float, int32 (at the scale of input times weight), int8, or split (a product of "
                   "two integers, as TIDL keeps them)")
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
    add_chain_to(app);
}

void SwitchOptions::add_chain_to(CLI::App& app) {
    const std::string group = "Switches of the integer chain (TIDL)";
    const auto add = [&](const char* flag, std::string& value, const char* text, const char* values) {
        app.add_option(flag, value, text)->group(group)->type_name(values);
    };
    add("--arithmetic", arithmetic_, "Layers in float on rounded values, or on integer codes",
        "fake|integer");
    add("--network-input", network_input_,
        "Codes of the inputs: signed at a power-of-two scale, or as their encodings say", "signed-p2|given");
    add("--leading-clip", leading_clip_, "A Clip of an input: a layer (a batch norm of weight 1), or none",
        "batch-norm|dropped");
    add("--batch-norm-weights", batch_norm_weights_,
        "The largest weight of a batch norm, which has no code: saturated (127 for 128), or kept",
        "saturated|kept");
    add("--layer-weights", layer_weights_, "The same of convolutions and inner products", "saturated|kept");
    add("--shift-rounding", shift_rounding_, "Of a sum that is shifted to the output's scale",
        "half-up|floor|half-even");
    add("--output-scale", output_scale_,
        "Of a layer: the sum's divided by a power of two, or that of the encoding", "shifted|given");
    add("--element-signs", element_signs_,
        "Codes have a sign unless the graph has a Relu or a Clip from 0 there, or as the encoding says",
        "graph|given");
}

bool SwitchOptions::has_chain_flag() const {
    for (const std::string* flag : {&network_input_, &leading_clip_, &batch_norm_weights_, &layer_weights_,
                                    &shift_rounding_, &output_scale_, &element_signs_}) {
        if (!flag->empty()) return true;
    }
    return arithmetic_ == "integer";
}

SimulationSwitches SwitchOptions::switches(const Target& target) const {
    SimulationSwitches switches = target.simulation.switches;
    set_switch(switches.rounding, rounding_, "--rounding", rounding_names);
    set_switch(switches.weights, weights_, "--weights", weight_source_names);
    set_switch(switches.bias, bias_, "--bias", bias_form_names);
    set_switch(switches.inputs, input_ranges_, "--input-ranges", input_range_names);
    set_switch(switches.pre_activations, pre_activations_, "--pre-activations", pre_activation_names);
    set_switch(switches.arithmetic, arithmetic_, "--arithmetic", arithmetic_names);
    ChainSwitches& chain = switches.chain;
    set_switch(chain.network_input, network_input_, "--network-input", network_input_names);
    set_switch(chain.leading_clip, leading_clip_, "--leading-clip", leading_clip_names);
    set_switch(chain.batch_norm_weights, batch_norm_weights_, "--batch-norm-weights", top_weight_names);
    set_switch(chain.layer_weights, layer_weights_, "--layer-weights", top_weight_names);
    set_switch(chain.shift_rounding, shift_rounding_, "--shift-rounding", shift_rounding_names);
    set_switch(chain.output_scale, output_scale_, "--output-scale", output_scale_names);
    set_switch(chain.element_signs, element_signs_, "--element-signs", element_sign_names);
    if (has_chain_flag() && !target.simulation.has_chain) {
        fail(
            "--arithmetic integer and its switches: target '{}' has no integer chain; those whose rules have "
            "`integer_chain` do: tidl, tidl-np2",
            target.name);
    }
    if (has_chain_flag() && switches.arithmetic == Arithmetic::fake)
        fail("--arithmetic fake: expected no switches of the integer chain beside it");
    return switches;
}

}  // namespace qcalib
