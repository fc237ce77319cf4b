#include <algorithm>
#include <cmath>

#include "ranges/inside.h"
#include "ranges/sample_extremes.h"

namespace qcalib {

namespace {

// Samsung ONE's percentile of a list, with its mixture of float and double: its answers to the last digit.
float percentile_of(std::vector<float> values, float percent) {
    std::sort(values.begin(), values.end());
    const std::size_t count = values.size();
    if (count == 1 || percent == 0) return values.front();
    if (percent == 100) return values.back();
    const float scaled = static_cast<float>(count - 1) * percent;
    const auto place = std::min(static_cast<std::size_t>(std::floor(scaled / 100.0)), count - 2);
    const float below = static_cast<float>(place) / static_cast<float>(count - 1);
    const double above = (static_cast<double>(place) + 1.0) / (static_cast<double>(count) - 1.0);
    const auto fraction = static_cast<float>((percent / 100.0 - below) / (above - below));
    return values[place] + fraction * (values[place + 1] - values[place]);
}

class SamplePercentile final : public RangeMethod {
  public:
    std::string name() const override { return "sample-percentile"; }
    std::string summary() const override {
        return "A percentile of the samples' least values and one of their greatest values, linear between "
               "neighbours. It is about samples, not elements: what is in every sample is never clipped.";
    }
    std::string source() const override {
        return "Samsung ONE's record-minmax --mode percentile, its default, in the same float32 arithmetic. "
               "ONE keeps infinities, which are left out here, and takes -FLT_MAX alone for a mask.";
    }
    std::vector<MethodParameter> parameters() const override {
        return {{"low", 1, 0, 50, "percentile of the samples' least values", false},
                {"high", 99, 50, 100, "percentile of the samples' greatest values", false}};
    }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& /*grid*/,
                                const MethodParameters& parameters) const override {
        const std::optional<Range>& extremes = tensor.statistics().extremes;
        if (tensor.constant()) return extremes;
        const SampleExtremes samples = sample_extremes(tensor);
        if (samples.least.empty() || !extremes) return std::nullopt;
        return inside({percentile_of(samples.least, static_cast<float>(parameters.at("low"))),
                       percentile_of(samples.greatest, static_cast<float>(parameters.at("high")))},
                      *extremes);
    }
};

}  // namespace

const RangeMethod& sample_percentile_method() {
    static const SamplePercentile method;
    return method;
}

}  // namespace qcalib
