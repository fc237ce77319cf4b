#include "audit/compare.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "encoding/encoding.h"

namespace qcalib {

namespace {

using Reason = Comparison::Reason;

// Both least ranges that Qualcomm's documentation has; a converter may follow another one than the target's
// file.
constexpr std::array documented_least_ranges = {0.01, 0.0001};

bool equal_ends(double min, double max, const FoundEncoding& found) {
    const double larger = std::max(std::abs(min), std::abs(max));
    return equal_as_printed(min, found.min, larger) && equal_as_printed(max, found.max, larger);
}

// An offset that lies this close (in steps) to halfway between two integers may be rounded to either by
// arithmetic in float32.
constexpr double tie = 1e-4;

bool grid_is(Range range, const GridRules& rules, const FoundEncoding& found) {
    const double step = (range.max - range.min) / (std::ldexp(1.0, rules.bits) - 1);
    for (const double shift : {0.0, -tie * step, tie * step}) {
        const Encoding encoding = encode({range.min + shift, range.max + shift}, rules);
        if (equal_ends(encoding.min, encoding.max, found)) return true;
    }
    return false;
}

GridRules rules_of(int bits, Scheme scheme, double least_range, Rounding rounding) {
    GridRules rules;
    rules.bits = bits;
    rules.scheme = scheme;
    rules.least_range = least_range;
    rules.rounding = rounding;
    return rules;
}

bool encodable(Range range, int bits) {
    return std::isfinite(range.min) && std::isfinite(range.max) && range.min <= range.max && bits >= 2 &&
           bits <= 32;
}

std::vector<double> least_ranges(const Target& target) {
    std::vector<double> all = {target.least_range};
    all.insert(all.end(), documented_least_ranges.begin(), documented_least_ranges.end());
    return all;
}

// The least range by which the target's asymmetric rule makes the found grid out of the range, or nothing.
std::optional<double> proved_least_range(Range range, const FoundEncoding& found, const Target& target) {
    if (!encodable(range, found.bits)) return std::nullopt;
    for (const double least : least_ranges(target)) {
        if (!(least > 0)) continue;
        for (const Rounding rounding : {target.rounding, Rounding::half_away, Rounding::half_even}) {
            if (grid_is(range, rules_of(found.bits, Scheme::asymmetric, least, rounding), found))
                return least;
        }
    }
    return std::nullopt;
}

// The encoding with the ends as the file writes them: a reader widens those that leave zero out.
Encoding with_given_ends(const FileEntry& entry, std::size_t index) {
    Encoding encoding = entry.encoding.encodings[index];
    if (index >= entry.given.size()) return encoding;
    const GivenNumbers& numbers = entry.given[index];
    if (numbers.min && numbers.max) {
        encoding.min = *numbers.min;
        encoding.max = *numbers.max;
    }
    return encoding;
}

double step_of(const Encoding& encoding) {
    const double step = (encoding.max - encoding.min) / (std::ldexp(1.0, encoding.bits) - 1);
    return step > 0 && std::isfinite(step) ? step : encoding.scale;
}

// Finds out how the found encoding follows from the given one.
void explain_difference(const Encoding& given, const FoundEncoding& found, const Target& target,
                        Comparison& result) {
    constexpr double close_steps = 2;
    result.status = Status::recomputed;
    if (given.bits != found.bits) {
        result.reason = Reason::width;
        result.detail = fmt::format("{} bits where {} were given", found.bits, given.bits);
        return;
    }
    const Range range{given.min, given.max};
    if (const auto least = proved_least_range(range, found, target)) {
        const bool contains_zero = range.min <= 0 && range.max >= 0;
        if (contains_zero && range.max - range.min >= *least) {
            result.status = Status::nudged;
            return;
        }
        result.reason = Reason::widened;
        result.detail = contains_zero ? fmt::format("widened to the least range, {:g}", *least)
                                      : std::string("widened to contain zero");
        return;
    }
    const GridRules symmetric =
        rules_of(found.bits, Scheme::symmetric, std::max(target.least_range, 1e-30), target.rounding);
    if (encodable(range, found.bits) && grid_is(range, symmetric, found)) {
        result.reason = Reason::symmetric;
        result.detail = "made symmetric: both sides reach as far as the larger end";
        return;
    }
    result.close = result.steps && *result.steps <= close_steps;
}

Comparison compare_one(const Encoding& given, const FoundEncoding& found, const Target& target) {
    Comparison result;
    result.given = shown(given);
    result.found = shown(found);
    const double difference =
        std::max(std::abs(given.min - found.min.value), std::abs(given.max - found.max.value));
    const double step = step_of(given);
    if (step > 0) result.steps = difference / step;
    if (given.bits == found.bits && equal_ends(given.min, given.max, found)) return result;
    explain_difference(given, found, target, result);
    return result;
}

Comparison compare_float(const FileEntry& entry, const FoundTensor& found) {
    const TensorEncoding& given = entry.encoding;
    Comparison result;
    result.given.bits = given.width();
    if (const auto first = shown_first(entry)) result.given = *first;
    if (!found.encodings.empty()) result.found = shown(found.encodings.front());
    const bool float_given = given.type == CodeType::floating;
    if (float_given == found.encodings.empty()) return result;
    result.status = Status::recomputed;
    result.reason = Reason::floating;
    result.detail = float_given
                        ? std::string("quantized where a float type was given")
                        : fmt::format("left in {}", found.data_type.empty() ? "float" : found.data_type);
    return result;
}

// Only a width was given: the range is the converter's own by intention.
Comparison compare_width(const TensorEncoding& given, const FoundTensor& found) {
    Comparison result;
    result.found = shown(found.encodings.front());
    result.given = *result.found;
    result.given.bits = given.bits;
    result.detail = "only the width was given; the converter chose the range";
    if (given.bits == found.encodings.front().bits) return result;
    result.status = Status::recomputed;
    result.reason = Reason::width;
    result.detail = fmt::format("{} bits where {} were given", found.encodings.front().bits, given.bits);
    return result;
}

// How bad a comparison is, to find the worst channel.
double badness(const Comparison& comparison) {
    constexpr double status_weight = 1e18;
    return status_weight * static_cast<double>(comparison.status) +
           std::min(comparison.steps.value_or(status_weight / 2), status_weight / 2);
}

}  // namespace

ShownEncoding shown(const Encoding& encoding) {
    return {encoding.bits,
            encoding.min,
            encoding.max,
            step_of(encoding),
            static_cast<double>(encoding.offset),
            {}};
}

ShownEncoding shown(const FoundEncoding& encoding) {
    ShownEncoding result{encoding.bits, encoding.min.value, encoding.max.value, encoding.step(), 0, {}};
    result.offset = encoding.offset ? encoding.offset->value : std::round(result.min / result.scale) + 0.0;
    return result;
}

bool gives(Range range, const FoundEncoding& found, const Target& target) {
    return equal_ends(range.min, range.max, found) || proved_least_range(range, found, target).has_value();
}

std::string range_text(const ShownEncoding& encoding) {
    return fmt::format("{:.7g} to {:.7g}, {} bit", encoding.min, encoding.max, encoding.bits);
}

std::optional<ShownEncoding> shown_first(const FileEntry& entry) {
    if (entry.encoding.encodings.empty()) return std::nullopt;
    return shown(with_given_ends(entry, 0));
}

Comparison compare(const FileEntry& entry, const FoundTensor& found, const Target& target) {
    const TensorEncoding& given = entry.encoding;
    if (given.type == CodeType::floating || found.encodings.empty()) return compare_float(entry, found);
    if (given.encodings.empty()) return compare_width(given, found);
    const std::size_t channels = std::max(found.channels.value_or(1), found.encodings.size());
    Comparison worst;
    const std::size_t both = std::min(given.encodings.size(), found.encodings.size());
    for (std::size_t i = 0; i < both; ++i) {
        Comparison one = compare_one(with_given_ends(entry, i), found.encodings[i], target);
        if (given.encodings.size() > 1) one.given.channel = i;
        if (channels > 1) one.found->channel = i;
        if (i == 0 || badness(one) > badness(worst)) worst = std::move(one);
    }
    if (channels != given.encodings.size()) {
        worst.status = Status::recomputed;
        worst.reason = Reason::channels;
        worst.close = false;
        worst.detail = fmt::format(
            "{} where {} given", channels == 1 ? "one encoding" : fmt::format("{} encodings", channels),
            given.encodings.size() == 1 ? "one was" : fmt::format("{} were", given.encodings.size()));
    }
    return worst;
}

}  // namespace qcalib
