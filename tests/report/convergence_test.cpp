#include "report/convergence.h"

#include <functional>

#include <doctest/doctest.h>

#include "base/text.h"
#include "statistics/fixtures.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// Statistics of tensors "a", "b", ... whose elements in a sample are what the functions answer.
class Scene {
  public:
    using Elements = std::function<std::vector<float>(std::size_t)>;

    Scene(std::size_t samples, const std::vector<Elements>& tensors, bool extremes_only = false) {
        StatisticsHeader header = example_header(samples);
        header.counter.extremes_only = extremes_only;
        header.tensors.clear();
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            header.tensors.push_back({std::string(1, static_cast<char>('a' + i)), false});
        }
        StatisticsWriter writer(folder / "net.qstats", header);
        StatisticsSet set(tensors.size());
        Counter counter(header.counter);
        for (std::size_t sample = 0; sample < samples; ++sample) {
            Row row{sample, {}};
            for (std::size_t i = 0; i < tensors.size(); ++i) {
                const TensorStatistics& found = counter.count(tensors[i](sample));
                set.merge(i, found);
                row.entries.push_back(summarize(found));
            }
            writer.add_row(row);
        }
        writer.finish(set, {});
    }

    Convergence convergence() const { return convergence_of(file()); }
    StatisticsFile file() const { return StatisticsFile(folder / "net.qstats"); }
    std::string text() const { return join(convergence_lines(convergence()), " "); }

    TemporaryFolder folder;
};

std::vector<float> still(std::size_t /*sample*/) {
    return {-1, 0.5, 3};
}
std::vector<float> growing(std::size_t sample) {
    return {-1, static_cast<float>(sample)};
}
// One far value among many in the last sample of 8: extremes move, the 99.99 % percentile hardly.
std::vector<float> late_outlier(std::size_t sample) {
    std::vector<float> values(40000, 1.0F);
    values[0] = 0;
    if (sample == 7) values[1] = 1.5F;
    return values;
}
std::vector<float> nothing(std::size_t /*sample*/) {
    return {std::nanf("")};
}
std::vector<float> late(std::size_t sample) {
    return sample < 4 ? std::vector<float>{std::nanf("")} : std::vector<float>{1};
}

}  // namespace

TEST_CASE("a tensor's range after half and after all samples comes from its rows") {
    const Scene scene(8, {growing});
    const std::optional<RangeMovement> movement = movement_of(scene.file(), 0);
    REQUIRE(movement);
    CHECK(movement->half == Range{-1, 3});
    CHECK(movement->all == Range{-1, 7});
    CHECK(movement->step == doctest::Approx(8.0 / 255));
    CHECK(movement->moved() == doctest::Approx(4 * 255 / 8.0));
}

TEST_CASE("tails are means over the samples so far") {
    const Scene scene(4, {growing});
    const std::optional<RangeMovement> movement = movement_of(scene.file(), 0);
    REQUIRE(movement);
    CHECK(movement->half_tails.max == doctest::Approx((0 + 1) / 2.0));
    CHECK(movement->all_tails.max == doctest::Approx((0 + 1 + 2 + 3) / 4.0));
    CHECK(movement->tails_moved() == doctest::Approx(255.0 / 4));
}

TEST_CASE("ranges that stay where they are have settled") {
    const Scene scene(8, {still, still});
    CHECK(scene.convergence().moved == 0);
    CHECK(scene.text() ==
          "by the last 4 of 8 samples moved by more than a step of 8 bits: min or max of 0 of 2 tensors (0.0 "
          "%), "
          "mean tails of 0 of 2 tensors (0.0 %) more samples would change little");
}

TEST_CASE("ranges that still grow ask for more samples") {
    const Scene scene(8, {still, growing});
    CHECK(scene.convergence().moved == 1);
    CHECK(scene.convergence().tails_moved == 1);
    CHECK(scene.text().ends_with("mean tails of 1 of 2 tensors (50.0 %) more samples would help"));
}

TEST_CASE("where extremes alone still grow, methods that cut tails need no more samples") {
    const Scene scene(8, {late_outlier});
    CHECK(scene.convergence().moved == 1);
    CHECK(scene.convergence().tails_moved == 0);
    CHECK(scene.text().ends_with(
        "more samples would help minmax, and change little for methods that cut tails"));
}

TEST_CASE("where the mean of the tails alone still moves, it is said of whom more samples would help") {
    const auto alternating = [](std::size_t sample) {
        return std::vector<float>{0, sample == 0 ? 2.0F : 1.0F};
    };
    const Scene scene(8, {alternating});
    CHECK(scene.convergence().moved == 0);
    CHECK(scene.convergence().tails_moved == 1);
    CHECK(scene.text().ends_with(
        "more samples would change little for minmax, and help methods that average samples"));
}

TEST_CASE("statistics without tails speak of extremes alone") {
    const Scene scene(8, {growing}, true);
    CHECK(scene.text() ==
          "by the last 4 of 8 samples moved by more than a step of 8 bits: min or max of 1 of 1 tensors "
          "(100.0 %) more samples would help");
}

TEST_CASE("tensors without data in one of the halves take no part") {
    const Scene scene(8, {nothing, late, still});
    CHECK(scene.convergence().tensors.size() == 1);
    CHECK_FALSE(movement_of(scene.file(), 0));
    CHECK_FALSE(movement_of(scene.file(), 1));
}

TEST_CASE("fewer than four samples tell nothing") {
    for (const std::size_t samples : {0, 1, 3}) {
        CHECK(Scene(samples, {growing}).text() == fmt::format("{} samples are too few to tell", samples));
    }
    CHECK_FALSE(movement_of(Scene(1, {growing}).file(), 0));
}

TEST_CASE("all zeros have a step of zero and do not move") {
    const Scene scene(4, {[](std::size_t) { return std::vector<float>{0, 0}; }});
    const std::optional<RangeMovement> movement = movement_of(scene.file(), 0);
    REQUIRE(movement);
    CHECK(movement->moved() == 0);
    CHECK(scene.convergence().moved == 0);
}

TEST_CASE("how far chosen ranges moved is told by choosing them for half of the samples and for all") {
    const Scene scene(8, {still, growing, late});
    std::vector<std::size_t> rows;
    const ChosenMovement movement = movement_of_chosen(
        scene.file(), [&](const StatisticsFile& file, std::size_t tensor) -> std::optional<Range> {
            rows.push_back(file.rows());
            const SampleSummary last = file.entry(file.rows() - 1, tensor);
            if (!last.has_data) return std::nullopt;
            CHECK(file.tensor(tensor).extremes->max == last.max);
            return Range{last.min, last.max};
        });
    CHECK(movement.tensors == 2);
    CHECK(movement.moved == 1);
    CHECK(rows == std::vector<std::size_t>{4, 8, 4, 8, 4});
}
