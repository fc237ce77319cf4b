// Inputs on which calibrators fail, invert ranges or clip everything: each has an answer here, for every
// method.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <doctest/doctest.h>

#include "method_fixture.h"
#include "ranges/mask_like.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using Samples = std::vector<std::vector<float>>;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float least_float = std::numeric_limits<float>::lowest();

// 4,096 normal values.
std::vector<float> base(float factor = 1) {
    Random random(1234);
    std::vector<float> values(4096);
    for (float& value : values) value = static_cast<float>(normal(random)) * factor;
    return values;
}

Range extremes_of(const std::vector<float>& values) {
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    return {*least, *greatest};
}

// Calls check(range, method, rules) for every method and grid.
template <typename Check>
void for_all(const Samples& samples, Check check) {
    const TemporaryFolder folder;
    write_samples(folder / "a.qstats", samples);
    const StatisticsFile file(folder / "a.qstats");
    for (const std::string& method : method_names()) {
        for (const GridRules& rules : grids()) {
            CAPTURE(method);
            CAPTURE(rules.bits);
            check(parse_method(method).choose(TensorSamples(file, 0), rules), method, rules);
        }
    }
}

void check_all_are(const Samples& samples, std::optional<Range> expected) {
    for_all(samples, [&](std::optional<Range> range, const std::string&, const GridRules&) {
        CHECK(range == expected);
    });
}

// At 8 bits and asymmetric no method may lose most of the data.
void check_keeps(const Samples& samples, Range most) {
    for_all(samples, [&](std::optional<Range> range, const std::string&, const GridRules& rules) {
        REQUIRE(range);
        if (rules.bits != 8 || rules.power_of_two || !rules.include_zero) return;
        CHECK(range->max >= most.max);
        CHECK(range->min <= most.min);
    });
}

}  // namespace

TEST_CASE("all zeros: the range is 0 to 0, and the grid has the least range") {
    check_all_are({std::vector<float>(64, 0.0F)}, Range{0, 0});
    check_all_are({std::vector<float>(64, -0.0F)}, Range{0, 0});
    const Grid grid = make_grid({0, 0}, grid_rules(8));
    CHECK(grid.min == 0);
    CHECK(grid.max == 0.01);
}

TEST_CASE("one value, however often: the range is that value, exactly") {
    check_all_are({std::vector<float>(100, 0.5F)}, Range{0.5, 0.5});
    check_all_are({std::vector<float>(100, -3.0F), std::vector<float>(5, -3.0F)}, Range{-3, -3});
    check_all_are({{2.0F}}, Range{2, 2});
    check_all_are({{0.37F}}, Range{0.37F, 0.37F});
}

TEST_CASE("empty tensors and tensors of NaN have no range") {
    check_all_are({}, std::nullopt);
    check_all_are({{}}, std::nullopt);
    check_all_are({std::vector<float>(10, nan_value)}, std::nullopt);
    check_all_are({{infinity, -infinity, nan_value, least_float}}, std::nullopt);
}

TEST_CASE("NaN, infinities and masks are left out and counted, and change no range") {
    const std::vector<float> plain = base();
    std::vector<float> odd = plain;
    odd.push_back(nan_value);
    odd.push_back(infinity);
    odd.insert(odd.end(), 100, least_float);
    const TensorStatistics statistics = counted({odd});
    CHECK(statistics.nans == 1);
    CHECK(statistics.positive_infinities == 1);
    CHECK(statistics.negative_masks == 100);
    const TemporaryFolder folder;
    write_samples(folder / "plain", {plain});
    write_samples(folder / "odd", {odd});
    for (const std::string& method : method_names()) {
        if (method == "aciq") continue;  // from_extremes takes the number of elements
        CHECK(choose(folder / "odd", method) == choose(folder / "plain", method));
    }
}

TEST_CASE("denormals are zeros") {
    check_all_are({base(1e-40F)}, Range{0, 0});
}

TEST_CASE("a first sample of zeros or of small values clips nothing of those after it") {
    const std::vector<float> values = base();
    const Range all = extremes_of(values);
    // Methods that average samples take part in the zeros, by what they are.
    const auto check = [&](const std::vector<float>& first) {
        for_all({first, values},
                [&](std::optional<Range> range, const std::string& method, const GridRules& rules) {
                    if (method == "mean" || method == "ema" || method.starts_with("sample-")) return;
                    if (rules.bits != 8 || rules.power_of_two || !rules.include_zero) return;
                    CHECK(range->max > 0.5 * all.max);  // entropy clips some where half is small
                    CHECK(range->min < 0.5 * all.min);
                });
    };
    check(std::vector<float>(4096, 0.0F));
    check(base(0.01F));
    check(base(1e-4F));
    check(base(1e-30F));
}

TEST_CASE("the order of batches changes no method of elements") {
    const std::vector<float> small = base(0.01F);
    const std::vector<float> large = base();
    for (const std::string method : {"percentile", "mse", "sqnr", "entropy", "aciq", "minmax"}) {
        const TensorStatistics forth = counted({small, large});
        const TensorStatistics back = counted({large, small});
        const MethodChoice choice = parse_method(method);
        CHECK(choice.choose(TensorSamples("x", forth), {}) == choice.choose(TensorSamples("x", back), {}));
    }
}

TEST_CASE("samples of different sizes go together") {
    Samples samples = {base(), base()};
    samples[0].resize(64);
    samples[1].resize(32);
    for_all(samples, [&](std::optional<Range> range, const std::string&, const GridRules&) {
        REQUIRE(range);
        CHECK(range->min < range->max);
    });
}

TEST_CASE("values far from zero keep their range") {
    std::vector<float> values(4096);
    Random random(5);
    for (float& value : values) value = static_cast<float>(5 + 0.46 * random.unit());
    const Range all = extremes_of(values);
    for_all({values}, [&](std::optional<Range> range, const std::string& method, const GridRules& rules) {
        REQUIRE(range);
        if (rules.bits != 8 || rules.power_of_two) return;
        CHECK(range->min <= 5.03);
        // entropy may clip 1 %, and aciq takes what it sees for half of a normal distribution
        CHECK(range->max >= (method == "entropy" ? 5.43 : all.max - 0.03));
    });
    std::vector<float> negative = values;
    for (float& value : negative) value = -value;
    check_keeps({negative}, {-5.39, -5.03});  // code -128 reaches beyond -127
}

TEST_CASE("whole numbers from 0 to 255 keep their codes") {
    std::vector<float> pixels(256 * 16);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 256);
    check_keeps({pixels}, {0, 242});
    for (const std::string method : {"minmax", "mse", "sqnr"}) CHECK(choose(pixels, method) == Range{0, 255});
}

TEST_CASE("the largest and the smallest ordinary floats have ranges and grids") {
    for (const float value : {9e29F, 1.2e-38F}) {
        for_all({{value, -value, value / 2}},
                [&](std::optional<Range> range, const std::string&, const GridRules& rules) {
                    REQUIRE(range);
                    const Grid grid = make_grid(*range, rules);
                    CHECK(std::isfinite(grid.step));
                    CHECK(grid.step > 0);
                });
    }
}

TEST_CASE("counts beyond 2^32 of one value are counted") {
    TensorStatistics statistics = counted({{1.0F, -0.25F}});
    for (int i = 0; i < 40; ++i) {
        const TensorStatistics twice = statistics;
        statistics.merge(twice);
    }
    for (const std::string& method : method_names()) {
        for (const GridRules& rules : grids()) {
            const auto range = parse_method(method).choose(TensorSamples("x", statistics), rules);
            REQUIRE(range);
            CHECK(range->min <= range->max);
        }
    }
}
