#include "ranges/range_method.h"

#include <fstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "method_fixture.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

std::string parse_error(const std::string& text) {
    try {
        parse_method(text);
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

// The level of each calibration sample of the two-convolution case.
std::vector<float> two_conv_levels() {
    std::ifstream file(QCALIB_SOURCE_DIR "/tests/cases/two_conv/calibration_levels.txt");
    std::vector<float> levels;
    for (int level = 0; file >> level;) levels.push_back(static_cast<float>(0.1 * level));
    return levels;
}

}  // namespace

TEST_CASE("a tensor's samples are its rows, and a constant has none") {
    const TemporaryFolder folder;
    write_samples(folder / "a.qstats", {{1.0F}, {2.0F, -3.0F}});
    const StatisticsFile file(folder / "a.qstats");
    const TensorSamples x(file, 0);
    CHECK(x.name() == "x");
    CHECK_FALSE(x.constant());
    REQUIRE(x.rows() == 2);
    CHECK(x.row(1).min == -3);
    CHECK(x.statistics() == file.tensor(0));
    const TensorSamples c(file, 1);
    CHECK(c.constant());
    CHECK(c.rows() == 0);
}

TEST_CASE("minmax gives the observed extremes") {
    const TemporaryFolder folder;
    const float not_a_number = std::nanf("");
    write_samples(folder / "a.qstats", {{1.0F}, {2.0F, -3.0F, not_a_number}, {not_a_number}});
    CHECK(choose(folder / "a.qstats", "minmax") == Range{-3, 2});
    CHECK(choose(folder / "a.qstats", "minmax", 1) == Range{-2, 5});
    write_samples(folder / "b.qstats", {{not_a_number}});
    CHECK_FALSE(choose(folder / "b.qstats", "minmax"));
}

TEST_CASE("ema starts with the first sample and moves by 1 - momentum") {
    const TemporaryFolder folder;
    write_samples(folder / "a.qstats", {{-1.0F, 4.0F}, {-2.0F, 8.0F}, {0.0F, 2.0F}});
    CHECK(choose(folder / "a.qstats", "ema:momentum=0.5") == Range{-0.75, 4});
    CHECK(choose(folder / "a.qstats", "ema:momentum=0") == Range{0, 2});
    CHECK(choose(folder / "a.qstats", "ema:momentum=1") == Range{-1, 4});
    const std::optional<Range> usual = choose(folder / "a.qstats", "ema");
    REQUIRE(usual);
    const float kept = 0.9F;
    const float added = static_cast<float>(1 - 0.9);
    const float second = kept * 4 + added * 8;  // in float32, as MQBench's observers
    CHECK(usual->max == static_cast<double>(kept * second + added * 2));
}

TEST_CASE("ema passes over samples without data and takes a constant's extremes") {
    const TemporaryFolder folder;
    const float not_a_number = std::nanf("");
    write_samples(folder / "a.qstats", {{not_a_number}, {4.0F}, {not_a_number}, {8.0F}, {}});
    CHECK(choose(folder / "a.qstats", "ema:momentum=0.5") == Range{6, 6});
    CHECK(choose(folder / "a.qstats", "ema:momentum=0.5,group=2") == Range{4, 8});
    CHECK(choose(folder / "a.qstats", "ema", 1) == Range{-2, 5});
    write_samples(folder / "b.qstats", {{not_a_number}, {}});
    CHECK_FALSE(choose(folder / "b.qstats", "ema"));
    write_samples(folder / "c.qstats", {});
    CHECK_FALSE(choose(folder / "c.qstats", "ema"));
    CHECK(choose(folder / "c.qstats", "ema", 1) == Range{-2, 5});
}

TEST_CASE("ema averages the joint extremes of groups of samples, the last group being shorter") {
    // Samsung ONE's record-minmax --mode moving_average on maxima {1..7, 100}.
    const TemporaryFolder folder;
    std::vector<std::vector<float>> samples;
    for (const float value : {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 7.0F, 100.0F}) samples.push_back({value});
    write_samples(folder / "a.qstats", samples);
    const auto check = [&](const std::string& method, double min, double max) {
        CAPTURE(method);
        const std::optional<Range> range = choose(folder / "a.qstats", method);
        REQUIRE(range);
        CHECK(range->min == doctest::Approx(min).epsilon(1e-6));
        CHECK(range->max == doctest::Approx(max).epsilon(1e-6));
    };
    check("ema:group=2", 2.12200022, 12.3220024);
    check("ema:group=16", 1, 100);
    check("ema:group=2,momentum=0.5", 5.25, 52.25);
    check("ema:group=3", 0.9 * (0.9 * 1 + 0.1 * 4) + 0.1 * 7, 0.9 * (0.9 * 3 + 0.1 * 6) + 0.1 * 100);
}

TEST_CASE("ema of the two-convolution case's input is 0.581827") {
    const std::vector<float> levels = two_conv_levels();
    REQUIRE(levels.size() == 100);
    const TemporaryFolder folder;
    std::vector<std::vector<float>> samples;
    for (const float level : levels) samples.emplace_back(3 * 20 * 20, level);
    write_samples(folder / "a.qstats", samples);
    const std::optional<Range> range = choose(folder / "a.qstats", "ema");
    REQUIRE(range);
    CHECK(range->max == doctest::Approx(0.581827).epsilon(1e-6));
    CHECK(range->min == range->max);  // each sample is one value; the encoding widens to zero
    CHECK(choose(folder / "a.qstats", "minmax") == Range{0, static_cast<double>(0.9F)});
}

TEST_CASE("an average of equal extremes stays inside them") {
    const TemporaryFolder folder;
    write_samples(folder / "a.qstats", std::vector<std::vector<float>>(50, {-0.1F, 0.3F}));
    CHECK(choose(folder / "a.qstats", "ema:momentum=0.7") == Range{-0.1F, 0.3F});
}

TEST_CASE(
    "every method of the registry has a name of its own, a summary and parameters within their bounds") {
    std::set<std::string> names;
    for (const RangeMethod* method : range_methods()) {
        CHECK(names.insert(method->name()).second);
        CHECK_FALSE(method->summary().empty());
        CHECK_FALSE(method->source().empty());
        for (const MethodParameter& parameter : method->parameters()) {
            CHECK(parameter.least <= parameter.default_value);
            CHECK(parameter.default_value <= parameter.greatest);
            CHECK_FALSE(parameter.description.empty());
        }
        CHECK(parse_method(method->name()).method == method);
    }
    CHECK(names == std::set<std::string>{"aciq", "ema", "entropy", "mean", "minmax", "mse", "percentile",
                                         "sample-moving-average", "sample-percentile", "sqnr"});
}

TEST_CASE("a choice holds every parameter and is printed as it can be parsed") {
    const MethodChoice plain = parse_method("ema");
    CHECK(plain.parameters == MethodParameters{{"group", 1}, {"momentum", 0.9}});
    CHECK(to_string(plain) == "ema:group=1,momentum=0.9");
    const MethodChoice set = parse_method("ema: momentum = 0.95 , group=4");
    CHECK(to_string(set) == "ema:group=4,momentum=0.95");
    CHECK(parse_method(to_string(set)).parameters == set.parameters);
    CHECK(to_string(parse_method("minmax")) == "minmax");
}

TEST_CASE("unknown methods and parameters offer the nearest, and values outside their bounds are refused") {
    const std::string all =
        "the methods are minmax, percentile, mse, sqnr, entropy, aciq, mean, ema, sample-percentile, "
        "sample-moving-average";
    CHECK(parse_error("emma") == "method 'emma': unknown (did you mean 'ema'?); " + all);
    CHECK(parse_error("") == "method '': unknown; " + all);
    CHECK(parse_error("ema:momentun=0.5") ==
          "method ema: unknown parameter 'momentun' (did you mean 'momentum'?); its parameters are momentum, "
          "group");
    CHECK(parse_error("minmax:percent=3") ==
          "method minmax: unknown parameter 'percent'; it has no parameters");
    CHECK(parse_error("ema:momentum=2") ==
          "method ema, parameter momentum: expected a number from 0 to 1, found 2");
    CHECK(parse_error("ema:momentum=nan") != "");
    CHECK(parse_error("ema:group=0") ==
          "method ema, parameter group: expected a number from 1 to 1000000, found 0");
    CHECK(parse_error("ema:group=1.5") == "method ema, parameter group: expected a whole number, found 1.5");
    CHECK(parse_error("ema:momentum=high") ==
          "method ema, parameter momentum: expected a number, found 'high'");
    CHECK(parse_error("ema:momentum") == "method ema: expected name=value, found 'momentum'");
    CHECK(parse_error("ema:") == "method ema: expected name=value, found ''");
    CHECK(parse_error("ema:group=2,group=3") == "method ema: parameter group is given twice");
}

TEST_CASE("a rule is a method, or a name or pattern and a method") {
    CHECK_FALSE(parse_method_rule("mse").pattern);
    CHECK_FALSE(parse_method_rule("ema:momentum=0.5").pattern);
    CHECK(to_string(parse_method_rule("ema:momentum=0.5").choice) == "ema:group=1,momentum=0.5");
    CHECK(parse_method_rule("conv*=mse").pattern == "conv*");
    const MethodRule colon = parse_method_rule("input:0=percentile:p=99.9,zeros=0");
    CHECK(colon.pattern == "input:0");
    CHECK(to_string(colon.choice) == "percentile:p=99.9,zeros=0");
    CHECK(parse_method_rule("a=b=mse").pattern == "a=b");
    CHECK(parse_method_rule("emb=ema:group=2").pattern == "emb");
}

TEST_CASE("a rule without a method is an error that names what stands for it") {
    const auto error = [](const std::string& text) {
        return message_of<Error>([&] { parse_method_rule(text); });
    };
    CHECK(error("conv*=msse").starts_with("method 'msse': unknown (did you mean 'mse'?)"));
    CHECK(error("=mse").starts_with("method '=mse': unknown"));
    CHECK(error("conv*").starts_with("method 'conv*': unknown"));
    CHECK(error("conv*=mse:p=3") == "method mse: unknown parameter 'p'; it has no parameters");
}
