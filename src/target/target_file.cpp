#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/yaml_reader.h"
#include "target/circle_rules.h"
#include "target/target.h"
#include "target/tidl_rules.h"

namespace qcalib {

namespace {

constexpr int most_bits = 32;
constexpr int most_inputs = 1000;
constexpr int most_rank = 16;

const std::vector<YamlSection>& schema() {
    static const std::vector<YamlSection> sections{
        {"target",
         {"name", "summary", "defaults", "arithmetic", "activations", "weights", "constants",
          "weight_operands", "no_encoding", "fused_outputs", "fusions", "shared_outputs", "fixed_outputs",
          "biases", "simulation", "hand_over", "circle", "tidl"}},
        {"defaults", {"method", "format", "source", "confidence"}},
        {"arithmetic",
         {"least_range", "least_ranges", "scale_is", "rounding", "power_of_two", "include_zero", "full_steps",
          "narrow_step", "nonfinite", "masks", "source", "confidence"}},
        {"activations", {"bits", "widths", "symmetric", "unsigned_symmetric", "source", "confidence"}},
        {"weights",
         {"bits", "widths", "symmetric", "per_channel", "per_channel_symmetric", "method", "source",
          "confidence"}},
        {"constants", {"width_of", "symmetric", "source", "confidence"}},
        {"hand_over", {"channels_last_ranks", "commands", "source", "confidence"}},
        {"weight_operands",
         {"operators", "input", "per_channel", "channel_axis", "transposed_by", "source", "confidence"}},
        {"no_encoding", {"operators", "inputs", "source", "confidence"}},
        {"fused_outputs", {"operators", "into", "after", "source", "confidence"}},
        {"fusions", {"name", "forms", "keeps_entries", "source", "confidence"}},
        {"shared_outputs", {"operators", "with", "source", "confidence"}},
        {"fixed_outputs", {"operators", "grids", "source", "confidence"}},
        {"grids", {"bits", "symmetric", "step", "offset"}},
        {"biases", {"operators", "widths", "source", "confidence"}},
        {"simulation",
         {"rounding", "weights", "bias", "input_ranges", "pre_activations", "integer_chain", "source",
          "confidence"}},
        {"integer_chain",
         {"arithmetic", "network_input", "leading_clip", "batch_norm_weights", "layer_weights",
          "shift_rounding", "output_scale", "element_signs", "source", "confidence"}},
        {"least_ranges", {"name", "value"}},
    };
    static const std::vector<YamlSection> all = [] {
        std::vector<YamlSection> joined = sections;
        for (YamlSection& section : circle_sections()) joined.push_back(std::move(section));
        for (YamlSection& section : tidl_sections()) joined.push_back(std::move(section));
        return joined;
    }();
    return all;
}

constexpr std::initializer_list<const char*> confidences{"verified", "documented", "reported", "assumed"};

Evidence read_evidence(const YamlMap& map) {
    return {map.text("source"), static_cast<Confidence>(map.choice("confidence", confidences))};
}

// A name that may be part of a file's name.
std::string read_name(const YamlMap& map) {
    std::string name = map.text("name");
    const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
    if (!std::all_of(name.begin(), name.end(), allowed)) {
        map.fault("name", fmt::format("name: expected lower-case letters, digits and '-', found '{}'",
                                      printable(name)));
    }
    return name;
}

std::vector<std::string> read_operators(const YamlMap& map, const std::string& key = "operators") {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    std::vector<std::string> names = map.texts(key);
    for (const std::string& name : names) {
        if (std::all_of(name.begin(), name.end(), allowed)) continue;
        map.fault(key, fmt::format("{}: expected names of ONNX operators, found '{}'", key, printable(name)));
    }
    return names;
}

template <typename Rule>
void read_widths(const YamlMap& map, Rule& rule) {
    for (const std::int64_t width : map.integers("widths", 2, most_bits))
        rule.widths.push_back(static_cast<int>(width));
    const auto bits = map.integer("bits", 2, most_bits);
    if (!bits || rule.widths.empty()) return;
    rule.bits = static_cast<int>(*bits);
    if (std::find(rule.widths.begin(), rule.widths.end(), rule.bits) != rule.widths.end()) return;
    map.fault("bits", fmt::format("bits: expected one of widths ({}), found {}", fmt::join(rule.widths, ", "),
                                  rule.bits));
}

void check_method(const YamlMap& map, const std::string& method) {
    if (method.empty()) return;
    try {
        parse_method(method);
    } catch (const Error& error) {
        map.fault("method", error.what());
    }
}

void read_defaults(const YamlMap& map, Target& target) {
    target.default_method = map.text("method");
    target.default_formats = map.one_or_more_texts("format");
    target.defaults_evidence = read_evidence(map);
    check_method(map, target.default_method);
}

ValuePolicy read_policy(const YamlMap& map, const std::string& key) {
    return map.has(key) ? static_cast<ValuePolicy>(map.choice(key, {"skip", "fail"})) : ValuePolicy::skip;
}

void read_least_ranges(const YamlMap& map, Target& target) {
    for (const YamlMap& one : map.maps("least_ranges", "least_ranges")) {
        const std::string name = read_name(one);
        const bool known = std::any_of(target.least_ranges.begin(), target.least_ranges.end(),
                                       [&](const NamedLeastRange& other) { return other.name == name; });
        if (known) one.fault("name", fmt::format("name: '{}' is given twice", name));
        target.least_ranges.push_back({name, one.positive_real("value")});
    }
}

void read_arithmetic(const YamlMap& map, Target& target) {
    target.least_range = map.positive_real("least_range");
    if (map.has("least_ranges")) read_least_ranges(map, target);
    if (map.has("scale_is")) target.scale_is_multiplier = map.choice("scale_is", {"step", "multiplier"}) == 1;
    target.rounding = static_cast<Rounding>(map.choice("rounding", {"half-away", "half-even"}));
    if (map.has("power_of_two")) target.power_of_two = map.boolean("power_of_two");
    if (map.has("include_zero")) target.include_zero = map.boolean("include_zero");
    if (map.has("full_steps")) target.full_steps = map.boolean("full_steps");
    if (map.has("narrow_step")) target.narrow_step = map.positive_real("narrow_step");
    target.nonfinite = read_policy(map, "nonfinite");
    target.masks = read_policy(map, "masks");
    target.arithmetic_evidence = read_evidence(map);
}

ActivationRule read_activations(const YamlMap& map) {
    ActivationRule rule;
    read_widths(map, rule);
    rule.symmetric = map.boolean("symmetric");
    if (map.has("unsigned_symmetric")) rule.unsigned_symmetric = map.boolean("unsigned_symmetric");
    rule.evidence = read_evidence(map);
    return rule;
}

WeightPrecision read_weights(const YamlMap& map) {
    WeightPrecision rule;
    read_widths(map, rule);
    rule.symmetric = map.boolean("symmetric");
    rule.per_channel = map.boolean("per_channel");
    rule.per_channel_symmetric = map.boolean("per_channel_symmetric");
    if (map.has("method")) {
        rule.method = map.text("method");
        check_method(map, rule.method);
    }
    rule.evidence = read_evidence(map);
    return rule;
}

ConstantRule read_constants(const YamlMap& map) {
    ConstantRule rule;
    rule.width = static_cast<ConstantRule::Width>(map.choice("width_of", {"activations", "weights"}));
    rule.symmetric = map.boolean("symmetric");
    rule.evidence = read_evidence(map);
    return rule;
}

// Every input of an operator has one rule at most.
class RuledInputs {
  public:
    void add(const YamlMap& map, const std::string& key, const std::string& op_type, std::size_t input) {
        if (op_type.empty() || seen_.emplace(op_type, input).second) return;
        map.fault(key, fmt::format("{}: input {} of {} has a rule already", key, input, op_type));
    }

  private:
    std::set<std::pair<std::string, std::size_t>> seen_;
};

void read_weight_operand(const YamlMap& map, RuledInputs& ruled, std::vector<WeightRule>& rules) {
    WeightRule rule;
    rule.input = static_cast<std::size_t>(map.integer("input", 0, most_inputs).value_or(0));
    rule.per_channel =
        static_cast<WeightRule::PerChannel>(map.choice("per_channel", {"always", "ungrouped", "never"}));
    rule.channel_axis = static_cast<int>(map.integer("channel_axis", -most_rank, most_rank).value_or(0));
    if (map.has("transposed_by")) rule.transposed_by = map.text("transposed_by");
    rule.evidence = read_evidence(map);
    for (const std::string& op_type : read_operators(map)) {
        ruled.add(map, "input", op_type, rule.input);
        rule.op_type = op_type;
        rules.push_back(rule);
    }
}

void read_no_encoding(const YamlMap& map, RuledInputs& ruled, std::vector<SkipRule>& rules) {
    SkipRule rule;
    for (const std::int64_t input : map.integers("inputs", 0, most_inputs)) {
        rule.inputs.push_back(static_cast<std::size_t>(input));
    }
    rule.evidence = read_evidence(map);
    for (const std::string& op_type : read_operators(map)) {
        for (const std::size_t input : rule.inputs) ruled.add(map, "inputs", op_type, input);
        rule.op_type = op_type;
        rules.push_back(rule);
    }
}

void read_fused_output(const YamlMap& map, Target& target) {
    FusionRule rule;
    if (map.has("after")) rule.after = read_operators(map, "after");
    rule.evidence = read_evidence(map);
    const std::vector<std::string> into = read_operators(map, "into");
    for (const std::string& op_type : read_operators(map)) {
        for (const std::string& other : into) {
            if (target.fusion_rule(op_type, other) != nullptr) {
                map.fault("into", fmt::format("into: {} into {} has a rule already", op_type, other));
                continue;
            }
            rule.op_type = op_type;
            rule.into = other;
            target.fusion_rules.push_back(rule);
        }
    }
}

void read_fusion(const YamlMap& map, Target& target) {
    FusionPattern pattern;
    pattern.name = map.text("name");
    if (map.has("keeps_entries")) pattern.keeps_entries = map.boolean("keeps_entries");
    pattern.evidence = read_evidence(map);
    for (const std::string& form : map.texts("forms")) {
        try {
            pattern.forms.push_back(parse_pattern_form(form));
        } catch (const Error& error) {
            map.fault("forms", fmt::format("forms: '{}': {}", printable(form), error.what()));
        }
    }
    target.fusion_patterns.push_back(std::move(pattern));
}

void read_shared_output(const YamlMap& map, Target& target) {
    SharingRule rule;
    rule.with = static_cast<SharingRule::With>(map.choice("with", {"first-input", "all-inputs"}));
    rule.evidence = read_evidence(map);
    for (const std::string& op_type : read_operators(map)) {
        if (target.sharing_rule(op_type) != nullptr)
            map.fault("operators", fmt::format("operators: {} has a rule already", op_type));
        rule.op_type = op_type;
        target.sharing_rules.push_back(rule);
    }
}

FixedRule::Grid read_grid(const YamlMap& map) {
    FixedRule::Grid grid;
    if (const auto bits = map.integer("bits", 2, most_bits)) grid.bits = static_cast<int>(*bits);
    if (map.has("symmetric")) grid.symmetric = map.boolean("symmetric");
    grid.step = map.positive_real("step");
    const std::int64_t codes = (std::int64_t{1} << grid.bits) - 1;
    if (const auto offset = map.integer("offset", -codes, 0)) grid.offset = *offset;
    return grid;
}

void read_fixed_output(const YamlMap& map, Target& target) {
    FixedRule rule;
    rule.evidence = read_evidence(map);
    for (const YamlMap& grid : map.maps("grids", "grids")) {
        rule.grids.push_back(read_grid(grid));
        const FixedRule::Grid& last = rule.grids.back();
        if (rule.grid(last.bits, last.symmetric) != &last)
            grid.fault("bits", fmt::format("bits: {} has a grid already", last.bits));
    }
    for (const std::string& op_type : read_operators(map)) {
        if (target.fixed_rule(op_type) != nullptr)
            map.fault("operators", fmt::format("operators: {} has a rule already", op_type));
        rule.op_type = op_type;
        target.fixed_rules.push_back(rule);
    }
}

BiasRule read_biases(const YamlMap& map) {
    BiasRule rule;
    rule.op_types = read_operators(map);
    for (const std::int64_t width : map.integers("widths", 2, most_bits))
        rule.widths.push_back(static_cast<int>(width));
    rule.evidence = read_evidence(map);
    return rule;
}

// The names between braces of a command that are none of hand_over_places().
std::vector<std::string> unknown_places(const std::string& command) {
    std::vector<std::string> unknown;
    for (std::size_t open = command.find('{'); open != std::string::npos;
         open = command.find('{', open + 1)) {
        const std::string name = command.substr(open + 1, command.find('}', open) - open - 1);
        if (std::ranges::count(hand_over_places(), name) == 0) unknown.push_back(name);
    }
    return unknown;
}

HandOver read_hand_over(const YamlMap& map) {
    HandOver rule;
    if (map.has("channels_last_ranks")) rule.channels_last_ranks = map.integers("channels_last_ranks", 3, 5);
    rule.commands = map.texts("commands");
    for (const std::string& command : rule.commands) {
        for (const std::string& name : unknown_places(command)) {
            const std::vector<std::string> known(hand_over_places().begin(), hand_over_places().end());
            map.fault("commands", fmt::format("commands: expected one of {} between braces, found '{}'{}",
                                              join(known, ", "), name, did_you_mean(name, known)));
        }
    }
    rule.evidence = read_evidence(map);
    return rule;
}

void read_integer_chain(const YamlMap& map, SimulationRule& rule) {
    rule.has_chain = true;
    rule.switches.arithmetic = static_cast<Arithmetic>(map.choice("arithmetic", {"fake", "integer"}));
    ChainSwitches& chain = rule.switches.chain;
    chain.network_input = static_cast<NetworkInput>(map.choice("network_input", {"signed-p2", "given"}));
    chain.leading_clip = static_cast<LeadingClip>(map.choice("leading_clip", {"batch-norm", "dropped"}));
    chain.batch_norm_weights =
        static_cast<TopWeight>(map.choice("batch_norm_weights", {"saturated", "kept"}));
    chain.layer_weights = static_cast<TopWeight>(map.choice("layer_weights", {"saturated", "kept"}));
    chain.shift_rounding =
        static_cast<ShiftRounding>(map.choice("shift_rounding", {"half-up", "floor", "half-even"}));
    chain.output_scale = static_cast<OutputScale>(map.choice("output_scale", {"shifted", "given"}));
    chain.element_signs = static_cast<ElementSigns>(map.choice("element_signs", {"graph", "given"}));
    rule.chain_evidence = read_evidence(map);
}

SimulationRule read_simulation(const YamlMap& map) {
    SimulationRule rule;
    SimulationSwitches& switches = rule.switches;
    switches.rounding =
        static_cast<ValueRounding>(map.choice("rounding", {"half-up", "half-away", "half-even"}));
    switches.weights = static_cast<WeightSource>(map.choice("weights", {"given", "file", "clipped"}));
    switches.bias = static_cast<BiasForm>(map.choice("bias", {"float", "int32", "int8", "split"}));
    switches.inputs = static_cast<InputRanges>(map.choice("input_ranges", {"given", "list"}));
    switches.pre_activations =
        static_cast<PreActivations>(map.choice("pre_activations", {"quantized", "skipped"}));
    if (map.has("integer_chain")) read_integer_chain(map.map("integer_chain", "integer_chain"), rule);
    rule.evidence = read_evidence(map);
    return rule;
}

// Calls `read` with each map of the list under `key`, if there is one.
template <typename Read>
void read_optional_list(const YamlMap& map, const std::string& key, Read read) {
    if (!map.has(key)) return;
    for (const YamlMap& rule : map.maps(key, key)) read(rule);
}

}  // namespace

Target parse_target(const std::string& text, const std::string& file) {
    const YAML::Node document = parse_yaml(text, file);
    YamlFaults faults(file);
    const YamlMap map(document, "target", schema(), faults);

    Target target;
    target.name = read_name(map);
    target.summary = trim(map.text("summary"));
    read_defaults(map.map("defaults", "defaults"), target);
    read_arithmetic(map.map("arithmetic", "arithmetic"), target);
    target.activations = read_activations(map.map("activations", "activations"));
    target.weights = read_weights(map.map("weights", "weights"));
    target.constants = read_constants(map.map("constants", "constants"));
    RuledInputs ruled;
    for (const YamlMap& rule : map.maps("weight_operands", "weight_operands")) {
        read_weight_operand(rule, ruled, target.weight_rules);
    }
    read_optional_list(map, "no_encoding",
                       [&](const YamlMap& rule) { read_no_encoding(rule, ruled, target.skip_rules); });
    const auto into_target = [&](auto read) {
        return [&target, read](const YamlMap& rule) { read(rule, target); };
    };
    read_optional_list(map, "fused_outputs", into_target(read_fused_output));
    read_optional_list(map, "fusions", into_target(read_fusion));
    read_optional_list(map, "shared_outputs", into_target(read_shared_output));
    read_optional_list(map, "fixed_outputs", into_target(read_fixed_output));
    if (map.has("biases")) target.biases = read_biases(map.map("biases", "biases"));
    if (map.has("hand_over")) target.hand_over = read_hand_over(map.map("hand_over", "hand_over"));
    if (map.has("simulation")) target.simulation = read_simulation(map.map("simulation", "simulation"));
    if (map.has("circle"))
        target.circle = std::make_shared<const CircleRules>(read_circle_rules(map.map("circle", "circle")));
    if (map.has("tidl"))
        target.tidl = std::make_shared<const TidlRules>(read_tidl_rules(map.map("tidl", "tidl")));
    faults.throw_if_any();
    return target;
}

}  // namespace qcalib
