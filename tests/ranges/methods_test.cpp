// What each method answers where the right answer is known.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "base/random.h"
#include "method_fixture.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using Samples = std::vector<std::vector<float>>;

Samples single_values(const std::vector<float>& values) {
    Samples samples;
    for (const float value : values) samples.push_back({value});
    return samples;
}

std::optional<Range> of_samples(const Samples& samples, const std::string& method,
                                const GridRules& grid = {}) {
    const TemporaryFolder folder;
    write_samples(folder / "a.qstats", samples);
    return choose(folder / "a.qstats", method, 0, grid);
}

std::vector<float> normal_values(std::size_t count, double spread = 1, std::uint64_t seed = 1) {
    Random random(seed);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(spread * normal(random));
    return values;
}

}  // namespace

TEST_CASE("sample-percentile answers what Samsung ONE's percentile does, digit by digit") {
    const std::vector<float> five = {-10, -3, -2.5F, -2, -1};
    const auto check = [](const std::vector<float>& values, const std::string& parameters, float low,
                          float high) {
        CAPTURE(parameters);
        const auto range = of_samples(single_values(values), "sample-percentile:" + parameters);
        REQUIRE(range);
        CHECK(static_cast<float>(range->min) == low);
        CHECK(static_cast<float>(range->max) == high);
    };
    check(five, "low=1,high=99", -9.72000027F, -1.03999996F);
    check(five, "low=25,high=100", -3, -1);
    std::vector<float> many(99);
    std::iota(many.begin(), many.end(), 0.0F);
    many.push_back(1000);
    check(many, "low=1,high=99", 0.99000001F, 107.020905F);
    check(many, "low=0,high=99.9", 0, 910.703491F);
    check({7}, "low=1,high=99", 7, 7);
}

TEST_CASE("sample-moving-average answers what Samsung ONE's moving average does, digit by digit") {
    const Samples samples = single_values({1, 2, 3, 4, 5, 6, 7, 100});
    const auto two = of_samples(samples, "sample-moving-average:group=2");
    REQUIRE(two);
    CHECK(static_cast<float>(two->max) == 12.3220024F);
    CHECK(static_cast<float>(two->min) == 2.12200022F);
    CHECK(of_samples(samples, "sample-moving-average") == Range{1, 100});
    CHECK(of_samples(samples, "sample-moving-average:group=1,constant=1") == Range{100, 100});
}

TEST_CASE("mean averages each sample's range with its tails cut, at the bottom only where it is negative") {
    std::vector<float> positive(20000);
    std::vector<float> both(20000);
    for (std::size_t i = 0; i < positive.size(); ++i) {
        positive[i] = 1 + static_cast<float>(i) / 20000;
        both[i] = static_cast<float>(i) / 10000 - 1;
    }
    positive[0] = 0.5F;
    positive[1] = 100;
    both[2] = 50;
    const auto plain = of_samples({positive, both}, "mean:tails=0");
    REQUIRE(plain);
    CHECK(plain->min == doctest::Approx((0.5 - 1) / 2));
    CHECK(plain->max == doctest::Approx(75));
    const auto cut = of_samples({positive, both}, "mean");
    REQUIRE(cut);
    CHECK(cut->min == doctest::Approx((0.5 - 0.9998) / 2).epsilon(0.01));
    CHECK(cut->max == doctest::Approx((2 + 1) / 2.0).epsilon(0.01));
}

TEST_CASE("mean weighs every sample with data the same") {
    const float nothing = std::nanf("");
    CHECK(of_samples({{1, 3}, {nothing}, std::vector<float>(100, 7)}, "mean:tails=0") == Range{4, 5});
}

TEST_CASE("percentile leaves zeros out where it is told to") {
    std::vector<float> values(10000, 0.0F);
    for (std::size_t i = 0; i < 1000; ++i) values[i] = 1 + static_cast<float>(i) / 1000;
    CHECK(choose(values, "percentile:p=95")->max == doctest::Approx(1.5).epsilon(0.005));
    CHECK(choose(values, "percentile:p=95,zeros=0")->max == doctest::Approx(1.95).epsilon(0.005));
    CHECK(choose(values, "percentile:p=100") == Range{0, values[999]});
    CHECK(choose(values, "percentile:p=60")->max == 0);
}

TEST_CASE("percentile counts 9,999 of 10,000 elements exactly at 99.99") {
    std::vector<float> values(10000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i < 5000 ? -1.0F : 1.0F;
    values[0] = -100;
    values[9999] = 100;
    const auto range = choose(values, "percentile:p=99.99");
    REQUIRE(range);
    CHECK(range->max < 2);
    CHECK(range->min > -101);
    CHECK(range->min < -99);  // the least is the 0.01 %
}

TEST_CASE("symmetric percentiles are of magnitudes, cut to the observed range") {
    std::vector<float> values(1000, 0.5F);
    for (std::size_t i = 0; i < 20; ++i) values[i] = -8;
    const GridRules symmetric = grid_rules(8, Scheme::symmetric);
    CHECK(choose(values, "percentile:p=95", symmetric)->min >= -0.51);
    CHECK(choose(values, "percentile:p=99", symmetric) == Range{-8, 0.5});
}

TEST_CASE("aciq clips a normal distribution at its optimum for the width") {
    const std::vector<float> values = normal_values(200000, 2);
    for (const auto& [bits, factor] : {std::pair{2, 1.71063519},
                                       {3, 2.15159277},
                                       {4, 2.55913646},
                                       {5, 2.93620062},
                                       {6, 3.28691474},
                                       {7, 3.6151146},
                                       {8, 3.92403714}}) {
        const auto range = choose(values, "aciq", grid_rules(bits, Scheme::symmetric));
        REQUIRE(range);
        CHECK(range->max == doctest::Approx(2 * factor).epsilon(0.01));
        CHECK(range->min == doctest::Approx(-2 * factor).epsilon(0.01));
    }
}

TEST_CASE("aciq has the Laplace optimum for a Laplace distribution") {
    Random random(5);
    std::vector<float> values(200000);
    for (float& value : values) {
        const double magnitude = -std::log(1 - random.unit());
        value = static_cast<float>(random.below(2) == 0 ? magnitude : -magnitude);
    }
    for (const auto& [bits, factor] : {std::pair{2, 2.83}, {3, 3.89}, {4, 5.03}}) {
        const auto range = choose(values, "aciq:laplace=1", grid_rules(bits, Scheme::symmetric));
        CHECK(range->max == doctest::Approx(factor).epsilon(0.02));
    }
}

TEST_CASE(
    "aciq takes values of one sign for half a distribution, whose other half would need as many codes") {
    std::vector<float> values = normal_values(200000);
    for (float& value : values) value = std::max(value, 0.0F);
    CHECK(choose(values, "aciq", grid_rules(4))->max == doctest::Approx(2.93620062).epsilon(0.01));
    CHECK(choose(values, "aciq", grid_rules(4, Scheme::symmetric))->max ==
          doctest::Approx(2.55913646).epsilon(0.01));
}

TEST_CASE("mse is within 1 % of the least error that trying 2,000 thresholds finds") {
    for (const std::string name : {"normal", "relu", "uniform", "eleven decades"}) {
        for (const int bits : {3, 4, 8}) {
            for (const bool power_of_two : {false, true}) {
                CAPTURE(name);
                CAPTURE(bits);
                CAPTURE(power_of_two);
                Random random(11);
                const std::vector<float> values = draw(distribution(name), 20000, random);
                const GridRules rules = grid_rules(bits, Scheme::symmetric, power_of_two);
                const auto extremes = *choose(values, "minmax");
                const double magnitude = std::max(-extremes.min, extremes.max);
                double least = exact_error({values}, make_grid(extremes, rules));
                for (int i = 1; i <= 2000; i += power_of_two ? 40 : 8) {
                    const double end = magnitude * i / 2000;
                    least = std::min(least, exact_error({values}, make_grid({-end, end}, rules)));
                }
                CHECK(exact_error({values}, make_grid(*choose(values, "mse", rules), rules)) <= 1.01 * least);
            }
        }
    }
}

TEST_CASE("mse moves both ends of an asymmetric range on their own") {
    // One outlier below, a dense distribution above.
    std::vector<float> values = normal_values(50000, 1, 3);
    for (float& value : values) value = std::abs(value);
    values[0] = -40;
    const auto range = choose(values, "mse", grid_rules(4));
    REQUIRE(range);
    CHECK(range->min > -2);
    CHECK(range->max > 2);
    CHECK(range->max < 5);
}

TEST_CASE("mse keeps values that a grid holds exactly") {
    std::vector<float> pixels(25600);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 256);
    CHECK(choose(pixels, "mse") == Range{0, 255});
    CHECK(choose(pixels, "sqnr") == Range{0, 255});
    CHECK(choose(std::vector<float>(100, 0.37F), "mse") == Range{0.37F, 0.37F});
}

TEST_CASE("sqnr clips less than mse because clipped values weigh three times") {
    std::vector<float> values = normal_values(100000, 1, 7);
    const GridRules rules = grid_rules(4, Scheme::symmetric);
    const double mse = choose(values, "mse", rules)->max;
    const double sqnr = choose(values, "sqnr", rules)->max;
    const double plain = choose(values, "sqnr:clipped=1", rules)->max;
    CHECK(sqnr > mse);
    CHECK(plain == doctest::Approx(mse).epsilon(0.02));
}

TEST_CASE("entropy clips outliers and keeps what is dense") {
    std::vector<float> values = normal_values(200000, 1, 9);
    for (std::size_t i = 0; i < 20; ++i) values[i * 10000] *= 100;
    for (const GridRules& rules :
         {grid_rules(8), grid_rules(8, Scheme::symmetric), grid_rules(8, Scheme::symmetric, true)}) {
        const auto range = choose(values, "entropy", rules);
        CHECK(range->max > 2.5);
        CHECK(range->max < 16);
        CHECK(range->min < -2.5);
    }
    std::vector<float> uniform(100000);
    for (std::size_t i = 0; i < uniform.size(); ++i) uniform[i] = static_cast<float>(i) / 100000;
    CHECK(choose(uniform, "entropy")->max > 0.99);
}

TEST_CASE("entropy clips no more than it is allowed to") {
    std::vector<float> values(4096);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 5 + 0.46F * static_cast<float>(i) / 4096;
    CHECK(choose(values, "entropy")->max > 5 + 0.46 * 0.98);
    CHECK(choose(values, "entropy:clipped=0")->max == doctest::Approx(5.46).epsilon(0.001));
}

TEST_CASE("entropy keeps the few ones of a score map that is nearly zero elsewhere") {
    std::vector<float> scores(60000);
    Random random(19);
    for (float& score : scores) {
        const double logit = random.below(30) == 0 ? 5 + normal(random) : 1.5 * normal(random) - 9;
        score = static_cast<float>(1 / (1 + std::exp(-logit)));
    }
    CHECK(choose(scores, "entropy")->max > 0.9);
    CHECK(choose(scores, "entropy:clipped=5")->max < 0.1);
}

TEST_CASE("at 16 bits, where steps are finer than bins, searches keep nearly everything") {
    const std::vector<float> values = normal_values(100000, 1, 13);
    const auto all = *choose(values, "minmax");
    for (const std::string method : {"mse", "sqnr", "entropy"}) {
        CAPTURE(method);
        const auto range = choose(values, method, grid_rules(16));
        CHECK(range->max > 0.9 * all.max);
        CHECK(range->min < 0.9 * all.min);
    }
}

TEST_CASE("without zero in the range a search moves the ends to each other") {
    std::vector<float> values = normal_values(50000, 0.1, 17);
    for (float& value : values) value += 10;
    values[0] = 14;
    GridRules rules = grid_rules(4);
    rules.include_zero = false;
    const auto range = choose(values, "mse", rules);
    CHECK(range->min > 9);
    CHECK(range->max < 11);
    CHECK(choose(values, "mse", grid_rules(4))->max > 10);
}

TEST_CASE("constants have no samples, and methods of samples take their extremes") {
    const TemporaryFolder folder;
    write_samples(folder / "a.qstats", {{1, 2}}, {-2, 5, 1, 1, 1});
    for (const std::string method : {"mean", "ema", "sample-percentile", "sample-moving-average", "minmax"}) {
        CHECK(choose(folder / "a.qstats", method, 1) == Range{-2, 5});
    }
    CHECK(choose(folder / "a.qstats", "percentile:p=99", 1).has_value());
}

TEST_CASE("methods say whether they need histograms") {
    for (const std::string method : {"percentile", "mse", "sqnr", "entropy", "aciq", "mean"}) {
        CHECK(parse_method(method).needs_histogram());
    }
    for (const std::string method :
         {"minmax", "ema", "mean:tails=0", "sample-percentile", "sample-moving-average"}) {
        CHECK_FALSE(parse_method(method).needs_histogram());
    }
}
