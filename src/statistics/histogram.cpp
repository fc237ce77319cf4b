#include "statistics/histogram.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "statistics/block_kernels.h"

namespace qcalib {

namespace {

// Calls visit(first bin of the block) for each occupied block, ascending.
template <typename Visit>
void for_each_block(const MagnitudeHistogram::OccupiedBlocks& occupied, Visit visit) {
    for (std::size_t word = 0; word < occupied.size(); ++word) {
        for (std::uint64_t bits = occupied[word]; bits != 0; bits &= bits - 1) {
            visit((word * 64 + static_cast<std::size_t>(std::countr_zero(bits))) * MagnitudeHistogram::block);
        }
    }
}

}  // namespace

std::size_t MagnitudeHistogram::bin_of(float magnitude, int exponent) {
    const auto bits = std::bit_cast<std::uint32_t>(magnitude);
    const int e = static_cast<int>(bits >> 23) - 127;
    const std::uint32_t mantissa = bits & 0x7fffffU;
    assert(e >= -126 && e < exponent);
    if (e >= exponent - 7) return static_cast<std::size_t>(e - exponent + 8) * group + (mantissa >> 14);
    const int shift = exponent - e + 7;
    return shift >= 24 ? 0 : (0x800000U | mantissa) >> shift;
}

double MagnitudeHistogram::lower_edge(std::size_t bin) const {
    if (bin < group) return std::ldexp(static_cast<double>(bin), exponent_ - 16);
    const auto binade = static_cast<int>(bin / group);
    return std::ldexp(static_cast<double>(group + bin % group), exponent_ - 17 + binade);
}

void MagnitudeHistogram::grow(int exponent) {
    if (!open_) {
        counts_.resize(bins);
        open_ = true;
        exponent_ = exponent;
        return;
    }
    if (exponent <= exponent_) return;
    const auto steps = static_cast<std::uint32_t>(exponent - exponent_);
    exponent_ = exponent;
    const OccupiedBlocks before = std::exchange(occupied_, {});
    // Ascending, so that every block has left its place before others arrive there.
    for_each_block(before, [&](std::size_t first) {
        std::array<std::uint64_t, block> counts = {};
        std::swap_ranges(counts.begin(), counts.end(), &counts_[first]);
        add_grown(first, counts, steps);
    });
}

void MagnitudeHistogram::add_grown(std::size_t first, std::span<const std::uint64_t, block> counts,
                                   std::uint32_t steps) {
    // Down by a group for each step as long as that leads to group 1 at least; what steps are left halve the
    // bins.
    const auto descents =
        std::min<std::uint32_t>(steps, first < group ? 0 : static_cast<std::uint32_t>(first / group) - 1);
    const std::uint32_t halvings = std::min(steps - descents, 31U);
    const std::size_t target = (first - descents * group) >> halvings;
    std::array<std::uint64_t, block> sums = {};
    std::copy(counts.begin(), counts.end(), sums.begin());
    std::size_t width = block;
    for (std::uint32_t i = 0; i < halvings && width > 1; ++i) {
        width /= 2;
        for (std::size_t k = 0; k < width; ++k) sums[k] = sums[2 * k] + sums[2 * k + 1];
    }
    for (std::size_t k = 0; k < width; ++k) counts_[target + k] += sums[k];
    mark(occupied_, target);
}

void MagnitudeHistogram::add_each(std::span<const std::uint16_t> of_elements) {
    std::array<std::uint8_t, bins / block> met = {};  // a byte a block: faster to set than bits
    for (const std::uint16_t bin : of_elements) {
        ++counts_[bin];
        met[bin / block] = 1;
    }
    for (std::size_t i = 0; i < met.size(); i += 8) {
        std::uint64_t eight = 0;
        std::memcpy(&eight, &met[i], sizeof eight);
        const std::uint64_t bits = (eight * 0x0102040810204080U) >> 56;  // byte k becomes bit k
        occupied_[i / 64] |= bits << (i % 64);
    }
    total_ += of_elements.size();
}

void MagnitudeHistogram::add_run(std::size_t first_bin, std::span<const std::uint32_t> counts) {
    assert(first_bin % block == 0 && counts.size() % block == 0 && first_bin + counts.size() <= bins);
    total_ += widen_blocks(counts, first_bin / block, counts_.data(), occupied_);
}

void MagnitudeHistogram::merge(const MagnitudeHistogram& other) {
    if (other.empty()) return;
    grow(other.exponent_);
    total_ += other.total_;
    const auto steps = static_cast<std::uint32_t>(exponent_ - other.exponent_);
    if (steps == 0) {
        add_blocks(other.occupied_, other.counts_.data(), counts_.data());
        for (std::size_t word = 0; word < occupied_.size(); ++word) occupied_[word] |= other.occupied_[word];
        return;
    }
    for_each_block(other.occupied_, [&](std::size_t first) {
        add_grown(first, std::span<const std::uint64_t, block>(&other.counts_[first], block), steps);
    });
}

void MagnitudeHistogram::clear() {
    for_each_block(occupied_, [&](std::size_t first) { std::fill_n(&counts_[first], block, 0); });
    open_ = false;
    exponent_ = 0;
    total_ = 0;
    occupied_ = {};
}

bool MagnitudeHistogram::operator==(const MagnitudeHistogram& other) const {
    if (open_ != other.open_ || exponent_ != other.exponent_ || total_ != other.total_) return false;
    return !open_ || counts_ == other.counts_;
}

std::uint64_t TensorStatistics::elements() const {
    return counted() + nans + positive_infinities + negative_infinities + positive_masks + negative_masks;
}

void TensorStatistics::merge(const TensorStatistics& other) {
    zeros += other.zeros;
    nans += other.nans;
    positive_infinities += other.positive_infinities;
    negative_infinities += other.negative_infinities;
    positive_masks += other.positive_masks;
    negative_masks += other.negative_masks;
    if (!extremes) {
        extremes = other.extremes;
    } else if (other.extremes) {
        extremes->min = std::min(extremes->min, other.extremes->min);
        extremes->max = std::max(extremes->max, other.extremes->max);
    }
    positive.merge(other.positive);
    negative.merge(other.negative);
}

}  // namespace qcalib
