#include <algorithm>

#include "ranges/inside.h"
#include "ranges/sample_extremes.h"

namespace qcalib {

namespace {

// Samsung ONE's moving average of the extremes of blocks, in its float32 arithmetic. `extreme` is of a range
// of values, as std::min_element.
template <typename Extreme>
float moving_average(const std::vector<float>& values, std::size_t group, float weight, Extreme extreme) {
    const auto of_block = [&](std::size_t first) {
        const std::size_t end = std::min(values.size(), first + group);
        return *extreme(values.begin() + static_cast<std::ptrdiff_t>(first),
                        values.begin() + static_cast<std::ptrdiff_t>(end));
    };
    const float kept = 1 - weight;
    float average = of_block(0);
    for (std::size_t first = group; first < values.size(); first += group) {
        average = static_cast<float>(average * kept + of_block(first) * (1.0 - kept));
    }
    return average;
}

class SampleMovingAverage final : public RangeMethod {
  public:
    using Values = std::vector<float>::const_iterator;

    std::string name() const override { return "sample-moving-average"; }
    std::string summary() const override {
        return "The extremes of each group of samples, averaged in order: r <- (1 - constant) r + constant "
               "new, started by the first group; the last group may be shorter. With no more samples than a "
               "group has it is minmax. The order of the samples matters.";
    }
    std::string source() const override {
        return "Samsung ONE's record-minmax --mode moving_average, in the same float32 arithmetic; its batch "
               "of more than 255 overflows, this does not.";
    }
    std::vector<MethodParameter> parameters() const override {
        return {{"group", 16, 1, 1000000, "samples with data whose joint extremes make one step", true},
                {"constant", 0.1, 0, 1, "the weight of a new group", false}};
    }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& /*grid*/,
                                const MethodParameters& parameters) const override {
        const std::optional<Range>& extremes = tensor.statistics().extremes;
        if (tensor.constant()) return extremes;
        const SampleExtremes samples = sample_extremes(tensor);
        if (samples.least.empty() || !extremes) return std::nullopt;
        const auto group = static_cast<std::size_t>(parameters.at("group"));
        const auto weight = static_cast<float>(parameters.at("constant"));
        return inside({moving_average(samples.least, group, weight, std::min_element<Values>),
                       moving_average(samples.greatest, group, weight, std::max_element<Values>)},
                      *extremes);
    }
};

}  // namespace

const RangeMethod& sample_moving_average_method() {
    static const SampleMovingAverage method;
    return method;
}

}  // namespace qcalib
