#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "statistics/fixtures.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

TensorStatistics count(const std::vector<float>& elements) {
    Counter counter;
    return counter.count(elements);
}

}  // namespace

TEST_CASE("quantiles of few values lie where the definition says") {
    // E = 3: bins of 2^-7 in [4, 8), of 2^-9 in [1, 2).
    const TensorStatistics four = count({1.0F, 1.0F, 4.0F, 7.0F});
    CHECK(quantile(four, 0.25) == 1 + 0.5 / 512);  // first of the two in [1, 1 + 1/512)
    CHECK(quantile(four, 0.5) == 1 + 1.0 / 512);   // second
    CHECK(quantile(four, 0.51) == 4 + 1.0 / 128);
    CHECK(quantile(four, 1) == 7);
    CHECK(quantile(four, 0) == 1);
    CHECK(quantile(four, 0.0001) == 1 + 0.5 / 512);
}

TEST_CASE("negative values ascend from the greatest magnitude") {
    const TensorStatistics found = count({-7.0F, -4.0F, -1.0F, -1.0F, -1.0F});
    CHECK(quantile(found, 0.2) == -7);  // its bin ends at -7, which is also the minimum
    CHECK(quantile(found, 0.4) == -4);  // the upper end of its bin
    CHECK(quantile(found, 0.6) == doctest::Approx(-1 - 2.0 / 3 / 512).epsilon(1e-12));
    CHECK(quantile(found, 0.8) == doctest::Approx(-1 - 1.0 / 3 / 512).epsilon(1e-12));
    CHECK(quantile(found, 1) == -1);
}

TEST_CASE("zeros are counted between the signs") {
    const TensorStatistics found = count({-1.0F, 0.0F, -0.0F, 0.0F, 1.0F});
    CHECK(quantile(found, 0.2) == -1);
    for (const double p : {0.21, 0.4, 0.6, 0.8}) CHECK(quantile(found, p) == 0);
    CHECK(quantile(found, 0.81) == 1);
    CHECK(quantile(count({0.0F}), 0.5) == 0);
}

TEST_CASE("a quantile never leaves the extremes") {
    const TensorStatistics found = count({1.001F, 1.002F, 1.003F});
    for (double p = 0; p <= 1; p += 0.01) {
        CHECK(quantile(found, p) >= found.extremes->min);
        CHECK(quantile(found, p) <= found.extremes->max);
    }
}

TEST_CASE("quantiles of random data lie within a bin of the sorted element and ascend") {
    Random random(4);
    for (const Distribution& distribution : distributions()) {
        CAPTURE(distribution.name);
        std::vector<float> elements = draw(distribution, 3001, random);
        const TensorStatistics found = count(elements);
        std::erase_if(elements, [](float value) { return !(std::fabs(value) < 1e30F); });
        if (elements.empty()) continue;
        for (float& value : elements) value = std::fabs(value) < 0x1p-126F ? 0.0F : value;
        std::sort(elements.begin(), elements.end());
        double before = found.extremes->min;
        for (int step = 1; step < 1000; ++step) {
            const double p = step / 1000.0;
            CAPTURE(p);
            const double value = quantile(found, p);
            CHECK(value >= before);
            before = value;
            const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(elements.size())));
            const double expected = elements[rank - 1];
            const MagnitudeHistogram& side = expected < 0 ? found.negative : found.positive;
            double width = 0;
            if (expected != 0) {
                const auto magnitude = static_cast<float>(std::fabs(expected));
                const std::size_t bin = MagnitudeHistogram::bin_of(magnitude, side.exponent());
                width = side.lower_edge(bin + 1) - side.lower_edge(bin);
            }
            CHECK(std::fabs(value - expected) <= width);
        }
    }
}

TEST_CASE("mean and variance are those of the elements, within what bins can tell") {
    Random random(6);
    for (const char* name : {"normal", "relu", "uniform", "negative"}) {
        CAPTURE(name);
        const std::vector<float> elements = draw(distribution(name), 20000, random);
        double mean = 0;
        for (const float value : elements) mean += value / 20000.0;
        double variance = 0;
        for (const float value : elements) variance += (value - mean) * (value - mean) / 20000.0;
        const Moments found = moments(count(elements));
        CHECK(std::fabs(found.mean - mean) < 1e-3);
        CHECK(std::fabs(found.variance - variance) < 2e-3);
    }
}

TEST_CASE("mean and variance are bin centres weighted by counts, zeros included") {
    // E = 1: the bin of 1.0 is [1, 1 + 2^-9); the negative side has E = 2 and its bin of 2.0 is [2, 2 +
    // 2^-8).
    const TensorStatistics found = count({1.0F, 1.0F, 0.0F, -2.0F});
    const double one = 1 + 0x1p-10;
    const double two = 2 + 0x1p-9;
    const double mean = (2 * one - two) / 4;
    CHECK(moments(found).mean == doctest::Approx(mean).epsilon(1e-15));
    CHECK(moments(found).variance ==
          doctest::Approx((2 * (one - mean) * (one - mean) + mean * mean + (-two - mean) * (-two - mean)) / 4)
              .epsilon(1e-15));
}

TEST_CASE("mean and variance do not depend on the order of elements or merges") {
    Random random(8);
    std::vector<float> elements = draw(distribution("eleven decades"), 5000, random);
    const Moments whole = moments(count(elements));
    std::reverse(elements.begin(), elements.end());
    TensorStatistics merged = count({elements.begin(), elements.begin() + 1234});
    merged.merge(count({elements.begin() + 1234, elements.end()}));
    CHECK(moments(merged).mean == whole.mean);
    CHECK(moments(merged).variance == whole.variance);
}
