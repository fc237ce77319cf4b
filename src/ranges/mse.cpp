#include <algorithm>
#include <array>
#include <cmath>

#include "ranges/inside.h"
#include "ranges/quantization_error.h"
#include "ranges/range_method.h"

namespace qcalib {

namespace {

// The shares of an observed end that are tried first, from all of it down. Between them, and below the last,
// the search goes on from the best.
constexpr std::array first_shares{1.0,      15 / 16.0, 14 / 16.0, 13 / 16.0, 12 / 16.0, 11 / 16.0, 10 / 16.0,
                                  9 / 16.0, 8 / 16.0,  7 / 16.0,  6 / 16.0,  5 / 16.0,  4 / 16.0,  3 / 16.0,
                                  2 / 16.0, 1 / 16.0,  1 / 24.0,  1 / 32.0,  1 / 48.0,  1 / 64.0,  1 / 128.0};
constexpr std::size_t wide_stride = 2;  // of shares where a grid has so many codes that each try is slow
constexpr int narrow_bits = 9;
constexpr int refinements = 8;
constexpr double first_step = 1 / 32.0;

// The two ends of a range as shares of the way from a point inside to the observed ends.
struct Shares {
    double low = 1;
    double high = 1;
};

// A search for the range with the least squared error.
class ErrorSearch {
  public:
    ErrorSearch(const TensorStatistics& statistics, const GridRules& grid)
        : error_(statistics), grid_(grid), observed_(*statistics.extremes) {
        const bool zero_inside = observed_.min < 0 && observed_.max > 0;
        const bool grid_needs_zero = grid_.scheme != Scheme::asymmetric || grid_.include_zero;
        if (!zero_inside && !grid_needs_zero) centre_ = quantile(statistics, 0.5);
        mirrored_ = grid_.scheme != Scheme::asymmetric;
        low_moves_ = observed_.min < centre_;
        high_moves_ = observed_.max > centre_;
    }

    Range best() {
        if (mirrored_ || !low_moves_ || !high_moves_) {
            for (const double share : first_shares) try_shares(moved(share, share));
        } else {
            const std::size_t stride = grid_.bits > narrow_bits ? wide_stride : 1;
            for (std::size_t low = 0; low < first_shares.size(); low += stride) {
                for (std::size_t high = 0; high < first_shares.size(); high += stride) {
                    try_shares({first_shares[low], first_shares[high]});
                }
            }
        }
        double step = first_step;
        for (int refinement = 0; refinement < refinements; ++refinement, step /= 2) {
            while (improve(step)) {
            }
        }
        return range_of(best_);
    }

  private:
    Shares moved(double low, double high) const { return {low_moves_ ? low : 1, high_moves_ ? high : 1}; }

    Range range_of(const Shares& shares) const {
        if (mirrored_) {
            const double magnitude = shares.high * std::max(-observed_.min, observed_.max);
            return inside({-magnitude, magnitude}, observed_);
        }
        return inside({centre_ + (observed_.min - centre_) * shares.low,
                       centre_ + (observed_.max - centre_) * shares.high},
                      observed_);
    }

    // Keeps them if they make a lesser error than all before.
    bool try_shares(const Shares& shares) {
        const double error = error_(make_grid(range_of(shares), grid_));
        if (least_ >= 0 && !(error < least_)) return false;
        least_ = error;
        best_ = shares;
        return true;
    }

    // Tries the neighbours of the best at that distance.
    bool improve(double step) {
        const Shares from = best_;
        bool improved = false;
        for (const double low : {0.0, step, -step}) {
            for (const double high : {0.0, step, -step}) {
                if (mirrored_ ? low != high : (!low_moves_ && low != 0) || (!high_moves_ && high != 0))
                    continue;
                const Shares next{std::clamp(from.low + low, 0.0, 1.0),
                                  std::clamp(from.high + high, 0.0, 1.0)};
                if (next.low == from.low && next.high == from.high) continue;
                improved = try_shares(next) || improved;
            }
        }
        return improved;
    }

    QuantizationError error_;
    const GridRules& grid_;
    Range observed_;
    double centre_ = 0;
    bool mirrored_ = false;
    bool low_moves_ = true;
    bool high_moves_ = true;
    Shares best_;
    double least_ = -1;  // no error yet
};

class MeanSquaredError final : public RangeMethod {
  public:
    std::string name() const override { return "mse"; }
    std::string summary() const override {
        return "The range inside the observed one whose grid makes the least mean squared error, of rounding "
               "and clipping together, over the histogram: 21 shares of either end (of both, for asymmetric "
               "grids), then ever smaller steps from the best. Among equals the widest.";
    }
    std::string source() const override {
        return "AIMET's and TF's mse and PPQ's try every pair of edges of 512 or 2,048 equal bins, NVIDIA's "
               "every bin from the 128th on; this searches with the grid's own arithmetic, its rounded zero "
               "point and its power of two among it.";
    }
    bool needs_histogram(const MethodParameters& /*parameters*/) const override { return true; }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& grid,
                                const MethodParameters& /*parameters*/) const override {
        const TensorStatistics& statistics = tensor.statistics();
        if (!statistics.extremes || statistics.positive.total() + statistics.negative.total() == 0) {
            return statistics.extremes;
        }
        return ErrorSearch(statistics, grid).best();
    }
};

}  // namespace

const RangeMethod& mse_method() {
    static const MeanSquaredError method;
    return method;
}

}  // namespace qcalib
