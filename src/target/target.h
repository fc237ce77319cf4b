#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ranges/range_method.h"

namespace qcalib {

// Symmetry, width and granularity of a kind of tensor.
struct Precision {
    int bits = 8;
    bool symmetric = false;
    bool per_channel = false;
};

// How the constant operand of an operator is encoded.
struct WeightRule {
    std::string op_type;
    std::size_t input = 1;     // which input is the weight
    int channel_axis = 0;      // of the weight tensor, for per-channel encodings
    bool per_channel_allowed = true;
    std::string source;        // where the rule comes from and how sure it is
};

// An operator whose inputs at these places get no encoding (a bias, a shape).
struct SkipRule {
    std::string op_type;
    std::vector<std::size_t> inputs;
    std::string source;
};

// A compiler or device: the rules of configs/targets/<name>.yaml.
struct Target {
    std::string name;
    std::string summary;
    std::string default_method;
    std::string default_format;   // a name of the format registry
    double least_range = 0;
    std::string rounding;         // of an offset: "half-away" or "half-even"
    Precision activations;
    Precision weights;
    Precision constants;          // other float constants that meet an activation
    std::vector<WeightRule> weight_rules;
    std::vector<SkipRule> skip_rules;
};

// Parses a target's YAML. Errors carry "file:line:column", what was expected and the nearest key.
Target parse_target(const std::string& text, const std::string& file);

// The targets built in, from configs/targets.
std::vector<std::string> builtin_target_names();

// The built-in target of that name, or the one in `replacement`. Errors offer the nearest name.
Target load_target(const std::string& name, const std::optional<std::filesystem::path>& replacement = {});

}  // namespace qcalib
