#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace qcalib {

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row[b.size()];
}

// Length of the well-formed UTF-8 sequence of printable characters at the start of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
    const std::size_t length = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    if (length == 0 || lead >= 0xf5 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
    }
    if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90)) return 0;
    if ((lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f)) return 0;
    if (lead == 0xc2 && byte(1) < 0xa0) return 0;  // C1 control characters
    return length;
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
    const std::size_t limit = std::max<std::size_t>(2, name.size() / 3);
    std::size_t best = limit + 1;
    std::string nearest;
    for (const std::string& candidate : candidates) {
        const std::size_t gap =
            candidate.size() > name.size() ? candidate.size() - name.size() : name.size() - candidate.size();
        if (gap >= best) continue;
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < best && distance < std::max(name.size(), candidate.size())) {
            best = distance;
            nearest = candidate;
        }
    }
    return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
    const std::string nearest = nearest_name(name, candidates);
    return nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", printable(nearest));
}

bool glob_match(std::string_view pattern, std::string_view name) {
    std::size_t p = 0;
    std::size_t n = 0;
    std::size_t star = std::string_view::npos;
    std::size_t resume = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = n;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
            ++p;
            ++n;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            n = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n\v\f";
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    std::size_t start = 0;
    while (true) {
        const std::size_t end = text.find(separator, start);
        parts.emplace_back(text.substr(start, end - start));
        if (end == std::string_view::npos) return parts;
        start = end + 1;
    }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
    return fmt::format("{}", fmt::join(parts, separator));
}

std::string printable(std::string_view name) {
    std::string shown;
    while (!name.empty()) {
        const std::size_t length = utf8_length(name);
        if (length > 0) {
            shown.append(name.substr(0, length));
        } else {
            shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(name[0]));
        }
        name.remove_prefix(std::max<std::size_t>(1, length));
    }
    return shown;
}

std::int64_t parse_integer(std::string_view text, std::string_view what) {
    const std::string_view digits = trim(text);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
        fail("{}: expected a whole number, found '{}'", what, printable(text));
    }
    return value;
}

double parse_real(std::string_view text, std::string_view what) {
    const std::string_view digits = trim(text);
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
        fail("{}: expected a number, found '{}'", what, printable(text));
    }
    return value;
}

std::string human_bytes(std::uint64_t bytes) {
    constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
    constexpr double next_unit = 1023.95;  // what would be shown as 1024.0
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= (unit == 0 ? 1024 : next_unit) && unit + 1 < units.size()) {
        value /= 1024;
        ++unit;
    }
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

namespace {

// The bytes of "", "B", "K", "KB", "KiB", "M", ...; 0 for what is no unit.
double bytes_of_unit(std::string_view unit) {
    std::string name;
    for (const unsigned char c : unit) name += static_cast<char>(std::toupper(c));
    if (name.empty() || name == "B") return 1;
    const std::size_t scale = std::string_view("KMGT").find(name[0]);
    const std::string rest = name.substr(1);
    if (scale == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "IB")) return 0;
    return std::pow(1024.0, static_cast<double>(scale + 1));
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text, std::string_view what) {
    const std::string_view rest = trim(text);
    double value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const double unit = bytes_of_unit(trim(rest.substr(static_cast<std::size_t>(end - rest.data()))));
    const double bytes = value * unit;
    if (error != std::errc() || unit == 0 || !(bytes >= 0 && bytes < 1e18)) {
        fail("{}: expected a size such as 800M or 2G, found '{}'", what, printable(text));
    }
    return static_cast<std::uint64_t>(bytes);
}

}  // namespace qcalib
