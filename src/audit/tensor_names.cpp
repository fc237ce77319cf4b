#include "audit/tensor_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace qcalib {

namespace {

constexpr std::array<std::string_view, 15> suffixes = {"_permute", "_fc",  ".nchw", ".nhwc", ".ncs",
                                                       ".nsc",     ".ncf", ".nfc",  "_nchw", "_nhwc",
                                                       "_ncs",     "_nsc", "_ncf",  "_nfc",  ":0"};

constexpr int most_suffixes = 3;

}  // namespace

std::string_view without_converter_suffix(std::string_view name) {
    for (const std::string_view suffix : suffixes) {
        if (name.size() > suffix.size() && name.ends_with(suffix))
            return name.substr(0, name.size() - suffix.size());
    }
    return name;
}

std::string sanitised(std::string_view name) {
    std::string result(name);
    std::replace_if(
        result.begin(), result.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; },
        '_');
    return result;
}

bool names_parameter(std::string_view name) {
    for (std::string_view next = without_converter_suffix(name); next != name;
         next = without_converter_suffix(name)) {
        name = next;
    }
    const auto ends = [&](std::string_view end) {
        return name.ends_with(end) &&
               (name.size() == end.size() ||
                !std::isalpha(static_cast<unsigned char>(name[name.size() - end.size() - 1])));
    };
    return ends("weight") || ends("bias");
}

NameMatcher::NameMatcher(std::span<const std::string> names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        exact_.emplace(names[i], i);
        const auto [place, fresh] = sanitised_.emplace(sanitised(names[i]), i);
        if (!fresh && place->second && names[*place->second] != names[i]) place->second.reset();
    }
}

std::optional<std::size_t> NameMatcher::exactly(std::string_view name) const {
    const auto place = exact_.find(std::string(name));
    return place == exact_.end() ? std::nullopt : std::optional(place->second);
}

std::optional<std::size_t> NameMatcher::match_sanitised(std::string_view found) const {
    const auto place = sanitised_.find(std::string(found));
    if (place != sanitised_.end()) return place->second;
    // A name that starts with a digit gets an underscore before it.
    if (found.size() > 1 && found[0] == '_' && std::isdigit(static_cast<unsigned char>(found[1])) != 0) {
        const auto digit = sanitised_.find(std::string(found.substr(1)));
        if (digit != sanitised_.end()) return digit->second;
    }
    return std::nullopt;
}

std::optional<std::size_t> NameMatcher::match(std::string_view found) const {
    std::string_view name = found;
    for (int i = 0; i <= most_suffixes; ++i) {
        if (const auto place = exactly(name)) return place;
        name = without_converter_suffix(name);
    }
    // Only names that sanitising leaves alone can have been sanitised.
    name = found;
    for (int i = 0; i <= most_suffixes; ++i) {
        if (sanitised(name) == name) {
            if (const auto place = match_sanitised(name)) return place;
        }
        name = without_converter_suffix(name);
    }
    return std::nullopt;
}

}  // namespace qcalib
