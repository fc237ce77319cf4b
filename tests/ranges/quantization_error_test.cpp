#include "ranges/quantization_error.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/random.h"
#include "method_fixture.h"
#include "ranges/fast_log.h"

using namespace qcalib;
using namespace qcalib::test;

TEST_CASE("the error from prefix sums is that of the values to within 2 %, for any width and clipping") {
    for (const std::string name : {"normal", "relu", "uniform", "negative"}) {
        Random random(41);
        const std::vector<float> values = draw(distribution(name), 30000, random);
        const TensorStatistics statistics = counted({values});
        const QuantizationError error(statistics);
        for (const int bits : {2, 3, 4, 6, 8, 10, 12, 16}) {
            for (const double share : {1.0, 0.7, 0.4}) {
                for (const Scheme scheme : {Scheme::asymmetric, Scheme::symmetric}) {
                    for (const double clipped : {1.0, 3.0}) {
                        CAPTURE(name);
                        CAPTURE(bits);
                        CAPTURE(share);
                        const Range range{statistics.extremes->min * share, statistics.extremes->max * share};
                        const Grid grid = make_grid(range, grid_rules(bits, scheme));
                        CHECK(error(grid, clipped) ==
                              doctest::Approx(exact_error({values}, grid, clipped)).epsilon(0.02));
                    }
                }
            }
        }
    }
}

TEST_CASE("a grid without zero clips zeros and the other side to its nearest end") {
    const std::vector<float> values = {-1, 0, 0, 2, 2.5F, 3};
    const TensorStatistics statistics = counted({values});
    const QuantizationError error(statistics);
    for (const Range range : {Range{2, 3}, Range{-3, -2}}) {
        GridRules rules;
        rules.include_zero = false;
        const Grid grid = make_grid(range, rules);
        CHECK(error(grid) == doctest::Approx(exact_error({values}, grid)).epsilon(0.01));
        CHECK(error(grid, 3) == doctest::Approx(exact_error({values}, grid, 3)).epsilon(0.01));
    }
}

TEST_CASE("a value that is on the grid costs nothing") {
    const TensorStatistics statistics = counted({std::vector<float>(1000, 0.37F)});
    CHECK(QuantizationError(statistics)(make_grid({0.37F, 0.37F}, grid_rules(8))) < 1e-12);
}

TEST_CASE("a side tells its bins and how many lie below a magnitude") {
    const TensorStatistics statistics = counted({{0.5F, 1, 1.5F, -3, 0}});
    const HistogramSide positive = positive_side(statistics);
    CHECK(positive.bins().size() == 3);
    CHECK(positive.greatest() == 1.5);
    CHECK(positive.total() == 3);
    CHECK(negative_side(statistics).least() == 3);
    CHECK(negative_side(statistics).greatest() == 3);
    CHECK(folded_sides(statistics).total() == 4);
    const MagnitudeHistogram& histogram = statistics.positive;
    for (std::size_t bin = 0; bin < MagnitudeHistogram::bins; ++bin) {
        const double lower = histogram.lower_edge(bin);
        const double width = histogram.lower_edge(bin + 1) - lower;
        CHECK(positive.bins_below(lower + 0.49 * width) == bin);
        CHECK(positive.bins_below(lower + 0.51 * width) == bin + 1);
    }
    CHECK(positive.bins_below(1e30) == MagnitudeHistogram::bins);
    CHECK(positive.bins_below(0) == 0);
}

TEST_CASE("the fast logarithm is right to 1e-11") {
    const FastLog logarithm;
    Random random(43);
    for (int i = 0; i < 100000; ++i) {
        const double value = std::ldexp(1 + random.unit(), static_cast<int>(random.below(400)) - 200);
        REQUIRE(std::abs(logarithm(value) - std::log(value)) < 1e-11 + 1e-15 * std::abs(std::log(value)));
    }
}
