#include <algorithm>

#include "ranges/inside.h"
#include "ranges/range_method.h"

namespace qcalib {

namespace {

// Moving averages of the extremes of groups of samples.
class MovingRange {
  public:
    MovingRange(double momentum, std::size_t group) : momentum_(momentum), group_(group) {}

    void add(const SampleSummary& sample) {
        const Range extremes{sample.min, sample.max};
        gathered_ = in_group_ == 0
                        ? extremes
                        : Range{std::min(gathered_.min, extremes.min), std::max(gathered_.max, extremes.max)};
        if (++in_group_ == group_) finish_group();
    }

    std::optional<Range> finish() {
        if (in_group_ > 0) finish_group();
        return average_;
    }

  private:
    void finish_group() {
        in_group_ = 0;
        if (!average_) {
            average_ = gathered_;
            return;
        }
        average_->min = next(average_->min, gathered_.min);
        average_->max = next(average_->max, gathered_.max);
    }
    // In the observers' own arithmetic: float32, the factors rounded to it.
    double next(double average, double value) const {
        const float kept = static_cast<float>(average) * static_cast<float>(momentum_);
        const float added = static_cast<float>(value) * static_cast<float>(1 - momentum_);
        return static_cast<double>(kept + added);
    }

    double momentum_;
    std::size_t group_;
    std::size_t in_group_ = 0;
    Range gathered_;
    std::optional<Range> average_;
};

class ExponentialMovingAverage final : public RangeMethod {
  public:
    std::string name() const override { return "ema"; }
    std::string summary() const override {
        return "Exponential moving average of each sample's extremes, in the order of the samples: r <- "
               "momentum r + (1 - momentum) new, started by the first; samples without data are passed over. "
               "Late samples weigh more than early ones.";
    }
    std::string source() const override {
        return "MQBench's EMAMinMaxObserver, in its float32 arithmetic; Quanto and QAT observers average "
               "alike. With group=16 the least "
               "and greatest of 16 samples at a time are averaged, as Samsung ONE does "
               "(sample-moving-average is its arithmetic in float32).";
    }
    std::vector<MethodParameter> parameters() const override {
        return {
            {"momentum", 0.9, 0, 1, "the weight of what was averaged before", false},
            {"group", 1, 1, 1000000,
             "samples with data whose joint extremes make one step; the last may be fewer", true},
        };
    }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& /*grid*/,
                                const MethodParameters& parameters) const override {
        const std::optional<Range>& extremes = tensor.statistics().extremes;
        if (tensor.constant()) return extremes;
        MovingRange moving(parameters.at("momentum"), static_cast<std::size_t>(parameters.at("group")));
        for (std::size_t row = 0; row < tensor.rows(); ++row) {
            const SampleSummary sample = tensor.row(row);
            if (sample.has_data) moving.add(sample);
        }
        const std::optional<Range> range = moving.finish();
        if (!range || !extremes) return range;
        return inside(*range, *extremes);  // rounding may lead an average a last digit outside
    }
};

}  // namespace

const RangeMethod& ema_method() {
    static const ExponentialMovingAverage method;
    return method;
}

}  // namespace qcalib
