#include "tensor/grid.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace qcalib {

namespace {

std::int64_t greatest_code(int bits) {
    return (std::int64_t{1} << bits) - 1;
}

double round_by(Rounding rounding, double value) {
    return rounding == Rounding::half_away ? std::round(value) : std::nearbyint(value);
}

double magnitude_of(Range range) {
    return std::max(std::abs(range.min), std::abs(range.max));
}

Grid asymmetric_grid(Range range, const GridRules& rules) {
    constexpr double least_relative = 0x1p-20;
    Grid grid;
    grid.codes = greatest_code(rules.bits);
    const auto codes = static_cast<double>(grid.codes);
    const double low = rules.include_zero ? std::min(0.0, range.min) : range.min;
    double high =
        std::max(rules.include_zero ? std::max(0.0, range.max) : range.max, low + rules.least_range);
    if (!rules.include_zero) high = std::max(high, low + least_relative * magnitude_of(range));
    double width = high - low;
    grid.step = width / codes;
    if (rules.power_of_two) {
        grid.step = power_of_two_above(grid.step);
        width = grid.step * codes;
    }
    double offset = round_by(rules.rounding, -low / grid.step);
    if (rules.include_zero) offset = std::clamp(offset, 0.0, codes);
    grid.offset = -static_cast<std::int64_t>(offset);
    grid.min = static_cast<double>(grid.offset) * grid.step;
    grid.max = width + grid.min;
    return grid;
}

// The step where `steps` of them reach from 0 to `end`.
double full_step(double end, double steps, const GridRules& rules) {
    const bool narrow = end < rules.least_range;
    if (narrow && rules.narrow_step > 0) return rules.narrow_step;
    return (narrow ? rules.least_range : end) / steps;
}

Grid zero_based_grid(Range range, const GridRules& rules) {
    Grid grid;
    grid.codes = greatest_code(rules.bits);
    const auto codes = static_cast<double>(grid.codes);
    const double end = std::max(range.max, 0.0);
    grid.step =
        rules.full_steps ? full_step(end, codes + 1, rules) : std::max(end, rules.least_range) / codes;
    if (rules.power_of_two) grid.step = power_of_two_above(grid.step);
    grid.max = codes * grid.step;
    return grid;
}

Grid symmetric_grid(Range range, const GridRules& rules) {
    Grid grid;
    grid.codes = greatest_code(rules.bits);
    const auto half = static_cast<double>(greatest_code(rules.bits - 1));
    grid.step = rules.full_steps ? full_step(magnitude_of(range), half + 1, rules)
                                 : std::max(magnitude_of(range) / half,
                                            rules.least_range / static_cast<double>(grid.codes));
    if (rules.power_of_two) grid.step = power_of_two_above(grid.step);
    grid.offset = -(std::int64_t{1} << (rules.bits - 1));
    grid.min = static_cast<double>(grid.offset) * grid.step;
    grid.max = half * grid.step;
    return grid;
}

}  // namespace

double power_of_two_above(double value) {
    assert(value > 0 && std::isfinite(value));
    constexpr double tolerance = 1e-9;
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
    return std::ldexp(1.0, fraction <= 0.5 * (1 + tolerance) ? exponent - 1 : exponent);
}

Grid make_grid(Range range, const GridRules& rules) {
    assert(rules.bits >= 2 && rules.bits <= 32);
    assert(std::isfinite(range.min) && std::isfinite(range.max) && range.min <= range.max);
    assert(rules.least_range > 0);
    if (rules.scheme == Scheme::symmetric) return symmetric_grid(range, rules);
    if (rules.scheme == Scheme::asymmetric) return asymmetric_grid(range, rules);
    if (rules.scheme == Scheme::from_zero) return zero_based_grid(range, rules);
    if (range.min < 0) return symmetric_grid(range, rules);
    if (rules.full_steps) return zero_based_grid(range, rules);
    GridRules unsigned_rules = rules;
    unsigned_rules.include_zero = true;
    return asymmetric_grid(range, unsigned_rules);
}

}  // namespace qcalib
