#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encoding/encoding.h"
#include "ranges/range_method.h"
#include "target/pattern_form.h"
#include "target/simulation_rule.h"

namespace qcalib {

// How sure a rule is.
enum class Confidence : std::uint8_t {
    verified,    // seen in open code, or reproduces public output of the compiler
    documented,  // the vendor's documentation says so
    reported,    // users say so
    assumed,     // our own inference
};
std::string_view name_of(Confidence confidence);

// What is done about values that no range can hold.
enum class ValuePolicy : std::uint8_t {
    skip,  // they are left out, counted and remarked
    fail,  // the first tensor with one is an Error
};

// Where a rule comes from.
struct Evidence {
    std::string source;
    Confidence confidence = Confidence::assumed;
};

// How the activations, the inputs and outputs of the graph among them, are encoded.
struct ActivationRule {
    int bits = 8;
    std::vector<int> widths;  // all the target takes
    bool symmetric = false;
    bool unsigned_symmetric = false;  // where symmetric: all codes for values without negative ones
    Evidence evidence;
};

// How weights are encoded, unless a run says otherwise.
struct WeightPrecision {
    int bits = 8;
    std::vector<int> widths;
    bool symmetric = false;
    bool per_channel = false;
    bool per_channel_symmetric = false;  // per channel is always symmetric
    std::string method = "minmax";       // as parse_method takes it
    Evidence evidence;
};

// How other float constants that meet an activation are encoded: always per tensor.
struct ConstantRule {
    enum class Width : std::uint8_t { of_activations, of_weights };
    Width width = Width::of_activations;
    bool symmetric = false;
    Evidence evidence;
};

// Which constant operand of an operator is a weight.
struct WeightRule {
    enum class PerChannel : std::uint8_t { always, ungrouped, never };  // ungrouped: only where `group` is 1
    std::string op_type;                                                // of ONNX's own domain
    std::size_t input = 1;
    PerChannel per_channel = PerChannel::never;  // where per channel is asked for
    int channel_axis = 0;  // of the weight; from the end where negative; weights of rank 0 and 1 have none
    std::string
        transposed_by;  // an integer attribute that, where not 0, swaps the weight's last two axes; or ""
    Evidence evidence;
};

// Inputs of an operator that get no encoding: biases, settings.
struct SkipRule {
    std::string op_type;  // of ONNX's own domain
    std::vector<std::size_t> inputs;
    Evidence evidence;
};

// An operator whose output goes through another one in the same kernel, where nothing else reads it: the
// encoding of the other's output is the one used.
struct FusionRule {
    std::string op_type;  // of ONNX's own domain, as the next two
    std::string into;
    std::vector<std::string> after;  // the operators that must have made its first input; empty: any
    Evidence evidence;
};

// An operator whose output is encoded as its inputs are.
struct SharingRule {
    enum class With : std::uint8_t {
        first_input,  // the output takes the encoding of the first input
        all_inputs,   // one encoding that holds all of them is that of the output and of every input
    };
    std::string op_type;  // of ONNX's own domain
    With with = With::first_input;
    Evidence evidence;
};

// An operator whose output has the same encoding whatever the data.
struct FixedRule {
    struct Grid {
        int bits = 8;
        bool symmetric = false;  // whether it is for symmetric activations
        double step = 1;
        std::int64_t offset = 0;  // Qualcomm's: the negative zero point
    };
    std::string op_type;  // of ONNX's own domain
    std::vector<Grid> grids;
    Evidence evidence;

    // The grid for such activations, or nullptr: then there is none fixed.
    const Grid* grid(int bits, bool symmetric) const;
};

// Several operators that the compiler makes one of: what lies between them has no tensor there.
struct FusionPattern {
    std::string name;
    std::vector<PatternForm> forms;  // any of them; the longer ones first
    bool keeps_entries = false;  // where the fusion is not sure: what lies between is encoded all the same
    Evidence evidence;
};

// How biases are encoded where a run asks for it; else they get no encoding.
struct BiasRule {
    std::vector<std::string> op_types;  // of ONNX's own domain: inputs are data, weight, bias
    std::vector<int> widths;            // 32: the scale is that of the data times that of the weight
    Evidence evidence;
};

// How a simulation computes unless a run says otherwise.
struct SimulationRule {
    SimulationSwitches switches;
    Evidence evidence;
    bool has_chain = false;  // the target's integer arithmetic is known
    Evidence chain_evidence;
};

// A least range with a name of its own, e.g. of a version of the compiler.
struct NamedLeastRange {
    std::string name;
    double value = 0;
};

// How encodings are handed to the converter.
struct HandOver {
    std::vector<std::int64_t> channels_last_ranks;  // of inputs that it keeps with their channels last
    // What a user runs, in this order, with {model}, {encodings}, {list}, {stem}, {activation_bits},
    // {weight_bits} and {bias_bits} to be filled in.
    std::vector<std::string> commands;
    Evidence evidence;
};
// The names between braces that a command may have.
std::span<const std::string_view> hand_over_places();

struct CircleRules;  // target/circle_rules.h
struct TidlRules;    // target/tidl_rules.h

// A compiler or device: the rules of configs/targets/<name>.yaml.
struct Target {
    std::string name;
    std::string summary;
    std::string default_method;                // as parse_method takes it
    std::vector<std::string> default_formats;  // names of the format registry, all written; at least one
    Evidence defaults_evidence;
    double least_range = 0;
    Rounding rounding = Rounding::half_away;  // of an offset
    bool power_of_two = false;                // every step
    bool include_zero = true;                 // in asymmetric ranges
    bool full_steps = false;                  // GridRules::full_steps, and the next
    double narrow_step = 0;
    ValuePolicy nonfinite = ValuePolicy::skip;  // NaN and infinities
    ValuePolicy masks = ValuePolicy::skip;
    Evidence arithmetic_evidence;
    ActivationRule activations;
    WeightPrecision weights;
    ConstantRule constants;
    std::vector<WeightRule> weight_rules;
    std::vector<SkipRule> skip_rules;
    std::vector<FusionRule> fusion_rules;
    std::vector<FusionPattern> fusion_patterns;  // in the order in which they are looked for
    std::vector<SharingRule> sharing_rules;
    std::vector<FixedRule> fixed_rules;
    std::optional<BiasRule> biases;
    SimulationRule simulation;
    HandOver hand_over;
    std::vector<NamedLeastRange> least_ranges;
    // Set: operators in the rules are those of .circle files, and these rules hold as well.
    std::shared_ptr<const CircleRules> circle;
    std::shared_ptr<const TidlRules> tidl;  // set: tensors are those of TIDL's layers (target/tidl_layers.h)
    bool scale_is_multiplier = false;       // what `scale` means in an override for this target: 1 / step

    // What `arithmetic` says of every grid.
    GridRules grid_rules() const;
    // The rule for an input of an operator, or nullptr.
    const WeightRule* weight_rule(const std::string& op_type, std::size_t input) const;
    const SkipRule* skip_rule(const std::string& op_type, std::size_t input) const;
    const SharingRule* sharing_rule(const std::string& op_type) const;
    const FixedRule* fixed_rule(const std::string& op_type) const;
    // The rule by which the output of `op_type` goes into `into`, or nullptr.
    const FusionRule* fusion_rule(const std::string& op_type, const std::string& into) const;
};

// Parses a target's YAML; the keys are those of configs/targets/snpe.yaml. One Error lists all faults of the
// file, each "file:line:column: ..." with what was expected, what was found and the nearest key.
Target parse_target(const std::string& text, const std::string& file);

// The targets built in, from configs/targets, in alphabetical order.
std::vector<std::string> builtin_target_names();

// The built-in target of that name, or the one in `replacement`, which must have that name. Errors offer the
// nearest.
Target load_target(const std::string& name, const std::optional<std::filesystem::path>& replacement = {});

}  // namespace qcalib
