#include "pipeline/validation.h"

#include <algorithm>
#include <climits>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "pipeline/pipeline.h"
#include "pipeline/schema.h"

namespace qcalib {

namespace {

using Kind = PipelineNode::Kind;

PipelineNode map_around(const std::string& key, const PipelineNode& value) {
    PipelineNode map;
    map.place = value.place;
    map.yaml = value.yaml;
    map.add(key, value.place, value);
    return map;
}

void write_out(PipelineNode& map, const PipelineSection& section);

void write_out_one(PipelineNode& value, const PipelineKey& key) {
    if (key.type == PipelineType::step) {
        if (value.kind != Kind::scalar || value.scalar.empty()) return;
        PipelineNode nothing;
        nothing.place = value.place;
        value = map_around(value.scalar, nothing);
        return;
    }
    const PipelineSection& section = pipeline_section(key.section);
    const bool is_short = value.kind == Kind::scalar || value.kind == Kind::list;
    if (is_short && !section.short_key.empty()) value = map_around(section.short_key, value);
    write_out(value, section);
}

void write_out_value(PipelineNode& value, const PipelineKey& key) {
    if (key.type != PipelineType::section && key.type != PipelineType::step) return;
    if (key.count != PipelineCount::some) {
        write_out_one(value, key);
        return;
    }
    if (value.kind == Kind::scalar || value.kind == Kind::map) {
        PipelineNode list;
        list.kind = Kind::list;
        list.place = value.place;
        list.yaml = value.yaml;
        list.items.push_back(std::move(value));
        value = std::move(list);
    }
    for (PipelineNode& item : value.items) write_out_one(item, key);
}

void write_out(PipelineNode& map, const PipelineSection& section) {
    for (PipelineNode::Entry& entry : map.entries) {
        if (const PipelineKey* key = section.find(entry.key)) write_out_value(entry.value, *key);
    }
}

// Reads every value against the schema and takes out what is wrong. Members answer whether the value may
// stay.
class Validation {
  public:
    explicit Validation(PipelineFaults& faults) : faults_(faults) {}

    bool section(PipelineNode& node, const PipelineSection& section) {
        if (node.kind != Kind::map && node.kind != Kind::nothing) {
            return wrong(node, section.name, fmt::format("a map with {}", join(section.key_names(), ", ")));
        }
        check_presence(node, section);
        std::erase_if(node.entries, [&](PipelineNode::Entry& entry) {
            const PipelineKey* key = section.find(entry.key);
            if (key != nullptr) return !value(entry.value, *key);
            unknown_key(entry, section);
            return true;
        });
        return true;
    }

  private:
    bool wrong(const PipelineNode& node, const std::string& key, const std::string& expected,
               const std::string& hint = "") {
        if (node.faulty) return false;
        faults_.add(node.place,
                    fmt::format("{}: expected {}, found {}{}", key, expected, node.shown(), hint));
        return false;
    }

    void unknown_key(const PipelineNode::Entry& entry, const PipelineSection& section) {
        faults_.add(entry.place, fmt::format("{}: unknown key '{}'{}", section.name, printable(entry.key),
                                             where_known(entry.key, section)));
    }

    static std::string where_known(const std::string& key, const PipelineSection& section) {
        std::vector<std::string> homes;
        std::string elsewhere;
        for (const PipelineSection& other : pipeline_schema()) {
            if (other.find(key) != nullptr) homes.push_back(other.name);
            const std::string nearest = nearest_name(key, other.key_names());
            if (elsewhere.empty() && !nearest.empty() && other.name != section.name) {
                elsewhere = fmt::format(" (did you mean '{}' of {}?)", nearest, other.name);
            }
        }
        const std::string here = did_you_mean(key, section.key_names());
        if (!homes.empty()) return fmt::format(": it belongs in {}{}", join(homes, " or "), here);
        return fmt::format(": expected one of {}{}", join(section.key_names(), ", "),
                           here.empty() ? elsewhere : here);
    }

    void check_presence(const PipelineNode& node, const PipelineSection& section) {
        for (const PipelineKey& key : section.keys) {
            if (!key.required || node.find(key.name) != nullptr) continue;
            faults_.add(node.place, fmt::format("{}: key '{}' is missing", section.name, key.name));
        }
        const std::vector<std::string>& keys = section.one_of;
        if (keys.empty()) return;
        const PipelineNode::Entry* first = nullptr;
        for (const PipelineNode::Entry& entry : node.entries) {
            if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) continue;
            if (first != nullptr) {
                faults_.add(entry.place, fmt::format("{}: expected one of {}, found '{}' beside '{}'",
                                                     section.name, join(keys, ", "), entry.key, first->key));
            } else {
                first = &entry;
            }
        }
        if (first != nullptr) return;
        faults_.add(node.place,
                    fmt::format("{}: expected one of {}, found none", section.name, join(keys, ", ")));
    }

    bool value(PipelineNode& node, const PipelineKey& key) {
        switch (key.count) {
            case PipelineCount::one:
                return one(node, key);
            case PipelineCount::some:
                return some(node, key);
            default:
                return named(node, key);
        }
    }

    bool some(PipelineNode& node, const PipelineKey& key) {
        if (node.kind != Kind::list) return one(node, key);
        if (node.items.empty()) return wrong(node, key.name, "at least one item");
        std::erase_if(node.items, [&](PipelineNode& item) { return !one(item, key); });
        return !node.items.empty();
    }

    bool named(PipelineNode& node, const PipelineKey& key) {
        if (node.kind != Kind::map) return wrong(node, key.name, "a map from names to values");
        std::erase_if(node.entries, [&](PipelineNode::Entry& entry) {
            PipelineKey item = key;
            item.name += "." + printable(entry.key);
            return key.count == PipelineCount::named_lists ? !some(entry.value, item)
                                                           : !one(entry.value, item);
        });
        return true;
    }

    bool one(PipelineNode& node, const PipelineKey& key) {
        if (node.faulty) return false;
        switch (key.type) {
            case PipelineType::anything:
                return true;
            case PipelineType::section:
                return section(node, pipeline_section(key.section));
            case PipelineType::step:
                return step(node, key);
            default:
                return scalar(node, key);
        }
    }

    bool step(const PipelineNode& node, const PipelineKey& key) {
        if (node.kind == Kind::map && node.entries.size() != 1) {
            faults_.add(node.place, fmt::format("{}: expected {}, found {} keys in one map", key.name,
                                                expected_value(key), node.entries.size()));
            return false;
        }
        if (node.kind != Kind::map) return wrong(node, key.name, expected_value(key));
        const PipelineNode& parameters = node.entries.front().value;
        if (parameters.kind == Kind::map || parameters.kind == Kind::nothing) return true;
        return wrong(parameters, node.entries.front().key, "a map of parameters");
    }

    bool scalar(const PipelineNode& node, const PipelineKey& key);

    PipelineFaults& faults_;
};

bool is_word_for_bool(const std::string& text) {
    return text == "true" || text == "false";
}

std::optional<std::int64_t> whole_number(const std::string& text) {
    try {
        return parse_integer(text, "");
    } catch (const Error&) {
        return std::nullopt;
    }
}

bool is_shard(const std::string& text) {
    const std::vector<std::string> parts = split(text, '/');
    const auto part = [&](std::size_t i) { return whole_number(parts[i]); };
    return parts.size() == 2 && part(0) && part(1) && *part(0) >= 1 && *part(0) <= *part(1) &&
           *part(1) <= INT32_MAX;
}

bool is_bytes(const std::string& text) {
    try {
        return parse_bytes(text, "") > 0;
    } catch (const Error&) {
        return false;
    }
}

bool is_number_of(const PipelineNode& node, const PipelineKey& key) {
    if (node.quoted) return false;
    const std::optional<double> value = key.type == PipelineType::integer
                                            ? std::optional<double>(whole_number(node.scalar))
                                            : parse_fraction(node.scalar);
    return value && (key.open_least ? *value > key.least : *value >= key.least) &&
           (key.open_greatest ? *value < key.greatest : *value <= key.greatest);
}

bool is_scalar_of(const PipelineNode& node, const PipelineKey& key) {
    const std::string& text = node.scalar;
    switch (key.type) {
        case PipelineType::text:
        case PipelineType::path:
            return !trim(text).empty() && (node.quoted || (!is_word_for_bool(text) && !parse_fraction(text)));
        case PipelineType::name:
            return !text.empty();
        case PipelineType::boolean:
            return !node.quoted && is_word_for_bool(text);
        case PipelineType::choice:
            return std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end();
        case PipelineType::bytes:
            return is_bytes(text);
        case PipelineType::shard:
            return is_shard(text);
        default:
            return is_number_of(node, key);
    }
}

bool Validation::scalar(const PipelineNode& node, const PipelineKey& key) {
    const bool is_scalar = node.kind == Kind::scalar;
    if (is_scalar && is_scalar_of(node, key)) return true;
    const bool choice = is_scalar && key.type == PipelineType::choice;
    return wrong(node, key.name, expected_value(key), choice ? did_you_mean(node.scalar, key.choices) : "");
}

}  // namespace

void write_out_short_forms(PipelineNode& document) {
    write_out(document, pipeline_schema().front());
}

void validate_pipeline(PipelineNode& document, PipelineFaults& faults) {
    Validation(faults).section(document, pipeline_schema().front());
}

}  // namespace qcalib
