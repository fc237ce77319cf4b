// Whether a range is measured data, from statistics.
#include "audit/evidence.h"

#include <doctest/doctest.h>

#include "audit_fixture.h"
#include "statistics/statistics_file.h"
#include "support/temporary_folder.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// Four samples of a tensor 't': sample k holds -k - 1 to 2 k + 2 in 301 equal steps.
StatisticsFile four_samples(const TemporaryFolder& folder) {
    StatisticsHeader header;
    header.selected = 4;
    header.tensors = {{"t", false}};
    StatisticsSet set(1);
    StatisticsWriter writer(folder / "m.qstats", header);
    Counter counter;
    for (std::uint64_t k = 0; k < 4; ++k) {
        std::vector<float> values;
        for (int i = 0; i <= 300; ++i) {
            const double low = -static_cast<double>(k) - 1;
            values.push_back(static_cast<float>(low - low * 3 * i / 300));
        }
        const TensorStatistics& sample = counter.count(values);
        writer.add_row({k, {summarize(sample)}});
        set.merge(0, sample);
    }
    writer.finish(set, {});
    return StatisticsFile(folder / "m.qstats");
}

FoundEncoding found(double min, double max) {
    FoundEncoding encoding;
    encoding.min = *parse_printed_number(fmt::format("{:.6f}", min));
    encoding.max = *parse_printed_number(fmt::format("{:.6f}", max));
    return encoding;
}

}  // namespace

TEST_CASE("a range of all samples, of one sample and of other data are told apart") {
    const TemporaryFolder folder;
    const StatisticsFile statistics = four_samples(folder);
    const Target target = load_target("snpe");
    const auto all = measured(statistics, "t", found(-4, 8), target);
    REQUIRE(all);
    CHECK(all->known);
    CHECK(all->text == "the statistics' minmax of all 4 samples gives it");
    const auto one = measured(statistics, "t", found(-2, 4), target);
    REQUIRE(one);
    CHECK(one->known);
    CHECK(one->text == "it is min and max of sample 1 alone");
    const auto other = measured(statistics, "t", found(-30, 60), target);
    REQUIRE(other);
    CHECK_FALSE(other->known);
    CHECK(other->text.find("other data than the 4 samples counted") != std::string::npos);
    CHECK_FALSE(measured(statistics, "u", found(-1, 1), target));
}

TEST_CASE("the share of values outside a range is counted from histograms") {
    const TemporaryFolder folder;
    const StatisticsFile statistics = four_samples(folder);
    const TensorStatistics& values = statistics.tensor(0);
    CHECK(share_outside(values, {-4, 8}).value() == 0);
    CHECK(share_outside(values, {-100, 100}).value() == 0);
    // Above 4: nothing of samples 0 and 1, 2/9 of sample 2, 4/12 of sample 3.
    CHECK(share_outside(values, {-4, 4}).value() == doctest::Approx((2.0 / 9 + 4.0 / 12) / 4).epsilon(0.02));
    // Below -2: 1/9 of sample 2, 2/12 of sample 3.
    CHECK(share_outside(values, {-2, 8}).value() == doctest::Approx((1.0 / 9 + 2.0 / 12) / 4).epsilon(0.03));
    CHECK(share_outside(values, {-8, 0}).value() == doctest::Approx(2.0 / 3).epsilon(0.02));
    CHECK(clipping_text(statistics, "t", found(-4, 4), ShownEncoding{8, -4, 8, 0, 0, {}}) ==
          "; it clips 14 % of the values (the given range 0 %)");
}

TEST_CASE("findings tell whether a recomputed range is measured data and what it clips") {
    const TemporaryFolder folder;
    const StatisticsFile statistics = four_samples(folder);
    const Target target = load_target("snpe");
    GivenFile given;
    given.add("t", -2.5, 6);
    const ConverterReport report = report_of_log(log_row("Conv_1", "t", 8, -4, 8));
    AuditInput input;
    input.given = &given.file();
    input.found = &report;
    input.target = &target;
    input.statistics = &statistics;
    const AuditResult result = audit(input);
    CHECK(status_of(result, "t") == "recomputed");
    CHECK(cause_of(result, "t")
              .find("minmax of all 4 samples gives it; it clips 0 % of the values (the given range") !=
          std::string::npos);
}
