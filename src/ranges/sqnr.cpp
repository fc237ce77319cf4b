#include <algorithm>
#include <cmath>

#include "ranges/inside.h"
#include "ranges/quantization_error.h"
#include "ranges/range_method.h"

namespace qcalib {

namespace {

constexpr int step_shares = 17;        // of sixteenths of the greatest step
constexpr int offsets = 20;            // even parts of all codes
constexpr int symmetric_shares = 101;  // of hundredths

// Keeps the candidate with the least cost, the first of equals.
class CheapestRange {
  public:
    CheapestRange(const TensorStatistics& statistics, const GridRules& grid, double clipped_weight)
        : error_(statistics), grid_(grid), observed_(*statistics.extremes), clipped_weight_(clipped_weight) {}

    void try_range(Range range) {
        const Range candidate = inside(range, observed_);
        const double cost = error_(make_grid(candidate, grid_), clipped_weight_);
        if (least_ >= 0 && !(cost < least_)) return;
        least_ = cost;
        best_ = candidate;
    }
    Range best() const { return best_; }

  private:
    QuantizationError error_;
    const GridRules& grid_;
    Range observed_;
    double clipped_weight_;
    Range best_;
    double least_ = -1;  // no cost yet
};

void try_asymmetric(Range observed, const GridRules& rules, CheapestRange& cheapest) {
    const Grid widest = make_grid(observed, rules);
    const auto codes = static_cast<double>(widest.codes);
    for (int share = 1; share <= step_shares; ++share) {
        const double step = widest.step * share / 16;
        for (int part = 0; part <= offsets; ++part) {
            const double offset = std::round(codes / offsets * part) - codes;
            const Range candidate{step * offset, step * (offset + codes)};
            if (candidate.min < widest.min && candidate.max > widest.max) continue;
            cheapest.try_range(candidate);
        }
    }
}

// Also values of one sign on an unsigned grid.
void try_symmetric(Range observed, CheapestRange& cheapest) {
    const double magnitude = std::max(-observed.min, observed.max);
    for (int share = 1; share <= symmetric_shares; ++share) {
        cheapest.try_range({-magnitude * share / 100, magnitude * share / 100});
    }
}

class SignalToNoise final : public RangeMethod {
  public:
    std::string name() const override { return "sqnr"; }
    std::string summary() const override {
        return "The grid with the best signal to quantization noise ratio where the errors of clipped values "
               "weigh three times. Asymmetric: 17 steps (sixteenths of that of the observed range) with 21 "
               "offsets each, cut to the observed range, and that range. Symmetric: 101 steps, hundredths of "
               "that of the observed one.";
    }
    std::string source() const override {
        return "Qualcomm's and AIMET's enhanced quantizer (tf_enhanced, now sqnr), on the exact histogram of "
               "all samples: AIMET's has 512 bins about the first batch's range, averages batches and drops "
               "what lies outside.";
    }
    std::vector<MethodParameter> parameters() const override {
        return {{"clipped", 3, 0.01, 1000, "how many times the error of a clipped value counts", false}};
    }
    bool needs_histogram(const MethodParameters& /*parameters*/) const override { return true; }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& grid,
                                const MethodParameters& parameters) const override {
        const TensorStatistics& statistics = tensor.statistics();
        if (!statistics.extremes || statistics.positive.total() + statistics.negative.total() == 0) {
            return statistics.extremes;
        }
        CheapestRange cheapest(statistics, grid, parameters.at("clipped"));
        cheapest.try_range(*statistics.extremes);
        if (grid.scheme == Scheme::asymmetric) {
            try_asymmetric(*statistics.extremes, grid, cheapest);
        } else {
            try_symmetric(*statistics.extremes, cheapest);
        }
        return cheapest.best();
    }
};

}  // namespace

const RangeMethod& sqnr_method() {
    static const SignalToNoise method;
    return method;
}

}  // namespace qcalib
