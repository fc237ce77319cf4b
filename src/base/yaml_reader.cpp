#include "base/yaml_reader.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

// The value as a message shows it.
std::string shown(const YAML::Node& node) {
    constexpr std::size_t most = 40;
    if (node.IsMap()) return "a map";
    if (node.IsSequence()) return "a list";
    if (!node.IsScalar()) return "nothing";
    const std::string& text = node.Scalar();
    return fmt::format("'{}'", printable(text.size() > most ? text.substr(0, most) + "..." : text));
}

// A scalar written without quotes, which may be a number or a bool.
bool is_plain(const YAML::Node& node) {
    return node.IsScalar() && node.Tag() == "?";
}

template <typename Parse>
auto parsed(const YAML::Node& node, Parse parse) -> std::optional<decltype(parse(std::string(), ""))> {
    if (!is_plain(node)) return std::nullopt;
    try {
        return parse(node.Scalar(), "");
    } catch (const Error&) {
        return std::nullopt;
    }
}

const YamlSection& section_of(std::span<const YamlSection> schema, const std::string& name) {
    const auto found =
        std::find_if(schema.begin(), schema.end(), [&](const YamlSection& one) { return one.name == name; });
    assert(found != schema.end());
    return *found;
}

bool reads_as_text(const YAML::Node& node) {
    if (!node.IsScalar()) return false;
    if (node.Tag() == "!") return true;
    return is_plain(node) && node.Scalar() != "true" && node.Scalar() != "false" && !parsed(node, parse_real);
}

}  // namespace

void YamlFaults::add(const YAML::Mark& mark, std::string text) {
    faults_.push_back({std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1, std::move(text)});
}

void YamlFaults::throw_if_any() const {
    if (faults_.empty()) return;
    std::vector<Fault> sorted = faults_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Fault& a, const Fault& b) {
        return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    std::vector<std::string> lines;
    lines.reserve(sorted.size());
    for (const Fault& fault : sorted) {
        lines.push_back(fmt::format("{}:{}:{}: {}", file_, fault.line, fault.column, fault.text));
    }
    throw Error(join(lines, "\n"));
}

YAML::Node parse_yaml(const std::string& text, const std::string& file) {
    YamlFaults faults(file);
    std::vector<YAML::Node> documents;
    try {
        documents = YAML::LoadAll(text);
    } catch (const YAML::Exception& exception) {
        faults.add(exception.mark, fmt::format("expected YAML, found a fault: {}", exception.msg));
    }
    faults.throw_if_any();
    if (documents.empty()) faults.add({}, "expected a map, found nothing");
    if (documents.size() > 1) faults.add(documents[1].Mark(), "expected one document, found a second");
    faults.throw_if_any();
    return documents.front();
}

YamlMap::YamlMap(const YAML::Node& node, const std::string& section, std::span<const YamlSection> schema,
                 YamlFaults& faults)
    : mark_(node.Mark()), section_(&section_of(schema, section)), schema_(schema), faults_(&faults) {
    readable_ = node.IsMap();
    if (!readable_) {
        faults.add(mark_, fmt::format("{}: expected a map with {}, found {}", section,
                                      join(section_->keys, ", "), shown(node)));
        return;
    }
    for (const auto& entry : node) entries_.emplace_back(entry.first, entry.second);
    check_keys();
}

void YamlMap::check_keys() const {
    std::vector<std::string> seen;
    for (const auto& [key, value] : entries_) {
        if (!key.IsScalar()) {
            faults_->add(key.Mark(), fmt::format("{}: expected a key, found {}", section_->name, shown(key)));
            continue;
        }
        const std::string& name = key.Scalar();
        if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
            faults_->add(key.Mark(), fmt::format("{}: key {} is given twice", section_->name, shown(key)));
        } else if (std::find(section_->keys.begin(), section_->keys.end(), name) == section_->keys.end()) {
            faults_->add(key.Mark(),
                         fmt::format("{}: unknown key {}{}", section_->name, shown(key), where_known(name)));
        }
        seen.push_back(name);
    }
}

std::string YamlMap::where_known(const std::string& key) const {
    std::vector<std::string> sections;
    for (const YamlSection& section : schema_) {
        if (std::find(section.keys.begin(), section.keys.end(), key) == section.keys.end()) continue;
        sections.push_back(section.name);
    }
    if (!sections.empty()) return fmt::format(": it belongs in {}", join(sections, " or "));
    return fmt::format(": expected one of {}{}", join(section_->keys, ", "),
                       did_you_mean(key, section_->keys));
}

const YAML::Node* YamlMap::find(const std::string& key) const {
    assert(std::find(section_->keys.begin(), section_->keys.end(), key) != section_->keys.end());
    for (const auto& [name, value] : entries_) {
        if (name.IsScalar() && name.Scalar() == key) return &value;
    }
    return nullptr;
}

const YAML::Node* YamlMap::require(const std::string& key) const {
    const YAML::Node* value = find(key);
    if (value == nullptr && readable_)
        faults_->add(mark_, fmt::format("{}: key '{}' is missing", section_->name, key));
    return value;
}

YAML::Mark YamlMap::mark(const std::string& key) const {
    for (const auto& [name, value] : entries_) {
        if (name.IsScalar() && name.Scalar() == key) return value.IsNull() ? name.Mark() : value.Mark();
    }
    return mark_;
}

void YamlMap::wrong_value(const std::string& key, const YAML::Node& node, std::string_view expected) const {
    faults_->add(node.IsNull() ? mark(key) : node.Mark(),
                 fmt::format("{}: expected {}, found {}", key, expected, shown(node)));
}

std::string YamlMap::text_of(const std::string& key, const YAML::Node& node) const {
    if (reads_as_text(node) && !trim(node.Scalar()).empty()) return node.Scalar();
    wrong_value(key, node, "text");
    return "";
}

std::optional<std::int64_t> YamlMap::integer_of(const std::string& key, const YAML::Node& node,
                                                std::int64_t least, std::int64_t greatest) const {
    const auto value = parsed(node, parse_integer);
    if (value && *value >= least && *value <= greatest) return value;
    wrong_value(key, node, fmt::format("a whole number from {} to {}", least, greatest));
    return std::nullopt;
}

std::string YamlMap::text(const std::string& key) const {
    const YAML::Node* node = require(key);
    return node == nullptr ? "" : text_of(key, *node);
}

std::string YamlMap::name(const std::string& key) const {
    const YAML::Node* node = require(key);
    if (node == nullptr) return "";
    if (node->IsScalar() && !node->Scalar().empty()) return node->Scalar();
    wrong_value(key, *node, "a name");
    return "";
}

bool YamlMap::boolean(const std::string& key) const {
    const YAML::Node* node = require(key);
    if (node == nullptr) return false;
    if (is_plain(*node) && (node->Scalar() == "true" || node->Scalar() == "false"))
        return node->Scalar() == "true";
    wrong_value(key, *node, "true or false");
    return false;
}

std::optional<std::int64_t> YamlMap::integer(const std::string& key, std::int64_t least,
                                             std::int64_t greatest) const {
    const YAML::Node* node = require(key);
    return node == nullptr ? std::nullopt : integer_of(key, *node, least, greatest);
}

double YamlMap::positive_real(const std::string& key) const {
    const YAML::Node* node = require(key);
    if (node == nullptr) return 1;
    const auto value = parsed(*node, parse_real);
    if (value && std::isfinite(*value) && *value > 0) return *value;
    wrong_value(key, *node, "a number above 0");
    return 1;
}

std::size_t YamlMap::choice(const std::string& key, std::initializer_list<const char*> choices) const {
    const YAML::Node* node = require(key);
    if (node == nullptr) return 0;
    const std::vector<std::string> names(choices.begin(), choices.end());
    const std::string text = node->IsScalar() ? node->Scalar() : "";
    const auto found = std::find(names.begin(), names.end(), text);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    fault(key, fmt::format("{}: expected one of {}, found {}{}", key, join(names, ", "), shown(*node),
                           did_you_mean(text, names)));
    return 0;
}

std::vector<YAML::Node> YamlMap::list(const std::string& key, std::string_view of) const {
    const YAML::Node* node = require(key);
    if (node == nullptr) return {};
    std::vector<YAML::Node> items;
    if (node->IsSequence()) {
        for (const YAML::Node& item : *node) items.push_back(item);
    }
    if (items.empty()) {
        fault(key, fmt::format("{}: expected a list of {}, found {}", key, of,
                               node->IsSequence() ? "an empty one" : shown(*node)));
    }
    return items;
}

std::vector<std::string> YamlMap::texts(const std::string& key) const {
    std::vector<std::string> values;
    for (const YAML::Node& item : list(key, "texts")) values.push_back(text_of(key, item));
    return values;
}

std::vector<std::string> YamlMap::one_or_more_texts(const std::string& key) const {
    const YAML::Node* node = find(key);
    if (node != nullptr && node->IsSequence()) return texts(key);
    return {text(key)};
}

std::vector<std::int64_t> YamlMap::integers(const std::string& key, std::int64_t least,
                                            std::int64_t greatest) const {
    std::vector<std::int64_t> values;
    for (const YAML::Node& item : list(key, "whole numbers")) {
        if (const auto value = integer_of(key, item, least, greatest)) values.push_back(*value);
    }
    return values;
}

std::vector<double> YamlMap::reals(const std::string& key) const {
    std::vector<double> values;
    for (const YAML::Node& item : list(key, "numbers")) {
        const auto value = parsed(item, parse_real);
        if (value && std::isfinite(*value)) {
            values.push_back(*value);
        } else {
            wrong_value(key, item, "a finite number");
        }
    }
    return values;
}

YamlMap YamlMap::unreadable(const std::string& section) const {
    YamlMap map = *this;
    map.section_ = &section_of(schema_, section);
    map.readable_ = false;
    map.entries_.clear();
    return map;
}

YamlMap YamlMap::map(const std::string& key, const std::string& section) const {
    const YAML::Node* node = require(key);
    if (node == nullptr) return unreadable(section);
    if (!node->IsNull()) return {*node, section, schema_, *faults_};
    wrong_value(key, *node, fmt::format("a map with {}", join(section_of(schema_, section).keys, ", ")));
    return unreadable(section);
}

std::vector<YamlMap> YamlMap::maps(const std::string& key, const std::string& section) const {
    std::vector<YamlMap> values;
    for (const YAML::Node& item : list(key, "maps")) values.emplace_back(item, section, schema_, *faults_);
    return values;
}

std::vector<std::pair<std::string, YamlMap>> YamlMap::named_maps(const std::string& key,
                                                                 const std::string& section) const {
    const YAML::Node* node = require(key);
    if (node == nullptr) return {};
    if (!node->IsMap() || node->size() == 0) {
        wrong_value(key, *node, "a map of maps");
        return {};
    }
    std::vector<std::pair<std::string, YamlMap>> values;
    for (const auto& entry : *node) {
        const bool repeated = std::any_of(values.begin(), values.end(), [&](const auto& value) {
            return entry.first.IsScalar() && value.first == entry.first.Scalar();
        });
        if (!entry.first.IsScalar() || repeated) {
            faults_->add(entry.first.Mark(), fmt::format("{}: expected each name once, found {}{}", key,
                                                         shown(entry.first), repeated ? " again" : ""));
            continue;
        }
        values.emplace_back(entry.first.Scalar(), YamlMap(entry.second, section, schema_, *faults_));
    }
    return values;
}

}  // namespace qcalib
