#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "statistics/statistics_file.h"
#include "tensor/range.h"

namespace qcalib {

// A tensor's range after the first half of the samples and after all, from rows alone.
struct RangeMovement {
    std::size_t tensor = 0;  // index into the header's tensors
    Range half;              // extremes
    Range all;
    Range half_tails;  // means over the samples of their 0.01 % and 99.99 % percentiles; 0 without tails
    Range all_tails;
    double step = 0;  // of 8 bits over `all`, widened to 0
    bool tails = false;

    // How far the end that moved more has moved, in steps; 0 where the step is 0.
    double moved() const { return steps(half, all); }
    double tails_moved() const { return steps(half_tails, all_tails); }

  private:
    double steps(Range first, Range second) const;
};

// Whether the ranges of a run had settled.
struct Convergence {
    std::size_t half = 0;                // samples (or steps) in the first half
    std::size_t samples = 0;             // in all
    std::vector<RangeMovement> tensors;  // those with data in both halves; empty: too few samples
    std::size_t moved = 0;               // whose extremes moved by more than a step
    std::size_t tails_moved = 0;
    bool tails = false;  // whether the file has tails
};

// The movement of a tensor that is no constant; nothing where one of the halves has no data.
std::optional<RangeMovement> movement_of(const StatisticsFile& file, std::size_t tensor);

// Of all tensors that are no constants. Fewer than 4 samples tell nothing.
Convergence convergence_of(const StatisticsFile& file);

// The range that is chosen for a tensor from the statistics of a run, if any.
using RangeChooser = std::function<std::optional<Range>(const StatisticsFile&, std::size_t tensor)>;

// Of how many tensors the chosen range moved by more than a step from the first half of the samples to all.
struct ChosenMovement {
    std::size_t tensors = 0;  // with a range after half and after all
    std::size_t moved = 0;
};
ChosenMovement movement_of_chosen(const StatisticsFile& file, const RangeChooser& choose);

// "3 of 80 tensors (3.8 %)".
std::string share_of_tensors(std::size_t count, std::size_t total);

// What moved by how much, and whether more samples would help; for a summary.
std::vector<std::string> convergence_lines(const Convergence& convergence);

}  // namespace qcalib
