#pragma once

#include <string>
#include <vector>

#include "target/target.h"

namespace qcalib {

class YamlMap;
struct YamlSection;

// Where an operator's bias comes from: its scale is that of `data` times that of `weight`.
struct CircleBiasRule {
    std::string op_type;
    std::size_t data = 0;
    std::size_t weight = 1;
    std::size_t bias = 2;
    Evidence evidence;
};

// Constants of one value a channel (last axis): the value is the scale, and its sign the code.
struct CircleSignRule {
    std::string op_type;
    std::vector<std::size_t> inputs;
    Evidence evidence;
};

// An encoding that goes from an operator's output to inputs of it, or the other way round.
struct CircleHandRule {
    enum class Way : std::uint8_t {
        to_inputs,   // the inputs take the output's, constants among them
        to_outputs,  // the outputs take that of the first of `inputs`
        to_padding,  // as to_inputs; but where the last of `inputs` is -FLT_MAX, it and the output take that
                     // of the first
        equal,       // only where it is to run in luci-interpreter: the output takes that of the first
        all_equal,   // the same where all inputs have one encoding; else nothing can be done
    };
    std::string op_type;
    Way way = Way::to_outputs;
    std::vector<std::size_t> inputs;  // empty: all
    bool unless_fused = false;        // only where no activation function is fused
    bool not_from_parts = false;      // an input that is one of several outputs of a node keeps its own
    Evidence evidence;
};

// What Samsung ONE does beyond what Target says of every compiler: steps of its quantizer, in this order
// (CirclePropagation).
struct CircleRules {
    double least_step_8 = 0;   // a smaller scale of uint8 becomes this
    double least_step_16 = 0;  // and of int16
    bool executable = true;    // the `equal` rules hold as well
    double bias_margin = 1;    // by how much an overflowing bias's scale is widened beyond its need
    std::vector<CircleBiasRule> biases;
    std::vector<CircleSignRule> signs;
    std::vector<CircleHandRule> hands;
    std::vector<std::string> whole_steps;  // operators whose output has steps of whole numbers
    std::vector<std::string>
        own_constants;  // operators whose constants circle-quantizer gives their own range

    const CircleBiasRule* bias_rule(const std::string& op_type) const;
    bool is_sign(const std::string& op_type, std::size_t input) const;
    const CircleHandRule* hand_rule(const std::string& op_type, CircleHandRule::Way way) const;
};

// The sections of a target's YAML that CircleRules are read from, and reading them from the section `circle`.
std::vector<YamlSection> circle_sections();
CircleRules read_circle_rules(const YamlMap& map);

}  // namespace qcalib
