#include <algorithm>
#include <cmath>
#include <numbers>

#include "ranges/histogram_side.h"
#include "ranges/inside.h"
#include "ranges/range_method.h"

namespace qcalib {

namespace {

// The derivative, by the bound a, of the mean squared error of a unit distribution clipped to +-a and rounded
// to 2^bits levels between: what clipping costs, plus (2 a / 2^bits)^2 / 12.
double gaussian_slope(double a, int bits) {
    const double tail = std::erfc(a / std::numbers::sqrt2) / 2;
    const double density = std::exp(-a * a / 2) / std::sqrt(2 * std::numbers::pi);
    return 4 * (a * tail - density) + 2 * a / (3 * std::ldexp(1.0, 2 * bits));
}

double laplace_slope(double a, int bits) {
    return -2 * std::exp(-a) + 2 * a / (3 * std::ldexp(1.0, 2 * bits));
}

// Where the slope, negative at 0, changes its sign.
double best_bound(double (*slope)(double, int), int bits) {
    double low = 0;
    double high = 64;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (slope(middle, bits) < 0 ? low : high) = middle;
    }
    return low;
}

double mean_distance(const TensorStatistics& statistics, double centre) {
    double sum = static_cast<double>(statistics.zeros) * std::abs(centre);
    const HistogramSide positive = positive_side(statistics);
    const HistogramSide negative = negative_side(statistics);
    for (const OccupiedBin& bin : positive.bins()) sum += bin.count * std::abs(bin.centre() - centre);
    for (const OccupiedBin& bin : negative.bins()) sum += bin.count * std::abs(bin.centre() + centre);
    return sum / static_cast<double>(statistics.counted());
}

// What is assumed of the values: how far they spread about which centre, and over how many levels.
struct Shape {
    double centre = 0;
    double spread = 0;
    int bits = 8;
};

// Values of one sign are one half of a distribution about zero, whose zeros are what a Relu made of the other
// half: it has one level of two on this side, so as many as twice the codes would give.
TensorStatistics nonzero(const TensorStatistics& statistics) {
    TensorStatistics result = statistics;
    result.zeros = 0;
    return result;
}

double spread_about(const TensorStatistics& statistics, double centre, bool laplace) {
    if (laplace) return mean_distance(statistics, centre);
    const Moments found = moments(statistics);
    return std::sqrt(found.variance + (found.mean - centre) * (found.mean - centre));
}

Shape fitted_shape(const TensorStatistics& statistics, const GridRules& grid, bool laplace) {
    const Range extremes = *statistics.extremes;
    const bool one_sided = extremes.min >= 0 || extremes.max <= 0;
    if (one_sided && grid.scheme != Scheme::symmetric) {
        return {0, spread_about(nonzero(statistics), 0, laplace), grid.bits + 1};
    }
    if (one_sided) return {0, spread_about(nonzero(statistics), 0, laplace), grid.bits};
    const double centre = grid.scheme == Scheme::asymmetric ? moments(statistics).mean : 0;
    return {centre, spread_about(statistics, centre, laplace), grid.bits};
}

// ncnn's estimate: the deviation for which the greatest of N values is expected where it was found.
double deviation_from_extremes(double magnitude, double elements) {
    const double constant = 0.35 * 0.5 * (1 + std::sqrt(std::numbers::pi * std::log(4.0)));
    return 2 * magnitude * constant / std::sqrt(2 * std::log(std::max(elements, 2.0)));
}

class Aciq final : public RangeMethod {
  public:
    std::string name() const override { return "aciq"; }
    std::string summary() const override {
        return "The bound that makes the least mean squared error of clipping and rounding together if the "
               "values are normally (or Laplace) distributed, times their measured deviation, about their "
               "mean or, for symmetric grids and values of one sign, about zero. Fast, and wrong where the "
               "values are distributed otherwise.";
    }
    std::string source() const override {
        return "Banner et al., Post training 4-bit quantization of convolutional networks, 2019; the optimum "
               "is solved for each width instead of tabulated. ncnn estimates the deviation from the "
               "greatest value and the number of elements of a sample (from_extremes=1), which seldom clips.";
    }
    std::vector<MethodParameter> parameters() const override {
        return {{"laplace", 0, 0, 1, "1: a Laplace distribution instead of a normal one", true},
                {"from_extremes", 0, 0, 1, "1: ncnn's estimate of a normal deviation, about zero", true}};
    }
    bool needs_histogram(const MethodParameters& /*parameters*/) const override { return true; }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& grid,
                                const MethodParameters& parameters) const override {
        const TensorStatistics& statistics = tensor.statistics();
        if (!statistics.extremes || statistics.positive.total() + statistics.negative.total() == 0) {
            return statistics.extremes;
        }
        const bool laplace = parameters.at("laplace") != 0;
        Shape shape = fitted_shape(statistics, grid, laplace);
        if (parameters.at("from_extremes") != 0) {
            const double samples = std::max<double>(1, static_cast<double>(tensor.rows()));
            const double magnitude = std::max(-statistics.extremes->min, statistics.extremes->max);
            shape = {0,
                     deviation_from_extremes(magnitude, static_cast<double>(statistics.elements()) / samples),
                     grid.bits};
        }
        const double bound = best_bound(laplace ? laplace_slope : gaussian_slope, shape.bits) * shape.spread;
        return inside({shape.centre - bound, shape.centre + bound}, *statistics.extremes);
    }
};

}  // namespace

const RangeMethod& aciq_method() {
    static const Aciq method;
    return method;
}

}  // namespace qcalib
