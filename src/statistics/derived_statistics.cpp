#include "statistics/derived_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "statistics/block_kernels.h"

namespace qcalib {

namespace {

constexpr double least_normal_value = 0x1p-126;

// One sign of a tensor that is clipped in place, and the zeros that it may add to.
struct ClippedSide {
    MagnitudeHistogram& histogram;
    std::uint64_t& masks;
    std::uint64_t& infinities;
    std::uint64_t& zeros;
};

// Clips magnitudes to `bound`; `limit` is the least magnitude that is a mask. Answers false where E would be
// less.
bool clip_side(ClippedSide side, float bound, float limit) {
    if (std::isinf(bound)) return true;
    const std::uint64_t beyond = side.masks + side.infinities;
    if (static_cast<double>(bound) < least_normal_value) {
        side.zeros += side.histogram.total() + beyond;
        side.histogram.clear();
        side.masks = side.infinities = 0;
        return true;
    }
    if (bound >= limit) {
        side.masks = beyond;
        side.infinities = 0;
        return true;
    }
    const int exponent = std::ilogb(bound) + 1;
    if (!side.histogram.empty() && exponent < side.histogram.exponent()) return false;
    side.masks = side.infinities = 0;
    if (!side.histogram.empty() && exponent == side.histogram.exponent()) {
        side.histogram.pile_up(MagnitudeHistogram::bin_of(bound, exponent));
    }
    if (beyond == 0) return true;
    side.histogram.grow(exponent);
    side.histogram.add(MagnitudeHistogram::bin_of(bound, exponent), beyond);
    return true;
}

// The extremes of what is in `clipped`: each of its values is one of the source's, clipped, or a bound.
void clip_extremes(const TensorStatistics& source, Range bounds, TensorStatistics& clipped) {
    clipped.extremes.reset();
    const auto take = [&](double value) {
        if (std::fabs(value) < least_normal_value) value = 0;
        if (!clipped.extremes) clipped.extremes = Range{value, value};
        clipped.extremes->min = std::min(clipped.extremes->min, value);
        clipped.extremes->max = std::max(clipped.extremes->max, value);
    };
    if (source.extremes) {
        take(std::clamp(source.extremes->min, bounds.min, bounds.max));
        take(std::clamp(source.extremes->max, bounds.min, bounds.max));
    }
    const auto specials = [](std::uint64_t masks, std::uint64_t infinities) { return masks + infinities; };
    const auto became_values = [&](std::uint64_t before, std::uint64_t after) { return after < before; };
    if (became_values(specials(source.positive_masks, source.positive_infinities),
                      specials(clipped.positive_masks, clipped.positive_infinities))) {
        take(bounds.max);
    }
    if (became_values(specials(source.negative_masks, source.negative_infinities),
                      specials(clipped.negative_masks, clipped.negative_infinities))) {
        take(bounds.min);
    }
}

// The lower edge of the side's lowest bin with a count: no magnitude is less.
double lowest_edge(const MagnitudeHistogram& side) {
    for (std::size_t block = 0; block < MagnitudeHistogram::bins / MagnitudeHistogram::block; ++block) {
        if (side.block_total(block) == 0) continue;
        std::size_t bin = block * MagnitudeHistogram::block;
        while (side.count(bin) == 0) ++bin;
        return side.lower_edge(bin);
    }
    return std::numeric_limits<double>::infinity();
}

std::uint64_t count_nonzero(std::span<const float> elements) {
    constexpr std::size_t block = 4096;
    std::uint64_t nonzero = 0;
    for (std::size_t done = 0; done < elements.size(); done += block) {
        nonzero += scan_block(elements.data() + done, std::min(block, elements.size() - done)).nonzero;
    }
    return nonzero;
}

}  // namespace

bool derive_clipped(const TensorStatistics& source, Range bounds, const CounterSettings& settings,
                    TensorStatistics& result) {
    if (!(bounds.min <= 0 && bounds.max >= 0)) return false;  // NaN neither
    const MaskLimits limits = mask_limits(settings);
    result = source;
    const bool clipped =
        clip_side({result.positive, result.positive_masks, result.positive_infinities, result.zeros},
                  static_cast<float>(bounds.max), std::bit_cast<float>(limits.positive)) &&
        clip_side({result.negative, result.negative_masks, result.negative_infinities, result.zeros},
                  static_cast<float>(-bounds.min), std::bit_cast<float>(limits.negative));
    if (clipped) clip_extremes(source, bounds, result);
    return clipped;
}

bool derive_scaled(const TensorStatistics& source, int power, const CounterSettings& settings,
                   std::span<const float> scaled, TensorStatistics& result) {
    if (source.positive_masks + source.negative_masks + source.positive_infinities +
            source.negative_infinities >
        0) {
        return false;
    }
    if (source.extremes) {
        const MaskLimits limits = mask_limits(settings);
        const double most = std::bit_cast<float>(limits.positive);
        const double least = -static_cast<double>(std::bit_cast<float>(limits.negative));
        if (std::ldexp(source.extremes->max, power) >= most ||
            std::ldexp(source.extremes->min, power) <= least) {
            return false;
        }
    }
    const double lowest = std::min(lowest_edge(source.positive), lowest_edge(source.negative));
    const bool stays_normal = power >= 0 || std::ldexp(lowest, power) >= least_normal_value;
    if (!stays_normal && count_nonzero(scaled) != source.elements() - source.zeros) return false;
    result = source;
    result.positive.scale(power);
    result.negative.scale(power);
    if (result.extremes) {
        result.extremes->min = std::ldexp(result.extremes->min, power);
        result.extremes->max = std::ldexp(result.extremes->max, power);
    }
    return true;
}

bool derive_repeated(const TensorStatistics& source, std::uint64_t times, TensorStatistics& result) {
    result.clear();
    if (times == 0) return true;
    result.extremes = source.extremes;
    result.zeros = source.zeros * times;
    result.nans = source.nans * times;
    result.positive_infinities = source.positive_infinities * times;
    result.negative_infinities = source.negative_infinities * times;
    result.positive_masks = source.positive_masks * times;
    result.negative_masks = source.negative_masks * times;
    result.positive.add_repeated(source.positive, times);
    result.negative.add_repeated(source.negative, times);
    return true;
}

bool derive_joined(std::span<const TensorStatistics* const> sources, TensorStatistics& result) {
    result.clear();
    for (const TensorStatistics* source : sources) result.merge(*source);
    return true;
}

}  // namespace qcalib
