#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "statistics/histogram.h"

// The inner loops of MagnitudeHistogram, on the instruction set Highway chooses.
namespace qcalib {

// Marks those of the first `blocks` blocks of bins, and up to 15 more, that hold a count.
void mark_counts(const std::uint32_t* counts, std::size_t blocks,
                 MagnitudeHistogram::OccupiedBlocks& occupied);

// The same; answers the sum of the counts, which is below 2^32.
std::uint64_t sum_counts(const std::uint32_t* counts, std::size_t blocks,
                         MagnitudeHistogram::OccupiedBlocks& occupied);

// lowest[bin] = what falls into that bin of the lowest group when E grows by `steps` (1 to 16).
void fold_groups(const std::uint32_t* counts, const MagnitudeHistogram::OccupiedBlocks& occupied,
                 std::uint32_t steps, std::uint32_t* lowest);

// Adds a group of counts to the lowest group, and marks blocks with a count.
void add_run(std::span<const std::uint32_t, MagnitudeHistogram::group> lowest, std::uint32_t* counts,
             MagnitudeHistogram::OccupiedBlocks& occupied);

// Adds source[i + distance] to target[i] for the bins i of these blocks.
void add_blocks(const MagnitudeHistogram::OccupiedBlocks& blocks, const std::uint32_t* source,
                std::uint32_t* target, std::size_t distance = 0);

// Sets the bins of these blocks to 0.
void clear_blocks(const MagnitudeHistogram::OccupiedBlocks& blocks, std::uint32_t* counts);

}  // namespace qcalib
