#include "report/convergence.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace qcalib {

namespace {

constexpr std::size_t fewest_samples = 4;
constexpr double codes = 255;           // of 8 bits
constexpr double settled_share = 0.02;  // of the tensors that may still move

// The joint extremes and the mean tails of a tensor's samples so far.
class Gathered {
  public:
    void add(const SampleSummary& sample) {
        if (!sample.has_data) return;
        extremes_ = count_ == 0 ? Range{sample.min, sample.max}
                                : Range{std::min<double>(extremes_.min, sample.min),
                                        std::max<double>(extremes_.max, sample.max)};
        tails_.min += sample.low_tail;
        tails_.max += sample.high_tail;
        ++count_;
    }
    bool empty() const { return count_ == 0; }
    Range extremes() const { return extremes_; }
    Range tails() const {
        const auto count = static_cast<double>(count_);
        return {tails_.min / count, tails_.max / count};
    }

  private:
    std::size_t count_ = 0;
    Range extremes_;
    Range tails_;  // sums
};

double distance(Range first, Range second) {
    return std::max(std::abs(first.min - second.min), std::abs(first.max - second.max));
}

// Of 8 bits over the range, widened to 0.
double step_of(Range range) {
    return (std::max(0.0, range.max) - std::min(0.0, range.min)) / codes;
}

bool settled(std::size_t moved, std::size_t total) {
    return static_cast<double>(moved) <= settled_share * static_cast<double>(total);
}

std::string_view advice(const Convergence& convergence) {
    const std::size_t total = convergence.tensors.size();
    const bool extremes = settled(convergence.moved, total);
    const bool tails = convergence.tails ? settled(convergence.tails_moved, total) : extremes;
    if (extremes && tails) return "more samples would change little";
    if (tails) return "more samples would help minmax, and change little for methods that cut tails";
    if (extremes) return "more samples would change little for minmax, and help methods that average samples";
    return "more samples would help";
}

}  // namespace

std::string share_of_tensors(std::size_t count, std::size_t total) {
    return fmt::format("{} of {} tensors ({:.1f} %)", count, total,
                       100 * static_cast<double>(count) / static_cast<double>(total));
}

double RangeMovement::steps(Range first, Range second) const {
    return step == 0 ? 0 : distance(first, second) / step;
}

std::optional<RangeMovement> movement_of(const StatisticsFile& file, std::size_t tensor) {
    const std::size_t half = file.rows() / 2;
    Gathered gathered;
    RangeMovement movement;
    movement.tensor = tensor;
    movement.tails = !file.header().counter.extremes_only;
    for (std::size_t row = 0; row < file.rows(); ++row) {
        if (row == half) {
            if (gathered.empty()) return std::nullopt;
            movement.half = gathered.extremes();
            movement.half_tails = gathered.tails();
        }
        gathered.add(file.entry(row, tensor));
    }
    if (gathered.empty()) return std::nullopt;
    movement.all = gathered.extremes();
    movement.all_tails = gathered.tails();
    movement.step = step_of(movement.all);
    return movement;
}

Convergence convergence_of(const StatisticsFile& file) {
    Convergence convergence;
    convergence.samples = file.rows();
    convergence.half = file.rows() / 2;
    convergence.tails = !file.header().counter.extremes_only;
    if (file.rows() < fewest_samples) return convergence;
    for (std::size_t tensor = 0; tensor < file.header().tensors.size(); ++tensor) {
        if (file.header().tensors[tensor].constant) continue;
        const std::optional<RangeMovement> movement = movement_of(file, tensor);
        if (!movement) continue;
        convergence.moved += movement->moved() > 1 ? 1 : 0;
        convergence.tails_moved += movement->tails_moved() > 1 ? 1 : 0;
        convergence.tensors.push_back(*movement);
    }
    return convergence;
}

ChosenMovement movement_of_chosen(const StatisticsFile& file, const RangeChooser& choose) {
    ChosenMovement movement;
    if (file.rows() < fewest_samples) return movement;
    const StatisticsFile half = file.first(file.rows() / 2);
    for (std::size_t tensor = 0; tensor < file.header().tensors.size(); ++tensor) {
        if (file.header().tensors[tensor].constant) continue;
        const std::optional<Range> first = choose(half, tensor);
        const std::optional<Range> all = first ? choose(file, tensor) : std::nullopt;
        if (!all) continue;
        ++movement.tensors;
        movement.moved += distance(*first, *all) > step_of(*all) ? 1 : 0;
    }
    return movement;
}

std::vector<std::string> convergence_lines(const Convergence& convergence) {
    const std::size_t total = convergence.tensors.size();
    if (total == 0) return {fmt::format("{} samples are too few to tell", convergence.samples)};
    std::string shares = "min or max of " + share_of_tensors(convergence.moved, total);
    if (convergence.tails) shares += ", mean tails of " + share_of_tensors(convergence.tails_moved, total);
    return {fmt::format("by the last {} of {} samples moved by more than a step of 8 bits:",
                        convergence.samples - convergence.half, convergence.samples),
            std::move(shares), std::string(advice(convergence))};
}

}  // namespace qcalib
