#include <algorithm>
#include <cmath>

#include "ranges/histogram_side.h"
#include "ranges/inside.h"
#include "ranges/range_method.h"

namespace qcalib {

namespace {

// The fraction that lies beyond a percentile, without the digits that a subtraction leaves behind.
double fraction_beyond(double percent) {
    constexpr double digits = 1e12;
    return std::round((100 - percent) / 100 * digits) / digits;
}

bool has_values(const TensorStatistics& statistics) {
    return statistics.positive.total() + statistics.negative.total() > 0;
}

Range percentiles(const TensorStatistics& statistics, double percent, Scheme scheme) {
    const double high = percent / 100;
    if (scheme == Scheme::asymmetric) {
        return {quantile(statistics, fraction_beyond(percent)), quantile(statistics, high)};
    }
    const double magnitude = quantile(folded(statistics), high);
    return {-magnitude, magnitude};
}

class Percentile final : public RangeMethod {
  public:
    std::string name() const override { return "percentile"; }
    std::string summary() const override {
        return "The p-th percentile of all elements of all samples, and the (100 - p)-th at the lower end: "
               "where the counts reach ceil(p N / 100), linear inside that bin of the histogram. For "
               "symmetric grids the p-th percentile of the magnitudes, on both sides of zero.";
    }
    std::string source() const override {
        return "As AIMET, PPQ (of each batch) and NVIDIA's tools; onnxruntime divides 100 - p between the "
               "two sides of an asymmetric range, so its 99.999 is p=99.9995. They answer an edge of a bin, "
               "this the place inside it.";
    }
    std::vector<MethodParameter> parameters() const override {
        return {{"p", 99.99, 50, 100, "percent of the elements below the upper end", false},
                {"zeros", 1, 0, 1, "1: zeros are elements like any other; 0: they are left out", true}};
    }
    bool needs_histogram(const MethodParameters& /*parameters*/) const override { return true; }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& grid,
                                const MethodParameters& parameters) const override {
        const TensorStatistics& statistics = tensor.statistics();
        if (!statistics.extremes || !has_values(statistics)) return statistics.extremes;
        const double percent = parameters.at("p");
        if (parameters.at("zeros") != 0) {
            return inside(percentiles(statistics, percent, grid.scheme), *statistics.extremes);
        }
        TensorStatistics nonzero = statistics;
        nonzero.zeros = 0;
        return inside(percentiles(nonzero, percent, grid.scheme), *statistics.extremes);
    }
};

}  // namespace

const RangeMethod& percentile_method() {
    static const Percentile method;
    return method;
}

}  // namespace qcalib
