#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ranges/fast_log.h"
#include "ranges/histogram_side.h"
#include "ranges/inside.h"
#include "ranges/range_method.h"

namespace qcalib {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double most_cells = 3 << 15;                                  // over all thresholds of a tensor
constexpr std::size_t least_threshold_bin = MagnitudeHistogram::group;  // below, bins are equally wide

// h log(h / w)
double information_of(double count, double width) {
    return count * std::log(count / width);
}

// Prefix sums of one side. A density is a count by the width of its bin; bins without a count take no part.
class SideDensity {
  public:
    SideDensity(HistogramSide side, const FastLog& logarithm)
        : side_(std::move(side)), logarithm_(&logarithm) {
        if (side_.empty()) return;
        sums_.resize(MagnitudeHistogram::bins + 1);
        Sums sums;
        std::size_t next = 0;
        for (const OccupiedBin& bin : side_.bins()) {
            std::fill(sums_.begin() + static_cast<std::ptrdiff_t>(next),
                      sums_.begin() + static_cast<std::ptrdiff_t>(bin.bin) + 1, sums);
            sums.count += bin.count;
            sums.width += bin.full_width;
            sums.information += information_of(bin.count, bin.full_width);
            sums.bins += 1;
            next = bin.bin + 1;
        }
        std::fill(sums_.begin() + static_cast<std::ptrdiff_t>(next), sums_.end(), sums);
    }

    double total() const { return side_.total(); }
    double count_below(double threshold) const {
        return side_.empty() ? 0 : sums_[side_.bins_below(threshold)].count;
    }

    // Of values clipped to `threshold`, less that of their averages over cells of `step` from zero on. What
    // is clipped joins the last occupied bin; infinite where there is none to join.
    double information(double threshold, double step) const {
        if (side_.empty()) return 0;
        const std::size_t end = side_.bins_below(threshold);
        const Sums& all = sums_[end];
        const double clipped = sums_.back().count - all.count;
        if (all.bins == 0) return clipped > 0 ? infinity : 0;
        const Cells cells = average(end, step);
        double sum = all.information - cells.information;
        if (clipped > 0) {
            const OccupiedBin& last = side_.bins()[static_cast<std::size_t>(all.bins) - 1];
            sum += information_of(last.count + clipped, last.full_width) -
                   information_of(last.count, last.full_width) - clipped * std::log(cells.last_density);
        }
        return sum;
    }

  private:
    struct Sums {
        double count = 0;
        double width = 0;
        double information = 0;
        double bins = 0;  // occupied ones
    };
    struct Cells {
        double information = 0;
        double last_density = 1;  // of the last cell with counts
    };

    Cells average(std::size_t end, double step) const {
        Cells cells;
        Sums before;
        double edge = std::max(1.0, std::floor(side_.least() / step));
        double last_count = 0;
        double last_width = 1;
        for (std::size_t index = 0; index < end; ++edge) {
            index = std::min(end, side_.bins_below(edge * step));
            const Sums& below = sums_[index];
            const double count = below.count - before.count;
            if (count > 0) {
                last_count = count;
                last_width = below.width - before.width;
                cells.information += count * (*logarithm_)(count / last_width);
            }
            before.count = below.count;
            before.width = below.width;
        }
        cells.last_density = last_count / last_width;
        return cells;
    }

    HistogramSide side_;
    const FastLog* logarithm_;
    std::vector<Sums> sums_;  // of the bins below
};

// A search over thresholds on the magnitude: [max(-t, min), min(t, max)].
class DivergenceSearch {
  public:
    DivergenceSearch(const TensorStatistics& statistics, const GridRules& grid, double most_clipped)
        : grid_(grid), observed_(*statistics.extremes) {
        const HistogramSide all = folded_sides(statistics);
        mirrored_ = grid.scheme == Scheme::symmetric ||
                    (grid.scheme == Scheme::unsigned_symmetric && observed_.min < 0);
        if (mirrored_) {
            sides_.emplace_back(all, logarithm_);
        } else {
            sides_.emplace_back(positive_side(statistics), logarithm_);
            sides_.emplace_back(negative_side(statistics), logarithm_);
        }
        for (const SideDensity& side : sides_) total_ += side.total();
        least_inside_ = total_ * (1 - most_clipped);
        find_thresholds(all);
    }

    Range best() const {
        const double greatest = std::max(-observed_.min, observed_.max);
        double best = greatest;
        double least = divergence(greatest);
        for (const double threshold : thresholds_) {
            if (count_inside(threshold) < least_inside_) break;
            const double found = divergence(threshold);
            if (!(found < least)) continue;
            least = found;
            best = threshold;
        }
        return inside({-best, best}, observed_);
    }

  private:
    // Edges of occupied bins from the greatest down, as far apart as the bins of the topmost binade; for a
    // step that is a power of two, the ends of such grids.
    void find_thresholds(const HistogramSide& all) {
        const double greatest = all.greatest();
        const double levels = std::ldexp(1.0, mirrored_ ? grid_.bits - 1 : grid_.bits);
        if (grid_.power_of_two) {
            const double step = power_of_two_above(greatest / (levels - 1));
            for (int halved = 1; halved <= 8; ++halved)
                thresholds_.push_back(std::ldexp(step, -halved) * (levels - 1));
            return;
        }
        const double spacing = all.bins().back().width() > 0 ? power_of_two_above(greatest) / 1024 : 0;
        const double stride = std::max(1.0, std::ceil(1024 * levels / most_cells));
        double last = greatest;
        for (auto bin = all.bins().rbegin(); bin != all.bins().rend(); ++bin) {
            if (bin->bin < least_threshold_bin) break;
            if (bin->upper > last - 0.999 * spacing * stride) continue;
            thresholds_.push_back(bin->upper);
            last = bin->upper;
        }
    }

    double count_inside(double threshold) const {
        double count = 0;
        for (const SideDensity& side : sides_) count += side.count_below(threshold);
        return count;
    }

    // Times the number of values.
    double divergence(double threshold) const {
        const Range range = inside({-threshold, threshold}, observed_);
        const double width = mirrored_ ? threshold : std::max(range.max, 0.0) - std::min(range.min, 0.0);
        const double step = width / std::ldexp(1.0, mirrored_ ? grid_.bits - 1 : grid_.bits);
        double information = total_ * std::log(count_inside(threshold) / total_);
        for (const SideDensity& side : sides_) information += side.information(threshold, step);
        return information;
    }

    const GridRules& grid_;
    Range observed_;
    bool mirrored_ = false;
    FastLog logarithm_;
    std::vector<SideDensity> sides_;
    double total_ = 0;
    double least_inside_ = 0;
    std::vector<double> thresholds_;
};

class Entropy final : public RangeMethod {
  public:
    std::string name() const override { return "entropy"; }
    std::string summary() const override {
        return "The threshold t on the magnitude for which the distribution of the clipped values and its "
               "average over the 2^bits (symmetric: 2^(bits-1)) cells of [-t, t] differ least, by Kullback "
               "and Leibler's divergence; what is clipped counts in the last bin below t. Zeros, which every "
               "grid holds exactly, take no part. Thresholds are edges of bins, the widest first; the range "
               "is cut to the observed one.";
    }
    std::string source() const override {
        return "As NVIDIA TensorRT's, MXNet's, onnxruntime's and ncnn's entropy calibration, which work on "
               "128 to 2,048 equal bins; here bins are narrower at lesser magnitudes and a density is a "
               "count by a width. Prefix sums make a threshold cost its cells, not its bins. No more than "
               "`clipped` percent are clipped, since the divergence alone clips the few ones of a score map "
               "that is nearly zero elsewhere.";
    }
    std::vector<MethodParameter> parameters() const override {
        return {{"clipped", 1, 0, 50, "percent of the values other than zero that may be clipped", false}};
    }
    bool needs_histogram(const MethodParameters& /*parameters*/) const override { return true; }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& grid,
                                const MethodParameters& parameters) const override {
        const TensorStatistics& statistics = tensor.statistics();
        if (!statistics.extremes || statistics.positive.total() + statistics.negative.total() == 0) {
            return statistics.extremes;
        }
        return DivergenceSearch(statistics, grid, parameters.at("clipped") / 100).best();
    }
};

}  // namespace

const RangeMethod& entropy_method() {
    static const Entropy method;
    return method;
}

}  // namespace qcalib
