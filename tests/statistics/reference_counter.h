#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "statistics/counter.h"

namespace qcalib::test {

// The same counts as Counter's, by the definition alone: in double, one element after the other.
struct ReferenceCounts {
    std::uint64_t zeros = 0;
    std::uint64_t nans = 0;
    std::uint64_t positive_infinities = 0;
    std::uint64_t negative_infinities = 0;
    std::uint64_t positive_masks = 0;
    std::uint64_t negative_masks = 0;
    std::optional<Range> extremes;

    struct Side {
        std::optional<int> exponent;
        std::array<std::uint64_t, 4096> counts = {};
    };
    Side positive;
    Side negative;
};

inline int reference_exponent(double greatest) {
    int exponent = -200;
    while (greatest >= std::exp2(exponent)) ++exponent;
    return exponent;
}

// 512 equal bins below 2^(E-7), and 512 in each of the seven binades above.
inline std::size_t reference_bin(double magnitude, int exponent) {
    const double low = std::exp2(exponent - 7);
    if (magnitude < low) return static_cast<std::size_t>(magnitude / low * 512);
    for (int binade = 1;; ++binade) {
        const double start = std::exp2(exponent - 8 + binade);
        if (magnitude < 2 * start)
            return static_cast<std::size_t>(512 * binade + (magnitude / start - 1) * 512);
    }
}

inline void fill_reference_side(std::span<const double> magnitudes, ReferenceCounts::Side& side) {
    double greatest = 0;
    for (const double magnitude : magnitudes) greatest = std::max(greatest, magnitude);
    if (magnitudes.empty()) return;
    side.exponent = reference_exponent(greatest);
    for (const double magnitude : magnitudes) ++side.counts[reference_bin(magnitude, *side.exponent)];
}

inline ReferenceCounts reference_count(std::span<const float> elements,
                                       std::optional<double> mask_below = {}) {
    ReferenceCounts counts;
    std::vector<double> positive;
    std::vector<double> negative;
    const auto take_extreme = [&](double value) {
        if (!counts.extremes) counts.extremes = Range{value, value};
        counts.extremes->min = std::min(counts.extremes->min, value);
        counts.extremes->max = std::max(counts.extremes->max, value);
    };
    for (const float element : elements) {
        const double value = element;
        if (std::isnan(value)) {
            ++counts.nans;
        } else if (std::isinf(value)) {
            ++(value > 0 ? counts.positive_infinities : counts.negative_infinities);
        } else if (std::fabs(value) < std::exp2(-126)) {
            ++counts.zeros;
            take_extreme(0.0);
        } else if (value >= 1e30) {
            ++counts.positive_masks;
        } else if (value <= -1e30 || (mask_below && value < *mask_below)) {
            ++counts.negative_masks;
        } else {
            (value > 0 ? positive : negative).push_back(std::fabs(value));
            take_extreme(value);
        }
    }
    fill_reference_side(positive, counts.positive);
    fill_reference_side(negative, counts.negative);
    return counts;
}

// True where the two agree in every bin; doctest shows the message where they do not.
inline std::string first_difference(const MagnitudeHistogram& found, const ReferenceCounts::Side& expected) {
    if (found.empty() == expected.exponent.has_value()) return "one of the two is empty";
    if (found.empty()) return "";
    if (found.exponent() != *expected.exponent) {
        return "E is " + std::to_string(found.exponent()) + ", expected " +
               std::to_string(*expected.exponent);
    }
    std::uint64_t total = 0;
    for (std::size_t bin = 0; bin < MagnitudeHistogram::bins; ++bin) {
        total += found.count(bin);
        if (found.count(bin) == expected.counts[bin]) continue;
        return "bin " + std::to_string(bin) + " has " + std::to_string(found.count(bin)) + ", expected " +
               std::to_string(expected.counts[bin]);
    }
    return total == found.total() ? "" : "the total is " + std::to_string(found.total());
}

// "" where all counts and extremes agree, else what differs first.
inline std::string first_difference(const TensorStatistics& found, const ReferenceCounts& expected) {
    const auto differs = [](std::uint64_t a, std::uint64_t b, const char* what) {
        return a == b ? "" : std::string(what) + ": " + std::to_string(a) + ", expected " + std::to_string(b);
    };
    for (const std::string& difference :
         {differs(found.zeros, expected.zeros, "zeros"), differs(found.nans, expected.nans, "NaN"),
          differs(found.positive_infinities, expected.positive_infinities, "+Inf"),
          differs(found.negative_infinities, expected.negative_infinities, "-Inf"),
          differs(found.positive_masks, expected.positive_masks, "positive masks"),
          differs(found.negative_masks, expected.negative_masks, "negative masks"),
          std::string(found.extremes == expected.extremes ? "" : "extremes")}) {
        if (!difference.empty()) return difference;
    }
    const std::string positive = first_difference(found.positive, expected.positive);
    if (!positive.empty()) return "positive: " + positive;
    const std::string negative = first_difference(found.negative, expected.negative);
    return negative.empty() ? "" : "negative: " + negative;
}

}  // namespace qcalib::test
