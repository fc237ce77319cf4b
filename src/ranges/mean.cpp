#include "ranges/inside.h"
#include "ranges/range_method.h"

namespace qcalib {

namespace {

class Mean final : public RangeMethod {
  public:
    std::string name() const override { return "mean"; }
    std::string summary() const override {
        return "The mean over the samples of each sample's range, after 0.01 % of its elements were cut off "
               "at the top and, where it has negative values, at the bottom. Every sample weighs the same, "
               "whatever its size; samples without data are passed over.";
    }
    std::string source() const override {
        return "TI TIDL's calibration with activation clipping (calibrationOption 1, "
               "percentileActRangeShrink 0.01); with tails=0 its plain calibration, NNCF's default for "
               "activations and onnxruntime's moving average. TIDL finds the tail in a histogram of its own, "
               "of a size that is not known.";
    }
    std::vector<MethodParameter> parameters() const override {
        return {
            {"tails", 1, 0, 1, "1: each sample's tails are cut; 0: each sample's extremes are taken", true}};
    }
    bool needs_histogram(const MethodParameters& parameters) const override {
        return parameters.at("tails") != 0;
    }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& /*grid*/,
                                const MethodParameters& parameters) const override {
        const std::optional<Range>& extremes = tensor.statistics().extremes;
        if (tensor.constant()) return extremes;
        const bool cut = parameters.at("tails") != 0;
        Range sum;
        double samples = 0;
        for (std::size_t row = 0; row < tensor.rows(); ++row) {
            const SampleSummary sample = tensor.row(row);
            if (!sample.has_data) continue;
            sum.min += cut && sample.min < 0 ? sample.low_tail : sample.min;
            sum.max += cut ? sample.high_tail : sample.max;
            ++samples;
        }
        if (samples == 0 || !extremes) return std::nullopt;
        return inside({sum.min / samples, sum.max / samples}, *extremes);
    }
};

}  // namespace

const RangeMethod& mean_method() {
    static const Mean method;
    return method;
}

}  // namespace qcalib
