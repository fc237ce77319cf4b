#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "statistics/bin_counts.h"
#include "tensor/range.h"

namespace qcalib {

// Counts of the magnitudes of one sign. With E the least integer such that every |x| < 2^E: 512 equal bins
// lie below 2^(E-7) and 512 in each of the seven binades above. When E grows by one the two lowest groups of
// 512 add pairwise and the others move down, so the counts depend on nothing but the multiset of values.
class MagnitudeHistogram {
  public:
    static constexpr std::size_t group = 512;
    static constexpr std::size_t bins = BinCounts::bins;  // 8 groups
    static constexpr std::size_t block = 16;              // bins that one bit of OccupiedBlocks stands for
    using OccupiedBlocks = std::array<std::uint64_t, bins / block / 64>;

    bool empty() const { return !open_; }
    int exponent() const { return exponent_; }  // E; only where not empty

    // The bin of a finite magnitude of at least 2^-126 and below 2^exponent.
    static std::size_t bin_of(float magnitude, int exponent);
    // Magnitudes from lower_edge(i) to below lower_edge(i + 1) fall into bin i < bins.
    double lower_edge(std::size_t bin) const;
    std::uint64_t count(std::size_t bin) const {
        return (counts_.empty() ? 0 : counts_[bin]) + (spilled_.empty() ? 0 : spilled_[bin]);
    }
    std::uint64_t block_total(std::size_t index) const;  // of bins index * block to below (index + 1) * block
    std::uint64_t total() const { return total_; }
    // Bit i % 64 of word i / 64 is set where one of the bins from i * block to below (i + 1) * block holds a
    // count.
    const OccupiedBlocks& occupied_blocks() const { return occupied_; }

    // Makes room for magnitudes below 2^exponent; never shrinks.
    void grow(int exponent);
    void add(std::size_t bin, std::uint64_t count);
    // Where counts may be added directly, for each slot (see block_kernels.h); both sides must be empty(),
    // and are told by recount().
    static std::uint32_t* counts_by_slot(MagnitudeHistogram& positive, MagnitudeHistogram& negative);
    // Learns of less than 2^31 counts added directly to bins below `end`; answers how many. Not for an
    // empty() side.
    std::uint64_t recount(std::size_t end);
    // The same, where it is known that they are `added`: twice as fast.
    void recount(std::size_t end, std::uint64_t added);
    // Adds 1 for each slot (see block_kernels.h) to the bin of its side.
    static void add_each(std::span<const std::uint16_t> of_elements, MagnitudeHistogram& positive,
                         MagnitudeHistogram& negative);
    void merge(const MagnitudeHistogram& other);
    // Adds each count of a histogram `times` times.
    void add_repeated(const MagnitudeHistogram& other, std::uint64_t times);
    // Moves what lies in the bins above `bin` into it.
    void pile_up(std::size_t bin);
    // Multiplies every magnitude by 2^power.
    void scale(int power) {
        if (open_) exponent_ += power;
    }
    // Forgets all counts and E, and keeps the memory.
    void clear();

    bool operator==(const MagnitudeHistogram& other) const;

  private:
    static void mark(OccupiedBlocks& blocks, std::size_t bin) {
        blocks[bin / block / 64] |= std::uint64_t{1} << (bin / block % 64);
    }
    void make_room_for(std::uint64_t count);
    void take_direct(std::uint64_t added);
    void spill();
    void add_spilled(const MagnitudeHistogram& other, std::uint32_t steps);

    bool open_ = false;
    int exponent_ = 0;
    std::uint64_t total_ = 0;
    std::uint64_t held_ = 0;  // the sum of counts_, below 2^32
    OccupiedBlocks occupied_ = {};
    // There once grown, all zero outside the occupied blocks. 32 bits are half the memory that merging goes
    // through; what would not fit into them is spilled.
    BinCounts counts_;
    std::vector<std::uint64_t> spilled_;  // `bins` of them, or none
};

// What is known of a tensor's values, of one sample or of many.
struct TensorStatistics {
    std::uint64_t zeros = 0;  // denormals among them
    std::uint64_t nans = 0;
    std::uint64_t positive_infinities = 0;
    std::uint64_t negative_infinities = 0;
    std::uint64_t positive_masks = 0;  // |x| >= 1e30 and not infinite, or beyond the mask setting
    std::uint64_t negative_masks = 0;
    std::optional<Range> extremes;  // over zeros and ordinary values; nothing: "no data"
    MagnitudeHistogram positive;    // ordinary values: none of the above
    MagnitudeHistogram negative;    // their magnitudes

    // Zeros and ordinary values; without histograms (extremes_only) zeros alone.
    std::uint64_t counted() const { return zeros + positive.total() + negative.total(); }
    std::uint64_t elements() const;  // all of them, NaN, infinities and masks included
    void merge(const TensorStatistics& other);
    // Forgets everything, and keeps the memory.
    void clear();
    bool operator==(const TensorStatistics&) const = default;
};

// The value below which the fraction `p` of the counted elements lies: the count reaches ceil(p * counted),
// linear inside that bin, zeros included, clamped to the extremes. The statistics must have data.
double quantile(const TensorStatistics& statistics, double p);

// Mean and variance from bin centres; the statistics must have data.
struct Moments {
    double mean = 0;
    double variance = 0;
};
Moments moments(const TensorStatistics& statistics);

}  // namespace qcalib
