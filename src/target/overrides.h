#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml_reader.h"
#include "tensor/range.h"

namespace qcalib {

// What a user says of the encoding of tensors. Unset fields are left to weaker overrides, the base, the
// target's rules and the method.
struct Override {
    // Who says it; a later one of these is the stronger.
    enum class Source : std::uint8_t { pipeline, command_line };

    std::string pattern;                // a tensor's name, or a glob with * and ?
    std::optional<std::string> target;  // the only target it is for
    std::optional<Range> range;         // min < max
    std::optional<double> step;         // real value of one code, > 0; the range follows
    std::optional<double> scale;        // only with `target`, which says what it means: a step or 1 / step
    std::optional<int> bits;            // 2 to 32
    std::optional<bool> symmetric;
    std::optional<bool> skip;         // true: no encoding; false: undoes a weaker one
    std::optional<std::string> copy;  // the tensor whose encoding this one gets
    Source source = Source::command_line;
    std::string place;  // "--override" or "pipeline.yaml:12:3": what messages start with
};

// Parses what --override takes: "NAME: {step: 0.125}". NAME may hold any bytes but ": {", or be quoted as in
// YAML. Faults are one Error, a line each with the column, what was expected and the nearest key.
std::vector<Override> parse_override(const std::string& text);

// Parses the `overrides` of a pipeline: a map from names or globs to such settings, or a list of such maps
// where order or repetition matters. Faults are added to `faults`; `file` is for the places of overrides.
std::vector<Override> parse_overrides(const YAML::Node& node, const std::string& file, YamlFaults& faults);

// A line of documentation of each key of an override.
struct OverrideKey {
    std::string_view name;
    std::string_view value;  // its form: "[min, max]"
    std::string_view summary;
};
std::span<const OverrideKey> override_keys();

// Those of several overrides that are for one tensor and one target, key by key.
struct TensorOverride {
    std::optional<Range> range;
    std::optional<double> step;
    std::optional<int> bits;
    std::optional<bool> symmetric;
    bool skip = false;
    std::optional<std::string> copy;
    std::vector<std::size_t> from;  // indices of the overrides that gave a key, strongest first

    bool empty() const { return from.empty(); }
};

// The overrides of a run that are for one target. The order of precedence, here and nowhere else:
//   1. the command line before the pipeline;
//   2. then the exact name before globs;
//   3. then one for the target alone before one for all;
//   4. then the later before the earlier.
// Keys are taken one by one in this order, so that a weaker override may add `bits` to a stronger `range`.
// `range`, `step`, `skip: true` and `copy` exclude each other: the strongest of them holds; `skip: true` and
// `copy` say all, so that what is weaker adds nothing to them and what is stronger takes their place.
class OverrideTable {
  public:
    // `scale_is_multiplier`: whether the target's scale is 1 / step.
    OverrideTable(std::span<const Override> overrides, std::string_view target, bool scale_is_multiplier);

    // What holds for a tensor; without the override of index `left_out`, if given.
    TensorOverride of(std::string_view tensor, std::optional<std::size_t> left_out = {}) const;

    std::size_t size() const { return overrides_.size(); }
    const Override& at(std::size_t index) const { return overrides_[index]; }

    // An Error where the pattern, or the tensor that `copy` names, is none of these: it offers the nearest.
    void check_names(std::span<const std::string> names) const;

    // "--override 'conv*'": how messages name one.
    std::string label(std::size_t index) const;

  private:
    bool is_for(const Override& one, std::string_view tensor) const;

    std::vector<Override> overrides_;  // as given, but those for other targets; scale as step
};

}  // namespace qcalib
