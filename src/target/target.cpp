#include "target/target.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "target/builtin_targets.h"

namespace qcalib {

std::string_view name_of(Confidence confidence) {
    switch (confidence) {
        case Confidence::verified:
            return "verified";
        case Confidence::documented:
            return "documented";
        case Confidence::reported:
            return "reported";
        case Confidence::assumed:
            return "assumed";
    }
    return "";
}

GridRules Target::grid_rules() const {
    GridRules rules;
    rules.least_range = least_range;
    rules.power_of_two = power_of_two;
    rules.include_zero = include_zero;
    rules.rounding = rounding;
    rules.full_steps = full_steps;
    rules.narrow_step = narrow_step;
    return rules;
}

const WeightRule* Target::weight_rule(const std::string& op_type, std::size_t input) const {
    const auto found = std::find_if(weight_rules.begin(), weight_rules.end(), [&](const WeightRule& rule) {
        return rule.op_type == op_type && rule.input == input;
    });
    return found == weight_rules.end() ? nullptr : &*found;
}

const SkipRule* Target::skip_rule(const std::string& op_type, std::size_t input) const {
    const auto found = std::find_if(skip_rules.begin(), skip_rules.end(), [&](const SkipRule& rule) {
        return rule.op_type == op_type &&
               std::find(rule.inputs.begin(), rule.inputs.end(), input) != rule.inputs.end();
    });
    return found == skip_rules.end() ? nullptr : &*found;
}

const SharingRule* Target::sharing_rule(const std::string& op_type) const {
    const auto found = std::find_if(sharing_rules.begin(), sharing_rules.end(),
                                    [&](const SharingRule& rule) { return rule.op_type == op_type; });
    return found == sharing_rules.end() ? nullptr : &*found;
}

const FixedRule* Target::fixed_rule(const std::string& op_type) const {
    const auto found = std::find_if(fixed_rules.begin(), fixed_rules.end(),
                                    [&](const FixedRule& rule) { return rule.op_type == op_type; });
    return found == fixed_rules.end() ? nullptr : &*found;
}

const FixedRule::Grid* FixedRule::grid(int bits, bool symmetric) const {
    const auto found = std::find_if(grids.begin(), grids.end(), [&](const Grid& grid) {
        return grid.bits == bits && grid.symmetric == symmetric;
    });
    return found == grids.end() ? nullptr : &*found;
}

const FusionRule* Target::fusion_rule(const std::string& op_type, const std::string& into) const {
    const auto found = std::find_if(fusion_rules.begin(), fusion_rules.end(), [&](const FusionRule& rule) {
        return rule.op_type == op_type && rule.into == into;
    });
    return found == fusion_rules.end() ? nullptr : &*found;
}

std::vector<std::string> builtin_target_names() {
    std::vector<std::string> names;
    for (const BuiltinTarget& target : builtin_targets()) names.emplace_back(target.name);
    return names;
}

Target load_target(const std::string& name, const std::optional<std::filesystem::path>& replacement) {
    if (replacement) {
        Target target = parse_target(read_text_file(*replacement), replacement->string());
        if (target.name == name) return target;
        fail("{}: expected the rules of target '{}', found those of '{}'", replacement->string(),
             printable(name), target.name);
    }
    for (const BuiltinTarget& target : builtin_targets()) {
        if (target.name != name) continue;
        return parse_target(std::string(target.text), fmt::format("configs/targets/{}.yaml", name));
    }
    const std::vector<std::string> names = builtin_target_names();
    fail("target '{}': expected one of {}{}", printable(name), join(names, ", "), did_you_mean(name, names));
}

std::span<const std::string_view> hand_over_places() {
    static constexpr std::array<std::string_view, 7> places{
        "model", "encodings", "list", "stem", "activation_bits", "weight_bits", "bias_bits"};
    return places;
}

}  // namespace qcalib
