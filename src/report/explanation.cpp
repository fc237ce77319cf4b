#include "report/explanation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace qcalib {

namespace {

constexpr std::size_t most_channels = 64;  // that are printed

std::string number(double value) {
    return fmt::format("{:.7g}", value);
}

std::string text_of(Range range) {
    return fmt::format("{} to {}", number(range.min), number(range.max));
}

// Lines "  label       text", the label on the first of its lines only.
class Chain {
  public:
    explicit Chain(const Explanation& explanation) {
        text_ = fmt::format("{} ({}), target {}\n", printable(explanation.tensor), explanation.kind,
                            explanation.target);
    }
    void label(std::string_view label) { label_ = label; }
    void add(std::string_view line) {
        text_ += fmt::format("  {:<11} {}\n", label_, line);
        label_ = "";
    }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
    std::string_view label_;
};

// Whether ordinary values were not counted (--statistics extremes).
bool extremes_alone(const TensorStatistics& statistics) {
    return statistics.positive.empty() && statistics.negative.empty() && statistics.extremes &&
           (statistics.extremes->min < 0 || statistics.extremes->max > 0);
}

void add_statistics(const Explanation& explanation, Chain& chain) {
    chain.label("statistics");
    if (explanation.statistics == nullptr) return chain.add("none in the file");
    const TensorStatistics& statistics = *explanation.statistics;
    const bool alone = extremes_alone(statistics);
    std::string what = alone ? "least and greatest values alone"
                             : fmt::format("{} values: {} zeros", statistics.elements(), statistics.zeros);
    if (explanation.samples)
        what += fmt::format(", {} {} with data", *explanation.samples,
                            *explanation.samples == 1 ? "sample" : "samples");
    chain.add(what);
    chain.add(fmt::format("left out: {} NaN, {} +Inf, {} -Inf, {} positive and {} negative masks",
                          statistics.nans, statistics.positive_infinities, statistics.negative_infinities,
                          statistics.positive_masks, statistics.negative_masks));
    if (!statistics.extremes) return chain.add("no data: nothing else");
    std::string line = "min and max " + text_of(*statistics.extremes);
    if (!alone) {
        const Moments found = moments(statistics);
        line += fmt::format("; mean {}, deviation {}", number(found.mean), number(std::sqrt(found.variance)));
        line += fmt::format("; 0.01 % and 99.99 % {}",
                            text_of({quantile(statistics, 0.0001), quantile(statistics, 0.9999)}));
    }
    chain.add(line);
    if (!explanation.movement) return;
    chain.add(
        fmt::format("after half of the samples min and max were {}: since moved by {:.2f} steps of 8 bits",
                    text_of(explanation.movement->half), explanation.movement->moved()));
}

Range hull(const std::vector<Range>& ranges) {
    Range all = ranges.front();
    for (const Range& range : ranges) {
        all = {std::min(all.min, range.min), std::max(all.max, range.max)};
    }
    return all;
}

void add_method(const Explanation& explanation, Chain& chain) {
    chain.label("method");
    if (explanation.ranges.empty())
        return chain.add(explanation.method.empty() ? "none" : explanation.method);
    const std::size_t count = explanation.ranges.size();
    const bool channels = explanation.axis.has_value();
    chain.add(fmt::format("{}: {}{}", explanation.method, text_of(hull(explanation.ranges)),
                          channels ? fmt::format(", the hull of {} channels", count) : ""));
    if (channels || !explanation.by_rules || explanation.statistics == nullptr ||
        !explanation.statistics->extremes)
        return;
    const Range extremes = *explanation.statistics->extremes;
    const Range range = explanation.ranges.front();
    const double low = range.min - extremes.min;
    const double high = extremes.max - range.max;
    if (low > 0 || high > 0) {
        chain.add(fmt::format("cuts {} off below and {} above", number(std::max(low, 0.0)),
                              number(std::max(high, 0.0))));
    }
}

std::string describe(const GridRules& rules) {
    const std::string_view scheme = rules.scheme == Scheme::asymmetric  ? "asymmetric"
                                    : rules.scheme == Scheme::symmetric ? "symmetric"
                                    : rules.scheme == Scheme::from_zero ? "symmetric, unsigned"
                                                                        : "symmetric, unsigned if it can be";
    std::string text =
        fmt::format("{} bits, {}, least range {}", rules.bits, scheme, number(rules.least_range));
    if (rules.power_of_two) text += ", steps powers of two";
    if (rules.full_steps) text += ", the range's end is a step beyond the last code";
    if (rules.scheme == Scheme::symmetric || rules.scheme == Scheme::from_zero) return text;
    text += rules.include_zero ? ", zero included" : ", zero not included";
    return text + (rules.rounding == Rounding::half_away ? ", offset rounded half away from zero"
                                                         : ", offset rounded half to even");
}

// What the rules did to a range on an asymmetric grid: see make_grid().
void add_asymmetric_steps(Range range, const GridRules& rules, const Encoding& encoding, Chain& chain) {
    const double codes = std::exp2(rules.bits) - 1;
    if (rules.include_zero && (range.min > 0 || range.max < 0)) {
        range = {std::min(0.0, range.min), std::max(0.0, range.max)};
        chain.add("widened to zero: " + text_of(range));
    }
    if (range.max - range.min < rules.least_range) {
        range.max = range.min + rules.least_range;
        chain.add("widened to the least range: " + text_of(range));
    }
    const double least_relative = 0x1p-20 * std::max(std::abs(range.min), std::abs(range.max));
    if (!rules.include_zero && range.max - range.min < least_relative) {
        range.max = range.min + least_relative;
        chain.add("widened to 2^-20 of its magnitude: " + text_of(range));
    }
    const double step = (range.max - range.min) / codes;
    chain.add(fmt::format("step: width {} / {} codes = {}", number(range.max - range.min), number(codes),
                          number(step)));
    if (rules.power_of_two) chain.add("up to the next power of two: " + number(encoding.scale));
    const double moved = encoding.min - range.min;
    const std::string_view aim = rules.include_zero ? "zero is exact" : "its ends are whole steps";
    chain.add(std::abs(moved) < 1e-9 * encoding.scale
                  ? fmt::format("nudged by nothing: {} already", aim)
                  : fmt::format("nudged by {} ({:+.3f} steps): now {}", number(moved), moved / encoding.scale,
                                aim));
}

void add_full_steps(Range range, const GridRules& rules, const Encoding& encoding, Chain& chain) {
    const bool zero_based = encoding.offset == 0;
    const double end =
        zero_based ? std::max(range.max, 0.0) : std::max(std::abs(range.min), std::abs(range.max));
    const double steps = std::exp2(zero_based ? rules.bits : rules.bits - 1);
    chain.add(fmt::format("step: {} {} / {} = {}", zero_based ? "end" : "greatest magnitude", number(end),
                          number(steps), number(end / steps)));
    if (end < rules.least_range)
        chain.add(fmt::format("below the least range {}: step {}", number(rules.least_range),
                              number(encoding.scale)));
    if (rules.power_of_two) chain.add("up to the next power of two: " + number(encoding.scale));
}

void add_symmetric_steps(Range range, const GridRules& rules, const Encoding& encoding, Chain& chain) {
    const double magnitude = std::max(std::abs(range.min), std::abs(range.max));
    const double half = std::exp2(rules.bits - 1) - 1;
    chain.add(fmt::format("step: greatest magnitude {} / {} codes = {}", number(magnitude), number(half),
                          number(magnitude / half)));
    const double least = rules.least_range / (2 * half + 1);
    if (least > magnitude / half) chain.add("up to that of the least range: " + number(least));
    if (rules.power_of_two) chain.add("up to the next power of two: " + number(encoding.scale));
}

void add_rules(const Explanation& explanation, Chain& chain) {
    chain.label("rules");
    chain.add(describe(explanation.rules));
    for (const std::string& source : explanation.evidence) chain.add("source: " + source);
    if (explanation.axis) {
        return chain.add(fmt::format("each of {} channels along axis {} has its own step",
                                     explanation.encodings.size(), *explanation.axis));
    }
    if (!explanation.by_rules || explanation.encodings.empty()) return;
    const Encoding& encoding = explanation.encodings.front();
    const bool zero_point_free = encoding.offset == -(std::int64_t{1} << (encoding.bits - 1));
    if (explanation.rules.scheme != Scheme::asymmetric && explanation.rules.full_steps) {
        add_full_steps(explanation.ranges.front(), explanation.rules, encoding, chain);
    } else if (explanation.rules.scheme != Scheme::asymmetric && zero_point_free) {
        add_symmetric_steps(explanation.ranges.front(), explanation.rules, encoding, chain);
    } else {
        GridRules rules = explanation.rules;
        rules.include_zero = rules.include_zero || rules.scheme != Scheme::asymmetric;
        add_asymmetric_steps(explanation.ranges.front(), rules, encoding, chain);
    }
}

void add_encodings(const Explanation& explanation, Chain& chain) {
    chain.label("encoding");
    const bool channels = explanation.axis.has_value();
    for (std::size_t i = 0; i < std::min(most_channels, explanation.encodings.size()); ++i) {
        const Encoding& encoding = explanation.encodings[i];
        chain.add(fmt::format("{}scale {}, offset {}, bitwidth {}, {}{}",
                              channels ? fmt::format("channel {}: ", i) : "", number(encoding.scale),
                              encoding.offset, encoding.bits, text_of({encoding.min, encoding.max}),
                              channels ? ", from " + text_of(explanation.ranges[i]) : ""));
    }
    if (explanation.encodings.size() > most_channels) {
        chain.add(fmt::format("and {} channels more", explanation.encodings.size() - most_channels));
    }
}

}  // namespace

std::string explain(const Explanation& explanation) {
    Chain chain(explanation);
    add_statistics(explanation, chain);
    add_method(explanation, chain);
    chain.label("overrides");
    for (const std::string& line : explanation.overrides) chain.add(line);
    chain.label("notes");
    for (const std::string& line : explanation.notes) chain.add(line);
    if (explanation.encodings.empty()) {
        chain.label("encoding");
        chain.add("none: " + explanation.no_encoding);
        return chain.take();
    }
    add_rules(explanation, chain);
    add_encodings(explanation, chain);
    return chain.take();
}

}  // namespace qcalib
