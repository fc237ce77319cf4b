#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/range.h"

namespace qcalib {

// Counts of the magnitudes of one sign. With E the least integer such that every |x| < 2^E: 512 equal bins
// lie below 2^(E-7) and 512 in each of the seven binades above. When E grows by one the two lowest groups of
// 512 add pairwise and the others move down, so the counts depend on nothing but the multiset of values.
class MagnitudeHistogram {
  public:
    static constexpr std::size_t group = 512;
    static constexpr std::size_t bins = 8 * group;
    static constexpr std::size_t block = 16;  // bins that one bit of OccupiedBlocks stands for
    using OccupiedBlocks = std::array<std::uint64_t, bins / block / 64>;

    bool empty() const { return !open_; }
    int exponent() const { return exponent_; }  // E; only where not empty

    // The bin of a finite magnitude of at least 2^-126 and below 2^exponent.
    static std::size_t bin_of(float magnitude, int exponent);
    // Magnitudes from lower_edge(i) to below lower_edge(i + 1) fall into bin i < bins.
    double lower_edge(std::size_t bin) const;
    std::uint64_t count(std::size_t bin) const { return counts_.empty() ? 0 : counts_[bin]; }
    std::uint64_t total() const { return total_; }
    // Bit i % 64 of word i / 64 is set where one of the bins from i * block to below (i + 1) * block holds a
    // count.
    const OccupiedBlocks& occupied_blocks() const { return occupied_; }

    // Makes room for magnitudes below 2^exponent; never shrinks.
    void grow(int exponent);
    void add(std::size_t bin, std::uint64_t count) {
        counts_[bin] += count;
        total_ += count;
        if (count != 0) mark(occupied_, bin);
    }
    // Adds 1 to each of these bins.
    void add_each(std::span<const std::uint16_t> of_elements);
    // Adds counts[i] to bin `first_bin` + i, which starts a block as does the end.
    void add_run(std::size_t first_bin, std::span<const std::uint32_t> counts);
    void merge(const MagnitudeHistogram& other);
    // Forgets all counts and E, and keeps the memory.
    void clear();

    bool operator==(const MagnitudeHistogram& other) const;

  private:
    static void mark(OccupiedBlocks& blocks, std::size_t bin) {
        blocks[bin / block / 64] |= std::uint64_t{1} << (bin / block % 64);
    }
    // Adds the counts of the block that starts at `first`, as they lie once E has grown by `steps`.
    void add_grown(std::size_t first, std::span<const std::uint64_t, block> counts, std::uint32_t steps);

    bool open_ = false;
    int exponent_ = 0;
    std::uint64_t total_ = 0;
    OccupiedBlocks occupied_ = {};
    std::vector<std::uint64_t> counts_;  // `bins` of them once grown, all zero outside the occupied blocks
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
