#include "report/explanation.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "statistics/counter.h"

using namespace qcalib;

namespace {

// The explanation of a range on the grid that the rules give it.
std::string explained(Range range, const GridRules& rules) {
    Explanation explanation;
    explanation.tensor = "conv/out";
    explanation.kind = "activation";
    explanation.target = "snpe";
    explanation.method = "percentile:p=99.9";
    explanation.ranges = {range};
    explanation.rules = rules;
    explanation.encodings = {encode(range, rules)};
    return explain(explanation);
}

bool has(const std::string& text, const std::string& part) {
    const bool found = text.find(part) != std::string::npos;
    if (!found) MESSAGE(text);
    return found;
}

}  // namespace

TEST_CASE("an explanation starts with tensor, kind and target") {
    CHECK(explained({-1, 2}, {}).starts_with("conv/out (activation), target snpe\n"));
}

TEST_CASE("counts, extremes, moments and percentiles are those of the statistics") {
    const std::vector<float> values = {0,     0, 1, 3, std::nanf(""), std::numeric_limits<float>::infinity(),
                                       -2e30F};
    Counter counter;
    Explanation explanation;
    explanation.statistics = &counter.count(values);
    explanation.samples = 1;
    explanation.no_encoding = "for a reason";
    const std::string text = explain(explanation);
    CHECK(has(text, "7 values: 2 zeros, 1 sample with data"));
    CHECK(has(text, "left out: 1 NaN, 1 +Inf, 0 -Inf, 0 positive and 1 negative masks"));
    CHECK(has(text, "min and max 0 to 3; mean 1.00"));
    CHECK(has(text, "encoding    none: for a reason"));
}

TEST_CASE("statistics of extremes alone have no moments") {
    Counter counter({{}, true});
    Explanation explanation;
    const std::vector<float> values = {-1, 2};
    explanation.statistics = &counter.count(values);
    const std::string text = explain(explanation);
    CHECK(has(text, "least and greatest values alone"));
    CHECK(has(text, "min and max -1 to 2\n"));
}

TEST_CASE("what a method cuts off is said") {
    Counter counter;
    const std::vector<float> values = {-2, 10};
    Explanation explanation;
    explanation.statistics = &counter.count(values);
    explanation.method = "mse";
    explanation.ranges = {{-1.5, 9}};
    explanation.encodings = {encode(explanation.ranges[0], explanation.rules)};
    const std::string text = explain(explanation);
    CHECK(has(text, "mse: -1.5 to 9"));
    CHECK(has(text, "cuts 0.5 off below and 1 above"));
}

TEST_CASE("each step of the target's rules is named where it does something") {
    GridRules rules;
    CHECK(has(explained({1, 2.55}, rules), "widened to zero: 0 to 2.55"));
    CHECK(has(explained({1, 2.55}, rules), "step: width 2.55 / 255 codes = 0.01"));
    CHECK(has(explained({1, 2.55}, rules), "nudged by nothing"));
    CHECK(has(explained({0, 0.001}, rules), "widened to the least range: 0 to 0.01"));
    CHECK(has(explained({-0.016, 2.534}, rules), "nudged by -0.004 (-0.400 steps)"));
    CHECK(has(explained({-0.016, 2.534}, rules), "scale 0.01, offset -2, bitwidth 8, -0.02 to 2.53"));
    CHECK_FALSE(explained({-1, 1}, rules).find("widened") != std::string::npos);
    rules.power_of_two = true;
    CHECK(has(explained({0, 2.55}, rules), "up to the next power of two: 0.015625"));
    rules = {};
    rules.scheme = Scheme::symmetric;
    CHECK(has(explained({-1, 1.27}, rules), "step: greatest magnitude 1.27 / 127 codes = 0.01"));
    CHECK(has(explained({0, 0}, rules), "up to that of the least range: 3.92"));
    rules.scheme = Scheme::unsigned_symmetric;
    CHECK(has(explained({0, 2.55}, rules), "step: width 2.55 / 255 codes = 0.01"));
    CHECK(has(explained({-1, 1.27}, rules), "step: greatest magnitude 1.27 / 127 codes = 0.01"));
}

TEST_CASE("a range that is narrow and far from zero is explained without zero, too") {
    GridRules rules;
    rules.include_zero = false;
    const std::string text = explained({10, 12.55}, rules);
    CHECK(has(text, "zero not included"));
    CHECK_FALSE(text.find("widened to zero") != std::string::npos);
}

TEST_CASE("an encoding per channel has a line for each channel") {
    Explanation explanation;
    explanation.axis = 0;
    explanation.rules.scheme = Scheme::symmetric;
    explanation.ranges = {{-1, 1.27}, {-2.54, 0}};
    for (const Range& range : explanation.ranges) {
        explanation.encodings.push_back(encode(range, explanation.rules));
    }
    const std::string text = explain(explanation);
    CHECK(has(text, "-2.54 to 1.27, the hull of 2 channels"));
    CHECK(has(text, "channel 0: scale 0.01,"));
    CHECK(has(text, "channel 1: scale 0.02,"));
    CHECK(has(text, "from -2.54 to 0"));
}
