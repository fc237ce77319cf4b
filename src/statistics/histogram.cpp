#include "statistics/histogram.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "statistics/block_kernels.h"
#include "statistics/histogram_kernels.h"

namespace qcalib {

namespace {

constexpr std::uint64_t most_held = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t most_steps = 16;  // after so many, every count is in bin 0

// Calls visit(first bin of the block) for each occupied block, ascending.
template <typename Visit>
void for_each_block(const MagnitudeHistogram::OccupiedBlocks& occupied, Visit visit) {
    for (std::size_t word = 0; word < occupied.size(); ++word) {
        for (std::uint64_t bits = occupied[word]; bits != 0; bits &= bits - 1) {
            visit((word * 64 + static_cast<std::size_t>(std::countr_zero(bits))) * MagnitudeHistogram::block);
        }
    }
}

// Where a bin's counts lie once E has grown by `steps`: down by a group for each step as long as that leads
// to group 1 at least; what steps are left halve the bins.
std::size_t grown_bin(std::size_t bin, std::uint32_t steps) {
    const std::size_t down = std::min<std::size_t>(
        steps, bin < MagnitudeHistogram::group ? 0 : bin / MagnitudeHistogram::group - 1);
    return (bin - down * MagnitudeHistogram::group) >> std::min<std::size_t>(steps - down, 31);
}

// The occupied blocks of the groups that move down by `steps` whole groups, where they come to lie.
MagnitudeHistogram::OccupiedBlocks moved_blocks(const MagnitudeHistogram::OccupiedBlocks& occupied,
                                                std::uint32_t steps) {
    constexpr std::size_t halves = MagnitudeHistogram::bins / MagnitudeHistogram::group;  // 32 blocks a group
    MagnitudeHistogram::OccupiedBlocks moved = {};
    for (std::size_t target = 1; target + steps < halves; ++target) {
        const std::size_t source = target + steps;
        const std::uint64_t of_group = (occupied[source / 2] >> (source % 2 * 32)) & 0xffffffffU;
        moved[target / 2] |= of_group << (target % 2 * 32);
    }
    return moved;
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

std::uint64_t MagnitudeHistogram::block_total(std::size_t index) const {
    if (counts_.empty()) return 0;
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < block; ++k) sum += counts_[index * block + k];
    if (spilled_.empty()) return sum;
    for (std::size_t k = 0; k < block; ++k) sum += spilled_[index * block + k];
    return sum;
}

void MagnitudeHistogram::grow(int exponent) {
    if (!open_) {
        counts_.make();
        open_ = true;
        exponent_ = exponent;
        return;
    }
    if (exponent <= exponent_) return;
    const auto steps = std::min(static_cast<std::uint32_t>(exponent - exponent_), most_steps);
    const std::size_t moved = std::min<std::size_t>(steps, 7) * group;
    exponent_ = exponent;
    std::array<std::uint32_t, group> lowest = {};
    fold_groups(counts_.data(), occupied_, steps, lowest.data());
    const std::span<std::uint32_t> counts = counts_.all();
    std::ranges::copy(counts.subspan(group + moved), counts.subspan(group).begin());
    std::ranges::fill(counts.last(moved), 0U);
    std::ranges::fill(counts.first(group), 0U);
    occupied_ = moved_blocks(occupied_, steps);
    add_run(lowest, counts_.data(), occupied_);
    for (std::size_t bin = 0; bin < spilled_.size(); ++bin) {
        const std::uint64_t count = std::exchange(spilled_[bin], 0);
        const std::size_t target = grown_bin(bin, steps);
        spilled_[target] += count;
        if (count != 0) mark(occupied_, target);
    }
}

// Spills where `count` more would not fit.
void MagnitudeHistogram::make_room_for(std::uint64_t count) {
    total_ += count;
    held_ += count;
    if (held_ <= most_held) return;
    spill();
    held_ = count;
}

void MagnitudeHistogram::spill() {
    spilled_.resize(bins);
    for (std::size_t bin = 0; bin < bins; ++bin) spilled_[bin] += std::exchange(counts_[bin], 0);
    held_ = 0;
}

void MagnitudeHistogram::add(std::size_t bin, std::uint64_t count) {
    if (count == 0) return;
    mark(occupied_, bin);
    if (count > most_held) {
        spilled_.resize(bins);
        spilled_[bin] += count;
        total_ += count;
        return;
    }
    make_room_for(count);
    counts_[bin] += static_cast<std::uint32_t>(count);
}

std::uint32_t* MagnitudeHistogram::counts_by_slot(MagnitudeHistogram& positive,
                                                  MagnitudeHistogram& negative) {
    static_assert(first_negative_slot == bins);
    assert(positive.empty() && negative.empty());
    BinCounts::adjoin(positive.counts_, negative.counts_);
    return positive.counts_.data();
}

std::uint64_t MagnitudeHistogram::recount(std::size_t end) {
    const std::uint64_t sum = sum_counts(counts_.data(), (end + block - 1) / block, occupied_);
    const std::uint64_t added = sum - held_;
    take_direct(added);
    return added;
}

void MagnitudeHistogram::recount(std::size_t end, std::uint64_t added) {
    mark_counts(counts_.data(), (end + block - 1) / block, occupied_);
    take_direct(added);
}

void MagnitudeHistogram::take_direct(std::uint64_t added) {
    total_ += added;
    held_ += added;
    if (held_ > most_held / 2) spill();
}

void MagnitudeHistogram::add_each(std::span<const std::uint16_t> of_elements, MagnitudeHistogram& positive,
                                  MagnitudeHistogram& negative) {
    constexpr std::size_t bits_to_side = 12;
    static_assert(first_negative_slot == 1U << bits_to_side);
    std::uint64_t negatives = 0;
    for (const std::uint16_t slot : of_elements) negatives += slot >> bits_to_side;
    positive.make_room_for(of_elements.size() - negatives);
    negative.make_room_for(negatives);
    const std::array<std::uint32_t*, 2> counts = {positive.counts_.data(), negative.counts_.data()};
    std::array<std::uint8_t, (first_negative_slot + bins) / block> met = {};  // faster to set than bits
    for (const std::uint16_t slot : of_elements) {
        ++counts[slot >> bits_to_side][slot % bins];
        met[slot / block] = 1;
    }
    for (std::size_t i = 0; i < bins / block; i += 8) {
        const auto bits_of = [&](std::size_t first) {
            std::uint64_t eight = 0;
            std::memcpy(&eight, &met[first], sizeof eight);
            return (eight * 0x0102040810204080U) >> 56;  // byte k becomes bit k
        };
        positive.occupied_[i / 64] |= bits_of(i) << (i % 64);
        negative.occupied_[i / 64] |= bits_of(first_negative_slot / block + i) << (i % 64);
    }
}

void MagnitudeHistogram::merge(const MagnitudeHistogram& other) {
    if (other.empty()) return;
    grow(other.exponent_);
    const auto steps = std::min(static_cast<std::uint32_t>(exponent_ - other.exponent_), most_steps);
    make_room_for(other.held_);
    if (steps == 0) {
        add_blocks(other.occupied_, other.counts_.data(), counts_.data());
        for (std::size_t word = 0; word < occupied_.size(); ++word) occupied_[word] |= other.occupied_[word];
    } else {
        std::array<std::uint32_t, group> lowest = {};
        fold_groups(other.counts_.data(), other.occupied_, steps, lowest.data());
        add_run(lowest, counts_.data(), occupied_);
        const OccupiedBlocks moved = moved_blocks(other.occupied_, steps);
        // Groups from bins / group on are nobody's: `moved` is zero there.
        add_blocks(moved, other.counts_.data(), counts_.data(), std::min<std::size_t>(steps, 7) * group);
        for (std::size_t word = 0; word < occupied_.size(); ++word) occupied_[word] |= moved[word];
    }
    if (!other.spilled_.empty()) add_spilled(other, steps);
}

void MagnitudeHistogram::add_spilled(const MagnitudeHistogram& other, std::uint32_t steps) {
    spilled_.resize(bins);
    for (std::size_t bin = 0; bin < bins; ++bin) {
        const std::uint64_t count = other.spilled_[bin];
        if (count == 0) continue;
        const std::size_t target = grown_bin(bin, steps);
        spilled_[target] += count;
        total_ += count;
        mark(occupied_, target);
    }
}

void MagnitudeHistogram::add_repeated(const MagnitudeHistogram& other, std::uint64_t times) {
    if (other.empty()) return;
    grow(other.exponent_);
    const auto steps = static_cast<std::uint32_t>(exponent_ - other.exponent_);
    for_each_block(other.occupied_, [&](std::size_t first) {
        for (std::size_t bin = first; bin < first + block; ++bin) {
            add(grown_bin(bin, steps), other.count(bin) * times);
        }
    });
}

void MagnitudeHistogram::pile_up(std::size_t bin) {
    std::uint64_t moved = 0;
    const OccupiedBlocks before = occupied_;
    for_each_block(before, [&](std::size_t first) {
        if (first + block <= bin + 1) return;
        for (std::size_t k = std::max(first, bin + 1); k < first + block; ++k) {
            moved += count(k);
            total_ -= count(k);
            held_ -= std::exchange(counts_[k], 0);
            if (!spilled_.empty()) spilled_[k] = 0;
        }
        if (first > bin) occupied_[first / block / 64] &= ~(std::uint64_t{1} << (first / block % 64));
    });
    add(bin, moved);
}

void MagnitudeHistogram::clear() {
    if (total_ > 0) clear_blocks(occupied_, counts_.data());
    spilled_.clear();
    open_ = false;
    exponent_ = 0;
    total_ = 0;
    held_ = 0;
    occupied_ = {};
}

bool MagnitudeHistogram::operator==(const MagnitudeHistogram& other) const {
    if (open_ != other.open_ || exponent_ != other.exponent_ || total_ != other.total_) return false;
    if (!open_) return true;
    if (spilled_.empty() && other.spilled_.empty())
        return std::ranges::equal(counts_.all(), other.counts_.all());
    for (std::size_t bin = 0; bin < bins; ++bin) {
        if (count(bin) != other.count(bin)) return false;
    }
    return true;
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

void TensorStatistics::clear() {
    zeros = 0;
    nans = 0;
    positive_infinities = 0;
    negative_infinities = 0;
    positive_masks = 0;
    negative_masks = 0;
    extremes.reset();
    positive.clear();
    negative.clear();
}

}  // namespace qcalib
