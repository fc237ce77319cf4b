#include "target/circle_rules.h"

#include <algorithm>

#include "base/error.h"
#include "base/yaml_reader.h"

namespace qcalib {

namespace {

constexpr std::int64_t most_circle_inputs = 1000;

Evidence circle_evidence(const YamlMap& map) {
    return {map.text("source"), static_cast<Confidence>(map.choice(
                                    "confidence", {"verified", "documented", "reported", "assumed"}))};
}

std::size_t input_of(const YamlMap& map, const std::string& key) {
    return static_cast<std::size_t>(map.integer(key, 0, most_circle_inputs).value_or(0));
}

std::vector<std::size_t> circle_inputs(const YamlMap& map) {
    std::vector<std::size_t> inputs;
    if (!map.has("inputs")) return inputs;
    for (const std::int64_t input : map.integers("inputs", 0, most_circle_inputs))
        inputs.push_back(static_cast<std::size_t>(input));
    return inputs;
}

void read_bias_inputs(const YamlMap& map, CircleRules& rules) {
    CircleBiasRule rule{"", input_of(map, "data"), input_of(map, "weight"), input_of(map, "bias"),
                        circle_evidence(map)};
    for (const std::string& op_type : map.texts("operators")) {
        rule.op_type = op_type;
        rules.biases.push_back(rule);
    }
}

void read_signs(const YamlMap& map, CircleRules& rules) {
    CircleSignRule rule{"", circle_inputs(map), circle_evidence(map)};
    for (const std::string& op_type : map.texts("operators")) {
        rule.op_type = op_type;
        rules.signs.push_back(rule);
    }
}

void read_hand(const YamlMap& map, CircleRules& rules) {
    CircleHandRule rule;
    rule.way = static_cast<CircleHandRule::Way>(
        map.choice("way", {"to-inputs", "to-outputs", "to-padding", "equal", "all-equal"}));
    rule.inputs = circle_inputs(map);
    if (map.has("unless_fused")) rule.unless_fused = map.boolean("unless_fused");
    if (map.has("not_from_parts")) rule.not_from_parts = map.boolean("not_from_parts");
    rule.evidence = circle_evidence(map);
    for (const std::string& op_type : map.texts("operators")) {
        rule.op_type = op_type;
        rules.hands.push_back(rule);
    }
}

}  // namespace

const CircleBiasRule* CircleRules::bias_rule(const std::string& op_type) const {
    const auto found = std::ranges::find(biases, op_type, &CircleBiasRule::op_type);
    return found == biases.end() ? nullptr : &*found;
}

bool CircleRules::is_sign(const std::string& op_type, std::size_t input) const {
    return std::ranges::any_of(signs, [&](const CircleSignRule& rule) {
        return rule.op_type == op_type && std::ranges::count(rule.inputs, input) > 0;
    });
}

const CircleHandRule* CircleRules::hand_rule(const std::string& op_type, CircleHandRule::Way way) const {
    const auto found = std::ranges::find_if(
        hands, [&](const CircleHandRule& rule) { return rule.op_type == op_type && rule.way == way; });
    return found == hands.end() ? nullptr : &*found;
}

std::vector<YamlSection> circle_sections() {
    return {
        {"circle",
         {"least_step_8", "least_step_16", "executable", "bias_margin", "bias_inputs", "signs", "handed",
          "whole_steps", "own_constants", "source", "confidence"}},
        {"bias_inputs", {"operators", "data", "weight", "bias", "source", "confidence"}},
        {"signs", {"operators", "inputs", "source", "confidence"}},
        {"handed", {"operators", "way", "inputs", "unless_fused", "not_from_parts", "source", "confidence"}}};
}

CircleRules read_circle_rules(const YamlMap& map) {
    CircleRules rules;
    rules.least_step_8 = map.positive_real("least_step_8");
    rules.least_step_16 = map.positive_real("least_step_16");
    rules.executable = map.boolean("executable");
    rules.bias_margin = map.positive_real("bias_margin");
    for (const YamlMap& one : map.maps("bias_inputs", "bias_inputs")) read_bias_inputs(one, rules);
    for (const YamlMap& one : map.maps("signs", "signs")) read_signs(one, rules);
    for (const YamlMap& one : map.maps("handed", "handed")) read_hand(one, rules);
    rules.whole_steps = map.texts("whole_steps");
    rules.own_constants = map.texts("own_constants");
    circle_evidence(map);
    return rules;
}

}  // namespace qcalib
