#include "format/element.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

std::string lower(std::string_view text) {
    std::string result;
    for (const unsigned char c : text) result += static_cast<char>(std::tolower(c));
    return result;
}

}  // namespace

const JsonValue* Element::find(std::string_view key) const {
    const JsonValue* found = value_.find(key);
    return found == nullptr || found->is(JsonValue::Kind::null) ? nullptr : found;
}

const JsonValue* Element::value(std::string_view key) {
    known_.push_back(key);
    return find(key);
}

std::optional<double> Element::number_of(std::string_view key, const JsonValue& value) {
    if (value.is(JsonValue::Kind::number)) return value.number;
    fault(fmt::format("{}: expected a number, found {}", key, shown(value)));
    return std::nullopt;
}

std::optional<double> Element::number(std::string_view key) {
    const JsonValue* found = value(key);
    return found == nullptr ? std::nullopt : number_of(key, *found);
}

std::optional<std::int64_t> Element::integer(std::string_view key) {
    const std::optional<double> found = number(key);
    if (!found) return std::nullopt;
    if (std::isfinite(*found) && *found == std::round(*found) && std::abs(*found) < 0x1p53) {
        return static_cast<std::int64_t>(*found);
    }
    fault(fmt::format("{}: expected a whole number, found {}", key, *found));
    return std::nullopt;
}

std::optional<bool> Element::boolean(std::string_view key) {
    const JsonValue* found = value(key);
    if (found == nullptr) return std::nullopt;
    if (found->is(JsonValue::Kind::boolean)) return found->boolean;
    if (found->is(JsonValue::Kind::string)) {
        const std::string word = lower(found->string);
        if (word == "true" || word == "false") return word == "true";
    }
    fault(fmt::format("{}: expected \"True\" or \"False\", found {}", key, shown(*found)));
    return std::nullopt;
}

std::optional<std::string> Element::text(std::string_view key) {
    const JsonValue* found = value(key);
    if (found == nullptr) return std::nullopt;
    if (found->is(JsonValue::Kind::string)) return found->string;
    fault(fmt::format("{}: expected a text, found {}", key, shown(*found)));
    return std::nullopt;
}

std::optional<std::vector<double>> Element::numbers(std::string_view key) {
    const JsonValue* found = value(key);
    if (found == nullptr) return std::nullopt;
    std::vector<double> numbers;
    if (!found->is(JsonValue::Kind::array)) {
        const std::optional<double> one = number_of(key, *found);
        if (!one) return std::nullopt;
        numbers.push_back(*one);
        return numbers;
    }
    numbers.reserve(found->items.size());
    for (const JsonValue& item : found->items) {
        const std::optional<double> one = number_of(key, item);
        if (!one) return std::nullopt;
        numbers.push_back(*one);
    }
    return numbers;
}

std::optional<int> Element::bits(std::string_view key, CodeType type) {
    const std::optional<std::int64_t> found = integer(key);
    if (!found) return std::nullopt;
    const bool fits =
        type == CodeType::integer ? *found >= 2 && *found <= 32 : *found == 8 || *found == 16 || *found == 32;
    if (fits) return static_cast<int>(*found);
    fault(fmt::format("{}: expected {}, found {}", key,
                      type == CodeType::integer ? "2 to 32 bits" : "8, 16 or 32 bits of a float", *found));
    return std::nullopt;
}

CodeType Element::code_type(std::string_view key) {
    const std::optional<std::string> found = text(key);
    if (!found) return CodeType::integer;
    const std::string word = lower(*found);
    if (word == "int" || word == "uint") return CodeType::integer;
    if (word == "float" || word == "fp") return CodeType::floating;
    const std::vector<std::string> choices = {"int", "float"};
    fault(fmt::format("{}: expected int or float, found \"{}\"{}", key, printable(*found),
                      did_you_mean(word, choices)));
    return CodeType::integer;
}

std::vector<UnknownKey> Element::unknown() const {
    std::vector<UnknownKey> result;
    for (std::size_t i = 0; i < value_.keys.size(); ++i) {
        const std::string& key = value_.keys[i];
        if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
            result.push_back(reader_.unknown(key, value_.items[i]));
        }
    }
    return result;
}

}  // namespace qcalib
