#include "audit/evidence.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "encoding/encoding.h"
#include "ranges/range_method.h"

namespace qcalib {

namespace {

// How many of the magnitudes lie above a bound; inside a bin they are taken to be spread evenly.
double count_above(const MagnitudeHistogram& histogram, double bound) {
    if (histogram.empty()) return 0;
    if (bound < 0) return static_cast<double>(histogram.total());
    double count = 0;
    for (std::size_t bin = MagnitudeHistogram::bins; bin-- > 0;) {
        const double upper = histogram.lower_edge(bin + 1);
        if (upper <= bound) break;
        const double lower = histogram.lower_edge(bin);
        const double part = std::min(1.0, (upper - bound) / (upper - lower));
        count += part * static_cast<double>(histogram.count(bin));
    }
    return count;
}

bool within_half_a_step(Range range, const FoundEncoding& found, const Target& target) {
    if (found.bits < 2 || found.bits > 32 || !(found.max.value > found.min.value)) return false;
    GridRules rules;
    rules.bits = found.bits;
    rules.least_range = target.least_range > 0 ? target.least_range : rules.least_range;
    rules.rounding = target.rounding;
    const Encoding encoding = encode(range, rules);
    const double allowed = 0.5 * found.step() + std::max(found.min.half_unit, found.max.half_unit);
    return std::abs(encoding.min - found.min.value) <= allowed &&
           std::abs(encoding.max - found.max.value) <= allowed;
}

std::string percent(double share) {
    return fmt::format("{:.3g} %", 100 * share);
}

bool has_histograms(const TensorStatistics& statistics) {
    return statistics.extremes && statistics.counted() > 0 &&
           !(statistics.positive.empty() && statistics.negative.empty());
}

// The name of a method that gives the range with its own settings, or "".
std::string giving_method(const TensorSamples& samples, const FoundEncoding& found, const Target& target) {
    GridRules rules;
    rules.bits = std::clamp(found.bits, 2, 16);
    rules.least_range = target.least_range > 0 ? target.least_range : rules.least_range;
    for (const RangeMethod* method : range_methods()) {
        const MethodChoice choice = parse_method(method->name());
        if (choice.needs_histogram() && !has_histograms(samples.statistics())) continue;
        const std::optional<Range> range = choice.choose(samples, rules);
        if (range && within_half_a_step(*range, found, target)) return method->name();
    }
    return "";
}

}  // namespace

std::optional<double> share_outside(const TensorStatistics& statistics, Range range) {
    if (!has_histograms(statistics)) return std::nullopt;
    const Range& extremes = *statistics.extremes;
    double outside = 0;
    if (range.max < extremes.max) outside += count_above(statistics.positive, range.max);
    if (range.min > extremes.min) outside += count_above(statistics.negative, -range.min);
    // What the other side holds below the range: magnitudes up to the bound, when both ends have one sign.
    if (range.min > 0) {
        outside +=
            static_cast<double>(statistics.positive.total()) - count_above(statistics.positive, range.min);
        outside += static_cast<double>(statistics.zeros);
    }
    if (range.max < 0) {
        outside +=
            static_cast<double>(statistics.negative.total()) - count_above(statistics.negative, -range.max);
        outside += static_cast<double>(statistics.zeros);
    }
    return outside / static_cast<double>(statistics.counted());
}

std::optional<Measured> measured(const StatisticsFile& statistics, std::string_view tensor,
                                 const FoundEncoding& found, const Target& target) {
    const std::optional<std::size_t> place = statistics.find(tensor);
    if (!place || !statistics.tensor(*place).extremes) return std::nullopt;
    const TensorSamples samples(statistics, *place);
    if (const std::string method = giving_method(samples, found, target); !method.empty()) {
        return Measured{
            fmt::format("the statistics' {} of all {} samples gives it", method, statistics.rows()), true};
    }
    for (std::size_t row = 0; row < samples.rows(); ++row) {
        const SampleSummary entry = samples.row(row);
        if (entry.has_data && within_half_a_step({entry.min, entry.max}, found, target)) {
            return Measured{fmt::format("it is min and max of sample {} alone", statistics.row_number(row)),
                            true};
        }
    }
    return Measured{
        fmt::format("no method gives it from the statistics, nor does a sample alone: other data than "
                    "the {} samples counted",
                    statistics.rows()),
        false};
}

std::string clipping_text(const StatisticsFile& statistics, std::string_view tensor,
                          const FoundEncoding& found, const std::optional<ShownEncoding>& given) {
    const std::optional<std::size_t> place = statistics.find(tensor);
    if (!place) return "";
    const TensorStatistics& values = statistics.tensor(*place);
    const auto share = share_outside(values, {found.min.value, found.max.value});
    if (!share) return "";
    std::string text = fmt::format("; it clips {} of the values", percent(*share));
    if (given) {
        if (const auto of_given = share_outside(values, {given->min, given->max}))
            text += fmt::format(" (the given range {})", percent(*of_given));
    }
    return text;
}

}  // namespace qcalib
