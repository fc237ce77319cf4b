#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "target/target.h"
#include "target/tidl_rules.h"

using namespace qcalib;

namespace {

const std::string good = R"(name: chip
summary: A chip.
defaults: {method: minmax, format: snpe, source: manual, confidence: documented}
arithmetic:
  least_range: 0.01
  rounding: half-even
  source: log
  confidence: verified
activations: {bits: 8, widths: [8, 16], symmetric: false, source: manual, confidence: reported}
weights:
  bits: 4
  widths: [4, 8]
  symmetric: true
  per_channel: true
  per_channel_symmetric: false
  source: manual
  confidence: assumed
constants: {width_of: weights, symmetric: true, source: guess, confidence: assumed}
weight_operands:
  - {operators: [Conv, Custom], input: 1, per_channel: ungrouped, channel_axis: 0, source: a, confidence: assumed}
  - operators: [Gemm]
    input: 1
    per_channel: always
    channel_axis: -1
    transposed_by: transB
    source: b
    confidence: reported
no_encoding:
  - {operators: [Conv, Gemm], inputs: [2], source: c, confidence: assumed}
  - {operators: [Clip], inputs: [1, 2], source: d, confidence: assumed}
)";

// `good` with its first `old_part` replaced.
std::string changed(const std::string& old_part, const std::string& new_part) {
    const std::size_t place = good.find(old_part);
    REQUIRE(place != std::string::npos);
    return std::string(good).replace(place, old_part.size(), new_part);
}

std::vector<std::string> faults_of(const std::string& text) {
    try {
        parse_target(text, "chip.yaml");
    } catch (const Error& error) {
        return split(error.what(), '\n');
    }
    return {};
}

void check_fault(const std::string& text, const std::string& expected) {
    CAPTURE(text);
    const std::vector<std::string> faults = faults_of(text);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0] == expected);
}

// A value of `good` replaced, and the fault that comes of it.
struct WrongValue {
    std::string from;
    std::string changed_to;
    std::string expected;
};

}  // namespace

TEST_CASE("every key of a target's file arrives in the target") {
    const Target target = parse_target(good, "chip.yaml");
    CHECK(target.name == "chip");
    CHECK(target.summary == "A chip.");
    CHECK(target.default_method == "minmax");
    CHECK(target.default_formats == std::vector<std::string>{"snpe"});
    CHECK(target.defaults_evidence.source == "manual");
    CHECK(target.defaults_evidence.confidence == Confidence::documented);
    CHECK(target.least_range == 0.01);
    CHECK(target.rounding == Rounding::half_even);
    CHECK(target.arithmetic_evidence.confidence == Confidence::verified);
    CHECK(target.activations.bits == 8);
    CHECK(target.activations.widths == std::vector<int>{8, 16});
    CHECK_FALSE(target.activations.symmetric);
    CHECK(target.activations.evidence.confidence == Confidence::reported);
    CHECK(target.weights.bits == 4);
    CHECK(target.weights.widths == std::vector<int>{4, 8});
    CHECK(target.weights.symmetric);
    CHECK(target.weights.per_channel);
    CHECK_FALSE(target.weights.per_channel_symmetric);
    CHECK(target.constants.width == ConstantRule::Width::of_weights);
    CHECK(target.constants.symmetric);
    CHECK(target.constants.evidence.source == "guess");

    REQUIRE(target.weight_rules.size() == 3);
    const WeightRule* convolution = target.weight_rule("Conv", 1);
    REQUIRE(convolution != nullptr);
    CHECK(convolution->per_channel == WeightRule::PerChannel::ungrouped);
    CHECK(convolution->channel_axis == 0);
    CHECK(convolution->transposed_by.empty());
    CHECK(target.weight_rule("Custom", 1) != nullptr);
    const WeightRule* gemm = target.weight_rule("Gemm", 1);
    REQUIRE(gemm != nullptr);
    CHECK(gemm->per_channel == WeightRule::PerChannel::always);
    CHECK(gemm->channel_axis == -1);
    CHECK(gemm->transposed_by == "transB");
    CHECK(gemm->evidence.source == "b");
    CHECK(target.weight_rule("Conv", 0) == nullptr);
    CHECK(target.weight_rule("Clip", 1) == nullptr);

    CHECK(target.skip_rule("Gemm", 2) != nullptr);
    CHECK(target.skip_rule("Clip", 2)->evidence.source == "d");
    CHECK(target.skip_rule("Clip", 0) == nullptr);
    CHECK(target.skip_rule("Relu", 1) == nullptr);
}

TEST_CASE("an unknown key is an error at its place that lists the keys and offers the nearest") {
    check_fault(changed("  least_range: 0.01\n", "  least_range: 0.01\n  least_rnge: 0.01\n"),
                "chip.yaml:6:3: arithmetic: unknown key 'least_rnge': expected one of least_range, "
                "least_ranges, scale_is, rounding, "
                "power_of_two, "
                "include_zero, full_steps, narrow_step, nonfinite, masks, source, "
                "confidence (did you mean 'least_range'?)");
    check_fault(good + "quantizer: tf\n",
                "chip.yaml:31:1: target: unknown key 'quantizer': expected one of name, summary, defaults, "
                "arithmetic, "
                "activations, weights, constants, weight_operands, no_encoding, "
                "fused_outputs, fusions, shared_outputs, fixed_outputs, biases, "
                "simulation, hand_over, circle, tidl");
}

TEST_CASE("a command with a place that nothing fills is an error that offers the nearest") {
    check_fault(
        good +
            "hand_over: {channels_last_ranks: [4], commands: ['run {modell}'], source: guess, confidence: "
            "assumed}\n",
        "chip.yaml:31:49: commands: expected one of model, encodings, list, stem, activation_bits, "
        "weight_bits, bias_bits between braces, found 'modell' (did you mean 'model'?)");
}

TEST_CASE("a misplaced key is told where it belongs") {
    check_fault(changed("activations: {bits: 8,", "activations: {per_channel_symmetric: true, bits: 8,"),
                "chip.yaml:9:15: activations: unknown key 'per_channel_symmetric': it belongs in weights");
    check_fault(good + "least_range: 0.1\n",
                "chip.yaml:31:1: target: unknown key 'least_range': it belongs in arithmetic");
    check_fault(good + "inputs: [1]\n",
                "chip.yaml:31:1: target: unknown key 'inputs': it belongs in no_encoding or signs or handed");
}

TEST_CASE("a missing key is an error at its map") {
    check_fault(changed("  rounding: half-even\n", ""),
                "chip.yaml:5:3: arithmetic: key 'rounding' is missing");
    check_fault(changed("name: chip\n", ""), "chip.yaml:1:1: target: key 'name' is missing");
    check_fault(changed(", source: guess", ""), "chip.yaml:18:12: constants: key 'source' is missing");
    check_fault(
        changed("constants: {width_of: weights, symmetric: true, source: guess, confidence: assumed}\n", ""),
        "chip.yaml:1:1: target: key 'constants' is missing");
}

TEST_CASE("a key given twice is an error") {
    check_fault(changed("summary: A chip.\n", "summary: A chip.\nsummary: Another.\n"),
                "chip.yaml:3:1: target: key 'summary' is given twice");
}

TEST_CASE("a value of a wrong type or out of bounds is an error that tells what was expected and found") {
    const std::vector<WrongValue> cases{
        {"bits: 4", "bits: four", "11:9: bits: expected a whole number from 2 to 32, found 'four'"},
        {"bits: 4", "bits: '4'", "11:9: bits: expected a whole number from 2 to 32, found '4'"},
        {"bits: 4", "bits: 4.5", "11:9: bits: expected a whole number from 2 to 32, found '4.5'"},
        {"bits: 4", "bits: 99999999999999999999",
         "11:9: bits: expected a whole number from 2 to 32, found '99999999999999999999'"},
        {"bits: 4", "bits: 5", "11:9: bits: expected one of widths (4, 8), found 5"},
        {"widths: [4, 8]", "widths: [4, 64]",
         "12:15: widths: expected a whole number from 2 to 32, found '64'"},
        {"widths: [4, 8]", "widths: 4", "12:11: widths: expected a list of whole numbers, found '4'"},
        {"widths: [4, 8]", "widths: []",
         "12:11: widths: expected a list of whole numbers, found an empty one"},
        {"symmetric: true\n", "symmetric: yes\n", "13:14: symmetric: expected true or false, found 'yes'"},
        {"symmetric: true\n", "symmetric: \"true\"\n",
         "13:14: symmetric: expected true or false, found 'true'"},
        {"least_range: 0.01", "least_range: 0", "5:16: least_range: expected a number above 0, found '0'"},
        {"least_range: 0.01", "least_range: nan",
         "5:16: least_range: expected a number above 0, found 'nan'"},
        {"least_range: 0.01", "least_range: [1]",
         "5:16: least_range: expected a number above 0, found a list"},
        {"half-even", "half-evn",
         "6:13: rounding: expected one of half-away, half-even, found 'half-evn' (did you mean "
         "'half-even'?)"},
        {"confidence: verified", "confidence: {a: b}",
         "8:15: confidence: expected one of verified, documented, reported, assumed, found a map"},
        {"summary: A chip.", "summary: 12", "2:10: summary: expected text, found '12'"},
        {"summary: A chip.", "summary: ' '", "2:10: summary: expected text, found ' '"},
        {"name: chip", "name: Chip/1",
         "1:7: name: expected lower-case letters, digits and '-', found 'Chip/1'"},
        {"channel_axis: -1", "channel_axis: last",
         "24:19: channel_axis: expected a whole number from -16 to 16, found 'last'"},
        {"operators: [Gemm]", "operators: [my.Gemm]",
         "21:16: operators: expected names of ONNX operators, found 'my.Gemm'"},
        {"operators: [Gemm]", "operators: [[Gemm]]", "21:17: operators: expected text, found a list"},
        {"inputs: [1, 2]", "inputs: [1, -2]",
         "30:37: inputs: expected a whole number from 0 to 1000, found '-2'"},
    };
    for (const WrongValue& wrong : cases) {
        CAPTURE(wrong.changed_to);
        check_fault(changed(wrong.from, wrong.changed_to), "chip.yaml:" + wrong.expected);
    }
}

TEST_CASE("an unknown default method is an error of the file that offers the nearest") {
    const auto faults = faults_of(changed("method: minmax", "method: minmx"));
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].find("chip.yaml:3:20: ") == 0);
    CHECK(faults[0].find("'minmax'") != std::string::npos);
}

TEST_CASE("a section that is no map and a list that is none are errors") {
    check_fault(
        changed("constants: {width_of: weights, symmetric: true, source: guess, confidence: assumed}",
                "constants: 8"),
        "chip.yaml:18:12: constants: expected a map with width_of, symmetric, source, confidence, found '8'");
    check_fault(changed("constants: {width_of: weights, symmetric: true, source: guess, confidence: assumed}",
                        "constants:"),
                "chip.yaml:18:1: constants: expected a map with width_of, symmetric, source, confidence, "
                "found nothing");
    check_fault("just text",
                "chip.yaml:1:1: target: expected a map with name, summary, defaults, arithmetic, "
                "activations, weights, constants, weight_operands, no_encoding, fused_outputs, "
                "fusions, shared_outputs, fixed_outputs, biases, simulation, hand_over, circle, tidl, found "
                "'just text'");
}

TEST_CASE("an input with two rules is an error") {
    check_fault(changed("operators: [Clip], inputs: [1, 2]", "operators: [Clip, Gemm], inputs: [1, 2]")
                    .replace(good.find("operators: [Conv, Gemm]"), 23, "operators: [Conv, Conx]"),
                "chip.yaml:30:39: inputs: input 1 of Gemm has a rule already");
    check_fault(changed("operators: [Conv, Custom]", "operators: [Conv, Conv]"),
                "chip.yaml:20:38: input: input 1 of Conv has a rule already");
}

TEST_CASE("all faults of a file are reported at once, in its order") {
    std::string text = good + "extra: 1\n";
    const auto replace = [&](const std::string& old_part, const std::string& new_part) {
        text.replace(text.find(old_part), old_part.size(), new_part);
    };
    replace("bits: 4", "bits: x");
    replace("rounding: half-even", "rounding: up");
    replace("inputs: [2]", "input: [2]");
    const auto faults = faults_of(text);
    REQUIRE(faults.size() == 5);
    CHECK(faults[0] == "chip.yaml:6:13: rounding: expected one of half-away, half-even, found 'up'");
    CHECK(faults[1] == "chip.yaml:11:9: bits: expected a whole number from 2 to 32, found 'x'");
    CHECK(faults[2] == "chip.yaml:29:5: no_encoding: key 'inputs' is missing");
    CHECK(faults[3] == "chip.yaml:29:31: no_encoding: unknown key 'input': it belongs in weight_operands");
    CHECK(faults[4].find("chip.yaml:31:1: target: unknown key 'extra'") == 0);
}

TEST_CASE("fused outputs may be left out, and each pair of operators has one rule") {
    CHECK(parse_target(good, "chip.yaml").fusion_rules.empty());
    const std::string rules = std::string(good) + "fused_outputs:\n";
    const std::string end = ", source: e, confidence: verified}\n";
    const Target target =
        parse_target(rules + "  - {operators: [Conv, Gemm], into: [Relu], after: [Pad]" + end, "chip.yaml");
    REQUIRE(target.fusion_rules.size() == 2);
    REQUIRE(target.fusion_rule("Gemm", "Relu") != nullptr);
    CHECK(target.fusion_rule("Gemm", "Relu")->after == std::vector<std::string>{"Pad"});
    CHECK(target.fusion_rule("Gemm", "Relu")->evidence.confidence == Confidence::verified);
    CHECK(target.fusion_rule("Relu", "Gemm") == nullptr);
    CHECK_THROWS_WITH_AS(
        parse_target(rules + "  - {operators: [Conv, Conv], into: [Relu]" + end, "chip.yaml"),
        doctest::Contains("into: Conv into Relu has a rule already"), Error);
    CHECK_THROWS_WITH_AS(parse_target(rules + "  - {operators: [Conv], into: [\"a b\"]" + end, "chip.yaml"),
                         doctest::Contains("into: expected names of ONNX operators, found 'a b'"), Error);
}

TEST_CASE("what is no YAML, empty or more than one document is an error with its place") {
    check_fault("", "chip.yaml:1:1: expected a map, found nothing");
    check_fault("# nothing\n", "chip.yaml:1:1: expected a map, found nothing");
    check_fault(good + "---\nname: other\n", "chip.yaml:32:1: expected one document, found a second");
    const auto unclosed = faults_of("name: chip\nsummary: [a, b\n");
    REQUIRE(unclosed.size() == 1);
    CHECK(unclosed[0].find("chip.yaml:3:1: expected YAML, found a fault: ") == 0);
    const auto tab = faults_of("name: chip\ndefaults:\n\tmethod: a\n");
    REQUIRE_FALSE(tab.empty());
    CHECK(tab[0].find("chip.yaml:3:") == 0);
    CHECK_FALSE(faults_of("name: *nowhere\n").empty());
    CHECK_FALSE(faults_of(std::string(100000, '[')).empty());
    CHECK_FALSE(faults_of(std::string("\0\xff\xfe", 3)).empty());
    CHECK_FALSE(faults_of("? [a, b]\n: c\n").empty());
    CHECK_FALSE(faults_of("&a [*a]\n").empty());
}

TEST_CASE("any prefix and any damaged byte of a target's file is read or refused, never worse") {
    for (std::size_t length = 0; length < good.size(); ++length) faults_of(good.substr(0, length));
    for (std::size_t place = 0; place < good.size(); ++place) {
        for (const char damage : {'\0', '\xff', '[', '"'}) {
            std::string text = good;
            text[place] = damage;
            faults_of(text);
        }
    }
    CHECK(faults_of(good).empty());
}

TEST_CASE("a target may set the grid, what is done about odd values, and a method for weights") {
    const Target plain = parse_target(good, "chip.yaml");
    CHECK_FALSE(plain.power_of_two);
    CHECK(plain.include_zero);
    CHECK(plain.nonfinite == ValuePolicy::skip);
    CHECK(plain.weights.method == "minmax");
    const Target target = parse_target(
        changed("  rounding: half-even\n",
                "  rounding: half-even\n  power_of_two: true\n  include_zero: false\n  nonfinite: fail\n"
                "  masks: fail\n"),
        "chip.yaml");
    CHECK(target.power_of_two);
    CHECK_FALSE(target.include_zero);
    CHECK(target.nonfinite == ValuePolicy::fail);
    CHECK(target.masks == ValuePolicy::fail);
    CHECK_FALSE(plain.full_steps);
    const Target full = parse_target(
        changed("  rounding: half-even\n", "  rounding: half-even\n  full_steps: true\n  narrow_step: 1\n"),
        "chip.yaml");
    CHECK(full.full_steps);
    CHECK(full.narrow_step == 1);
    CHECK(full.grid_rules().full_steps);
    CHECK(parse_target(changed("symmetric: false, source: manual",
                               "symmetric: true, unsigned_symmetric: true, "
                               "source: manual"),
                       "chip.yaml")
              .activations.unsigned_symmetric);
    CHECK(parse_target(changed("  bits: 4\n", "  bits: 4\n  method: mse\n"), "chip.yaml").weights.method ==
          "mse");
    CHECK(faults_of(changed("  bits: 4\n", "  bits: 4\n  method: msse\n")).size() == 1);
    CHECK(faults_of(changed("  source: log\n", "  source: log\n  masks: skp\n")).size() == 1);
}

TEST_CASE("fusions, shared and fixed outputs, biases and named least ranges are read") {
    const Target target = parse_target(
        changed("  rounding:",
                "  least_ranges: [{name: old, value: 0.01}, {name: new, value: 0.0001}]\n"
                "  scale_is: multiplier\n  rounding:") +
            "fusions:\n"
            "  - name: Hswish\n"
            "    forms: ['s = HardSigmoid{alpha=0.5}(x); y = Mul(x, s)']\n"
            "    keeps_entries: true\n"
            "    source: log\n"
            "    confidence: verified\n"
            "shared_outputs:\n"
            "  - {operators: [Reshape, Split], with: first-input, source: a, confidence: assumed}\n"
            "  - {operators: [Concat], with: all-inputs, source: b, confidence: assumed}\n"
            "fixed_outputs:\n"
            "  - operators: [Softmax]\n"
            "    grids: [{bits: 8, step: 0.00390625, offset: 0}, {bits: 16, symmetric: true, step: 1, "
            "offset: -3}]\n"
            "    source: c\n"
            "    confidence: reported\n"
            "biases: {operators: [Conv], widths: [32], source: d, confidence: reported}\n",
        "chip.yaml");
    REQUIRE(target.least_ranges.size() == 2);
    CHECK(target.least_ranges[1].name == "new");
    CHECK(target.least_ranges[1].value == 0.0001);
    CHECK(target.scale_is_multiplier);
    REQUIRE(target.fusion_patterns.size() == 1);
    CHECK(target.fusion_patterns[0].keeps_entries);
    CHECK(target.fusion_patterns[0].forms.at(0).statements.size() == 2);
    CHECK(target.sharing_rule("Split")->with == SharingRule::With::first_input);
    CHECK(target.sharing_rule("Concat")->with == SharingRule::With::all_inputs);
    CHECK(target.sharing_rule("Relu") == nullptr);
    const FixedRule* fixed = target.fixed_rule("Softmax");
    REQUIRE(fixed != nullptr);
    CHECK(fixed->grid(8, false)->step == 0.00390625);
    CHECK(fixed->grid(8, true) == nullptr);
    CHECK(fixed->grid(16, true)->offset == -3);
    CHECK(target.biases->widths == std::vector<int>{32});
}

TEST_CASE("a form of a fusion that cannot be read is an error at its place") {
    check_fault(
        std::string(good) +
            "fusions:\n  - {name: f, forms: ['a = Add(x 3); y = Mul(a, 2)'], source: s, "
            "confidence: assumed}\n",
        "chip.yaml:32:22: forms: 'a = Add(x 3); y = Mul(a, 2)': expected ')' at character 11, found '3); y "
        "= Mul(a, 2)'");
}

TEST_CASE("an operator that shares or fixes its output twice is an error") {
    check_fault(std::string(good) +
                    "shared_outputs:\n  - {operators: [A, A], with: first-input, source: s, "
                    "confidence: assumed}\n",
                "chip.yaml:32:17: operators: A has a rule already");
    check_fault(std::string(good) +
                    "fixed_outputs:\n  - {operators: [A], grids: [{bits: 8, step: 1, offset: 1}], "
                    "source: s, confidence: assumed}\n",
                "chip.yaml:32:57: offset: expected a whole number from -255 to 0, found '1'");
}

TEST_CASE("every built-in target reads, and Qualcomm's agree on what is fused") {
    const Target snpe = load_target("snpe");
    const Target qnn = load_target("qnn");
    CHECK(snpe.least_range == 0.01);
    CHECK(qnn.least_range == 0.0001);
    REQUIRE(snpe.fusion_patterns.size() == qnn.fusion_patterns.size());
    for (std::size_t i = 0; i < snpe.fusion_patterns.size(); ++i) {
        CHECK(snpe.fusion_patterns[i].name == qnn.fusion_patterns[i].name);
        CHECK(snpe.fusion_patterns[i].forms.size() == qnn.fusion_patterns[i].forms.size());
    }
    CHECK(snpe.fixed_rules.empty());
    CHECK(qnn.fixed_rule("Softmax")->grid(8, false)->step == 1.0 / 256);
    CHECK(qnn.fixed_rule("Tanh")->grid(8, false) == nullptr);
    CHECK(qnn.fixed_rule("Tanh")->grid(16, false)->step == 1.0 / 32768);
}

TEST_CASE("the rules for TIDL say how scales are chosen") {
    const std::string section =
        "tidl: {style: any-scale, unclipped_margin: 1.5, source: manual, confidence: reported}\n";
    const Target target = parse_target(good + section, "chip.yaml");
    REQUIRE(target.tidl != nullptr);
    CHECK(target.tidl->style == TidlRules::Style::any_scale);
    CHECK(target.tidl->unclipped_margin == 1.5);
    CHECK(target.tidl->evidence.confidence == Confidence::reported);
    CHECK(target.tidl->symmetric());
    CHECK(parse_target(good, "chip.yaml").tidl == nullptr);
    CHECK(faults_of(good + "tidl: {style: two, unclipped_margin: 0, source: a, confidence: reported}\n")
              .size() == 2);
    CHECK(load_target("tidl").tidl->style == TidlRules::Style::power_of_two);
    CHECK_FALSE(load_target("tidl-asym").tidl->symmetric());
}
