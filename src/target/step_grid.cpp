#include "target/step_grid.h"

#include <algorithm>
#include <cmath>

namespace qcalib {

namespace {

std::int64_t greatest_code(int bits) {
    return (std::int64_t{1} << bits) - 1;
}

std::int64_t middle_offset(int bits) {
    return -(std::int64_t{1} << (bits - 1));
}

std::int64_t asymmetric_offset(double step, Range data, const GridRules& rules) {
    const auto codes = static_cast<double>(greatest_code(rules.bits));
    if (!rules.include_zero) {
        const double middle = (data.min / 2 + data.max / 2) / step;
        return static_cast<std::int64_t>(std::round(std::clamp(middle - codes / 2, -1e15, 1e15)));
    }
    const double low = std::min(0.0, data.min);
    const double high = std::max(0.0, data.max);
    if (low == high) return 0;
    // Halves first: high - low may be beyond a double.
    const double zero = std::round(codes * ((-low / 2) / (high / 2 - low / 2)));
    return -static_cast<std::int64_t>(std::clamp(zero, 0.0, codes));
}

std::int64_t offset_of(double step, std::optional<Range> data, const GridRules& rules) {
    const std::int64_t middle = middle_offset(rules.bits);
    if (rules.scheme == Scheme::from_zero) return 0;
    if (!data || rules.scheme == Scheme::symmetric) return middle;
    if (rules.scheme == Scheme::asymmetric) return asymmetric_offset(step, *data, rules);
    return data->min < 0 ? middle : 0;
}

// The counts of the magnitudes above `bound`, which lies linearly inside its bin.
double count_above(const MagnitudeHistogram& histogram, double bound) {
    if (histogram.empty()) return 0;
    double count = 0;
    for (std::size_t bin = MagnitudeHistogram::bins; bin-- > 0;) {
        const double low = histogram.lower_edge(bin);
        const double high = histogram.lower_edge(bin + 1);
        if (high <= bound) break;
        const double share = low >= bound ? 1 : (high - bound) / (high - low);
        count += share * static_cast<double>(histogram.count(bin));
    }
    return count;
}

}  // namespace

Encoding encode_with_step(double step, std::optional<Range> data, const GridRules& rules) {
    Encoding encoding;
    encoding.bits = rules.bits;
    encoding.scale = step;
    encoding.symmetric = rules.scheme != Scheme::asymmetric;
    encoding.offset = offset_of(step, data, rules);
    encoding.min = static_cast<double>(encoding.offset) * step;
    encoding.max = static_cast<double>(encoding.offset + greatest_code(rules.bits)) * step;
    return encoding;
}

bool is_power_of_two(double value) {
    int exponent = 0;
    return std::frexp(value, &exponent) == 0.5;
}

std::optional<double> clipped_share(const TensorStatistics& statistics, const Encoding& encoding) {
    if (statistics.counted() == 0 || !statistics.extremes) return std::nullopt;
    if (statistics.positive.empty() && statistics.negative.empty() &&
        (statistics.extremes->min < 0 || statistics.extremes->max > 0))
        return std::nullopt;  // extremes alone
    const double low = encoding.min - encoding.scale / 2;
    const double high = encoding.max + encoding.scale / 2;
    double outside = 0;
    if (statistics.extremes->max > high) outside += count_above(statistics.positive, std::max(high, 0.0));
    if (statistics.extremes->min < low) outside += count_above(statistics.negative, std::max(-low, 0.0));
    if (high < 0 || low > 0) outside += static_cast<double>(statistics.zeros);
    return std::min(1.0, outside / static_cast<double>(statistics.counted()));
}

}  // namespace qcalib
