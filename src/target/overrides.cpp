#include "target/overrides.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr int least_bits = 2;
constexpr int most_bits = 32;
constexpr double least_step = 1e-30;
constexpr double most_step = 1e30;

constexpr std::array<OverrideKey, 8> keys{{
    {"range", "[min, max]", "the range to encode, as if a method had chosen it"},
    {"step", "number", "the real value of one code; the range follows from it, from bits and symmetric"},
    {"bits", "2 to 32", "the width of the codes, one of those the target takes"},
    {"symmetric", "true or false", "whether zero lies in the middle of the codes"},
    {"skip", "true or false", "true: no encoding; false: undoes the `skip: true` of a weaker override"},
    {"copy", "tensor", "the encoding of that tensor, as it comes out in the end"},
    {"target", "{TARGET: {...}}",
     "the same keys for this target alone, and `scale`: what the target calls so, a multiplier (1 / step) to "
     "TIDL, the step to others"},
    {"scale", "number", "under `target` alone: see there"},
}};

const std::vector<YamlSection>& schema() {
    static const std::vector<YamlSection> sections{
        {"override", {"range", "step", "bits", "symmetric", "skip", "copy", "target"}},
        {"override with scale", {"range", "step", "bits", "symmetric", "skip", "copy", "target", "scale"}},
        {"override for a target", {"range", "step", "scale", "bits", "symmetric", "skip", "copy"}},
    };
    return sections;
}

std::string place_of(const std::string& file, const YAML::Mark& mark) {
    return fmt::format("{}:{}:{}", file, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1);
}

void read_range(const YamlMap& map, Override& one) {
    const std::vector<double> ends = map.reals("range");
    if (ends.empty()) return;
    constexpr double most = std::numeric_limits<float>::max();
    if (ends.size() == 2 && ends[0] < ends[1] && ends[0] >= -most && ends[1] <= most) {
        one.range = {ends[0], ends[1]};
        return;
    }
    map.fault("range", fmt::format("range: expected two numbers [min, max], the first below the second, both "
                                   "float32, found [{}]",
                                   fmt::join(ends, ", ")));
}

std::optional<double> read_step(const YamlMap& map, const std::string& key) {
    if (!map.has(key)) return std::nullopt;
    const double value = map.positive_real(key);
    if (value >= least_step && value <= most_step) return value;
    map.fault(
        key, fmt::format("{}: expected a number from {} to {}, found {}", key, least_step, most_step, value));
    return std::nullopt;
}

// Two of the keys that say where an encoding comes from, or a whole encoding with anything beside it.
void check_combination(const YamlMap& map, const Override& one, bool has_scale) {
    std::vector<std::string> sources;
    for (const char* key : {"range", "step", "copy"}) {
        if (map.has(key)) sources.emplace_back(key);
    }
    if (has_scale) sources.emplace_back("scale");
    if (sources.size() > 1) {
        map.fault(sources[1], fmt::format("{}: expected one of range, step{} and copy, found {} beside it",
                                          sources[1], has_scale ? ", scale" : "", sources[0]));
    }
    const bool more = map.has("bits") || map.has("symmetric");
    if (one.skip == true && (more || !sources.empty())) {
        map.fault("skip",
                  fmt::format("skip: expected nothing beside it, found {}",
                              sources.empty() ? (map.has("bits") ? "bits" : "symmetric") : sources.front()));
    } else if (map.has("copy") && more) {
        map.fault("copy", fmt::format("copy: expected nothing beside it, since it gives the whole encoding, "
                                      "found {}",
                                      map.has("bits") ? "bits" : "symmetric"));
    }
}

Override read_settings(const YamlMap& map, bool for_target) {
    Override one;
    if (map.has("range")) read_range(map, one);
    one.step = read_step(map, "step");
    if (for_target) one.scale = read_step(map, "scale");
    if (map.has("bits")) {
        if (const auto bits = map.integer("bits", least_bits, most_bits)) one.bits = static_cast<int>(*bits);
    }
    if (map.has("symmetric")) one.symmetric = map.boolean("symmetric");
    if (map.has("skip")) one.skip = map.boolean("skip");
    if (map.has("copy")) one.copy = map.name("copy");
    check_combination(map, one, for_target && map.has("scale"));
    return one;
}

bool says_something(const Override& one) {
    return one.range || one.step || one.scale || one.bits || one.symmetric || one.skip || one.copy;
}

void read_one(const std::string& pattern, const YAML::Node& settings, const std::string& place,
              Override::Source source, YamlFaults& faults, std::vector<Override>& overrides) {
    const bool scaled = settings.IsMap() && settings["scale"].IsDefined();
    const YamlMap map(settings, scaled ? "override with scale" : "override", schema(), faults);
    if (scaled) {
        map.fault("scale",
                  "scale: expected `step`, the real value of one code, or scale under a target, as target: "
                  "{tidl: {scale: 8}}: the word has opposite meanings in the field");
    }
    const auto add = [&](Override one, std::optional<std::string> target) {
        one.pattern = pattern;
        one.target = std::move(target);
        one.source = source;
        one.place = place;
        overrides.push_back(std::move(one));
    };
    Override general = read_settings(map, false);
    const bool any = says_something(general);
    if (any) add(std::move(general), std::nullopt);
    if (map.has("target")) {
        for (const auto& [target, own] : map.named_maps("target", "override for a target")) {
            add(read_settings(own, true), target);
        }
    } else if (!any && settings.IsMap() && settings.size() == 0) {
        map.fault("range", fmt::format("override: expected one of {}, found an empty map",
                                       join(schema()[0].keys, ", ")));
    }
}

void read_named(const YAML::Node& node, const std::string& file, YamlFaults& faults,
                std::vector<Override>& overrides) {
    std::vector<std::string> seen;
    for (const auto& entry : node) {
        if (!entry.first.IsScalar() || entry.first.Scalar().empty()) {
            faults.add(entry.first.Mark(), "overrides: expected the name of a tensor or a glob");
            continue;
        }
        const std::string& name = entry.first.Scalar();
        if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
            faults.add(entry.first.Mark(),
                       fmt::format("overrides: '{}' is given twice; make it a list of maps where the order "
                                   "matters",
                                   printable(name)));
        }
        seen.push_back(name);
        read_one(name, entry.second, place_of(file, entry.first.Mark()), Override::Source::pipeline, faults,
                 overrides);
    }
}

// Where the settings of "NAME: {...}" start, and NAME.
struct FlagParts {
    std::string name;
    std::size_t settings = 0;
};

FlagParts split_flag(const std::string& text) {
    for (std::size_t brace = text.find('{'); brace != std::string::npos; brace = text.find('{', brace + 1)) {
        const std::string_view before = trim(std::string_view(text).substr(0, brace));
        if (before.empty() || before.back() != ':') continue;
        std::string name(trim(before.substr(0, before.size() - 1)));
        if (name.size() >= 2 && name.front() == name.back() && (name.front() == '\'' || name.front() == '"'))
            name = parse_yaml(name, "--override").Scalar();
        if (!name.empty()) return {name, brace};
    }
    fail("--override: expected 'NAME: {{step: 0.125}}', with keys {}, found '{}'",
         join(schema()[0].keys, ", "), printable(text));
}

}  // namespace

std::span<const OverrideKey> override_keys() {
    return keys;
}

std::vector<Override> parse_override(const std::string& text) {
    const FlagParts parts = split_flag(text);
    const std::string file = fmt::format("--override '{}'", printable(text));
    // Blanks in place of the name keep the columns of faults.
    const YAML::Node node = parse_yaml(std::string(parts.settings, ' ') + text.substr(parts.settings), file);
    YamlFaults faults(file);
    std::vector<Override> overrides;
    read_one(parts.name, node, "--override", Override::Source::command_line, faults, overrides);
    faults.throw_if_any();
    return overrides;
}

std::vector<Override> parse_overrides(const YAML::Node& node, const std::string& file, YamlFaults& faults) {
    std::vector<Override> overrides;
    if (node.IsMap()) {
        read_named(node, file, faults, overrides);
        return overrides;
    }
    if (!node.IsSequence()) {
        faults.add(node.Mark(),
                   "overrides: expected a map from names or globs to settings, as conv1: {step: "
                   "0.125}, or a list of such maps");
        return overrides;
    }
    for (const YAML::Node& item : node) {
        if (item.IsMap()) {
            read_named(item, file, faults, overrides);
        } else {
            faults.add(item.Mark(), "overrides: expected a map from names or globs to settings");
        }
    }
    return overrides;
}

OverrideTable::OverrideTable(std::span<const Override> overrides, std::string_view target,
                             bool scale_is_multiplier) {
    for (const Override& given : overrides) {
        if (given.target && *given.target != target) continue;
        Override one = given;
        if (one.scale) one.step = scale_is_multiplier ? 1 / *one.scale : *one.scale;
        overrides_.push_back(std::move(one));
    }
}

bool OverrideTable::is_for(const Override& one, std::string_view tensor) const {
    if (one.pattern == tensor) return true;
    return glob_match(one.pattern, tensor) && one.copy != tensor;  // a glob makes nothing a copy of itself
}

TensorOverride OverrideTable::of(std::string_view tensor, std::optional<std::size_t> left_out) const {
    std::vector<std::size_t> matching;
    for (std::size_t i = 0; i < overrides_.size(); ++i) {
        if (i != left_out && is_for(overrides_[i], tensor)) matching.push_back(i);
    }
    const auto rank = [&](std::size_t i) {
        const Override& one = overrides_[i];
        return std::tuple(one.source, one.pattern == tensor, one.target.has_value(), i);
    };
    std::sort(matching.begin(), matching.end(),
              [&](std::size_t a, std::size_t b) { return rank(a) > rank(b); });

    TensorOverride result;
    bool sourced = false;  // range, step or skip: false is said
    for (const std::size_t i : matching) {
        const Override& one = overrides_[i];
        const bool whole = one.skip == true || one.copy;
        if (whole && (sourced || !result.from.empty())) break;  // what is stronger takes its place
        bool gave = false;
        if (!sourced && (one.range || one.step)) {
            result.range = one.range;
            result.step = one.step;
            sourced = gave = true;
        }
        if (!result.bits && one.bits) {
            result.bits = one.bits;
            gave = true;
        }
        if (!result.symmetric && one.symmetric) {
            result.symmetric = one.symmetric;
            gave = true;
        }
        if (one.skip == false) gave = true;
        if (whole) {
            result.skip = one.skip == true;
            result.copy = one.copy;
            gave = true;
        }
        if (gave) result.from.push_back(i);
        if (whole) break;
    }
    return result;
}

void OverrideTable::check_names(std::span<const std::string> names) const {
    const auto known = [&](const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const Override& one : overrides_) {
        const bool matched = std::any_of(names.begin(), names.end(),
                                         [&](const std::string& name) { return is_for(one, name); });
        if (!matched) {
            fail("{}: no tensor of the model matches '{}'{}", one.place, printable(one.pattern),
                 did_you_mean(one.pattern, names));
        }
        if (one.copy && !known(*one.copy)) {
            fail("{}: '{}': copy: expected a tensor of the model, found '{}'{}", one.place,
                 printable(one.pattern), printable(*one.copy), did_you_mean(*one.copy, names));
        }
    }
}

std::string OverrideTable::label(std::size_t index) const {
    return fmt::format("{} '{}'", overrides_[index].place, printable(overrides_[index].pattern));
}

}  // namespace qcalib
