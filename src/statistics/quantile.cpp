#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "statistics/histogram.h"

namespace qcalib {

namespace {

// A bin and how many counts lie in the bins of lesser magnitude.
struct Place {
    std::size_t bin = 0;
    std::uint64_t before = 0;
};

// The bin in which the counts, summed from the least magnitude on, reach `rank` (1 to total).
Place locate_from_below(const MagnitudeHistogram& histogram, std::uint64_t rank) {
    Place place;
    for (std::size_t word = 0; word < histogram.occupied_blocks().size(); ++word) {
        for (std::uint64_t bits = histogram.occupied_blocks()[word]; bits != 0; bits &= bits - 1) {
            const std::size_t block = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
            const std::uint64_t all = histogram.block_total(block);
            if (rank - place.before > all) {
                place.before += all;
                continue;
            }
            for (std::size_t k = 0; k < MagnitudeHistogram::block; ++k) {
                place.bin = block * MagnitudeHistogram::block + k;
                const std::uint64_t count = histogram.count(place.bin);
                if (rank - place.before <= count) return place;
                place.before += count;
            }
        }
    }
    return place;
}

// The same, found from the greatest magnitude on.
Place locate_from_above(const MagnitudeHistogram& histogram, std::uint64_t rank) {
    Place place{0, histogram.total()};
    for (std::size_t word = histogram.occupied_blocks().size(); word-- > 0;) {
        std::uint64_t bits = histogram.occupied_blocks()[word];
        while (bits != 0) {
            const auto highest = static_cast<std::size_t>(63 - std::countl_zero(bits));
            bits &= ~(std::uint64_t{1} << highest);
            const std::uint64_t all = histogram.block_total(word * 64 + highest);
            if (place.before - all >= rank) {
                place.before -= all;
                continue;
            }
            for (std::size_t k = MagnitudeHistogram::block; k-- > 0;) {
                place.bin = (word * 64 + highest) * MagnitudeHistogram::block + k;
                place.before -= histogram.count(place.bin);
                if (place.before < rank) return place;
            }
        }
    }
    return place;
}

Place locate(const MagnitudeHistogram& histogram, std::uint64_t rank) {
    return rank <= histogram.total() / 2 ? locate_from_below(histogram, rank)
                                         : locate_from_above(histogram, rank);
}

// The value of the element of that rank among the negative ones, which ascend from the greatest magnitude
// down.
double negative_value(const MagnitudeHistogram& negative, std::uint64_t rank) {
    const Place place = locate(negative, negative.total() - rank + 1);
    const auto count = static_cast<double>(negative.count(place.bin));
    const double lower = negative.lower_edge(place.bin);
    const double upper = negative.lower_edge(place.bin + 1);
    const auto more_negative = static_cast<double>(negative.total() - place.before) - count;
    return -upper + (upper - lower) * ((static_cast<double>(rank) - more_negative) / count);
}

double positive_value(const MagnitudeHistogram& positive, std::uint64_t rank) {
    const Place place = locate(positive, rank);
    const auto count = static_cast<double>(positive.count(place.bin));
    const double lower = positive.lower_edge(place.bin);
    const double upper = positive.lower_edge(place.bin + 1);
    return lower + (upper - lower) * (static_cast<double>(rank - place.before) / count);
}

double centre(const MagnitudeHistogram& histogram, std::size_t bin) {
    return (histogram.lower_edge(bin) + histogram.lower_edge(bin + 1)) / 2;
}

// Sums weight(centre) * count over all counted elements, in ascending order of values.
template <typename Weight>
double sum_ascending(const TensorStatistics& statistics, Weight weight) {
    double sum = 0;
    for (std::size_t bin = MagnitudeHistogram::bins; bin-- > 0;) {
        const std::uint64_t count = statistics.negative.count(bin);
        if (count != 0) sum += weight(-centre(statistics.negative, bin)) * static_cast<double>(count);
    }
    sum += weight(0.0) * static_cast<double>(statistics.zeros);
    for (std::size_t bin = 0; bin < MagnitudeHistogram::bins; ++bin) {
        const std::uint64_t count = statistics.positive.count(bin);
        if (count != 0) sum += weight(centre(statistics.positive, bin)) * static_cast<double>(count);
    }
    return sum;
}

}  // namespace

double quantile(const TensorStatistics& statistics, double p) {
    assert(statistics.extremes && statistics.counted() > 0);
    const std::uint64_t counted = statistics.counted();
    const double reached = std::ceil(p * static_cast<double>(counted));
    if (!(reached >= 1)) return statistics.extremes->min;
    if (reached >= static_cast<double>(counted)) return statistics.extremes->max;
    const auto rank = static_cast<std::uint64_t>(reached);
    const std::uint64_t negatives = statistics.negative.total();
    double value = 0;
    if (rank <= negatives) {
        value = negative_value(statistics.negative, rank);
    } else if (rank - negatives > statistics.zeros) {
        value = positive_value(statistics.positive, rank - negatives - statistics.zeros);
    }
    return std::clamp(value, statistics.extremes->min, statistics.extremes->max);
}

Moments moments(const TensorStatistics& statistics) {
    assert(statistics.extremes && statistics.counted() > 0);
    const auto counted = static_cast<double>(statistics.counted());
    Moments result;
    result.mean = sum_ascending(statistics, [](double value) { return value; }) / counted;
    result.variance =
        sum_ascending(statistics,
                      [&](double value) { return (value - result.mean) * (value - result.mean); }) /
        counted;
    return result;
}

}  // namespace qcalib
