#include "ranges/mask_like.h"

#include <doctest/doctest.h>

#include "method_fixture.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

std::vector<float> with_values(std::vector<float> values, std::size_t count, float value) {
    values.insert(values.end(), count, value);
    return values;
}

std::vector<float> ordinary() {
    Random random(3);
    return draw(distribution("normal"), 5000, random);
}

std::vector<std::string> remarks_of(const std::vector<std::pair<std::string, std::vector<float>>>& tensors,
                                    CounterSettings settings = {}) {
    const TemporaryFolder folder;
    StatisticsHeader header;
    header.selected = 1;
    header.counter = settings;
    Counter counter(settings);
    StatisticsSet set(tensors.size());
    Row row;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        header.tensors.push_back({tensors[i].first, false});
        const TensorStatistics& found = counter.count(tensors[i].second);
        set.merge(i, found);
        row.entries.push_back(summarize(found));
    }
    StatisticsWriter writer(folder / "a.qstats", header);
    writer.add_row(row);
    writer.finish(set, {});
    return far_value_remarks(StatisticsFile(folder / "a.qstats"));
}

}  // namespace

TEST_CASE("negative values four or more empty binades beyond the rest are mask-like") {
    for (const float mask : {-200.0F, -10000.0F, -1e9F, -9e29F}) {
        CAPTURE(mask);
        const auto far = far_negative_values(counted({with_values(ordinary(), 40, mask)}));
        REQUIRE(far);
        CHECK(far->count == 40);
        CHECK(far->nearest <= -mask);
        CHECK(far->nearest >= -mask * 0.99);
        CHECK(far->rest < -mask / 16);
    }
}

TEST_CASE("three empty binades are none, and four are") {
    // The rest lies below 4; 64 to below 128 is the fifth binade above it, 32 to below 64 the fourth.
    CHECK_FALSE(far_negative_values(counted({{-3.9F, 1, 2, -63}})));
    CHECK(far_negative_values(counted({{-3.9F, 1, 2, -64}})));
    CHECK_FALSE(far_negative_values(counted({{-0.1F, 3.9F, -63}})));
    CHECK(far_negative_values(counted({{-0.1F, 3.9F, -64}})));
}

TEST_CASE("ordinary distributions, zeros and constants have no mask-like values") {
    CHECK_FALSE(far_negative_values(counted({ordinary()})));
    CHECK_FALSE(far_negative_values(counted({{0, 0, -10000}})));
    CHECK_FALSE(far_negative_values(counted({{-10000, -10000}})));
    CHECK_FALSE(far_negative_values(counted({{}})));
    CHECK_FALSE(far_negative_values(counted({with_values(ordinary(), 3, 10000)})));
    CHECK(far_positive_values(counted({with_values(ordinary(), 3, 10000)})));
}

TEST_CASE("one remark names the tensors and the calibration that leaves the values out of all of them") {
    const auto masked = with_values(ordinary(), 40, -10000);
    const auto remarks =
        remarks_of({{"scores", masked}, {"plain", ordinary()}, {"other", with_values(ordinary(), 7, -9000)}});
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].starts_with(
        "mask-like values, 4 or more empty binades beyond the rest: 'scores' (40 from -10000 "
        "down, the rest within "));
    CHECK(remarks[0].find("'other' (7 from -8992 down") != std::string::npos);
    CHECK(remarks[0].ends_with("; to leave them out calibrate again with --mask-below -128"));

    // That calibration counts them, and has nothing more to say.
    CounterSettings settings;
    settings.mask_below = -128;
    CHECK(remarks_of({{"scores", masked}}, settings).empty());
    Counter counter(settings);
    CHECK(counter.count(masked).negative_masks == 40);
    CHECK(counter.count(ordinary()).negative_masks == 0);
}

TEST_CASE("where another tensor has real values as low, the remark says which") {
    const auto remarks = remarks_of(
        {{"scores", with_values(ordinary(), 40, -200)}, {"wide", {-5000, -3000, -1000, -200, -50, -7}}});
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].find("calibrate again with --mask-below -") != std::string::npos);
    CHECK(remarks[0].ends_with(", which leaves out values of 'wide' as well (down to -5000)"));
}

TEST_CASE("rare positive values far beyond the rest are outliers, many are not") {
    const auto remarks =
        remarks_of({{"x", with_values(ordinary(), 3, 10000)}, {"y", with_values(ordinary(), 300, 10000)}});
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].starts_with(
        "outliers, 4 or more empty binades beyond the rest: 'x' (3 from 10000 up, the rest "));
    CHECK(remarks[0].find("'y'") == std::string::npos);
}

TEST_CASE("without histograms nothing is said") {
    CounterSettings settings;
    settings.extremes_only = true;
    CHECK(remarks_of({{"scores", with_values(ordinary(), 40, -10000)}}, settings).empty());
}
