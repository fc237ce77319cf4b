// What holds for every method, grid and distribution.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "method_fixture.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using Samples = std::vector<std::vector<float>>;

Samples drawn(const Distribution& distribution, std::uint64_t seed) {
    Random random(seed);
    Samples samples(1 + random.below(6));
    for (std::vector<float>& sample : samples) sample = draw(distribution, 1 + random.below(2000), random);
    return samples;
}

// Depends on the samples as they are cut, not on their elements alone.
bool works_on_rows(const std::string& method) {
    return method == "mean" || method == "ema" || method.starts_with("sample-");
}

// One file, or shards merged into one.
void write_shards(const std::filesystem::path& path, const Samples& samples, std::uint32_t shards) {
    std::vector<std::filesystem::path> files;
    for (std::uint32_t shard = 1; shard <= shards; ++shard) {
        StatisticsHeader header;
        header.selected = samples.size();
        header.shard = shard;
        header.shards = shards;
        header.tensors = {{"x", false}};
        files.push_back(path.string() + std::to_string(shard));
        StatisticsWriter writer(files.back(), header);
        StatisticsSet set(1);
        Counter counter;
        for (std::uint64_t sample = shard - 1; sample < samples.size(); sample += shards) {
            const TensorStatistics& found = counter.count(samples[sample]);
            set.merge(0, found);
            writer.add_row({sample, {summarize(found)}});
        }
        writer.finish(set, {});
    }
    merge_statistics(files, path);
}

}  // namespace

TEST_CASE(
    "a range is never inverted, not a number, or beyond the observed one, and a grid can be made of it") {
    for (const Distribution& distribution : distributions()) {
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
            const Samples samples = drawn(distribution, seed);
            const TemporaryFolder folder;
            write_samples(folder / "a.qstats", samples);
            const StatisticsFile file(folder / "a.qstats");
            const TensorSamples tensor(file, 0);
            for (const std::string& method : method_names()) {
                for (const GridRules& rules : grids()) {
                    CAPTURE(distribution.name);
                    CAPTURE(method);
                    CAPTURE(rules.bits);
                    const auto range = parse_method(method).choose(tensor, rules);
                    const std::optional<Range>& observed = tensor.statistics().extremes;
                    REQUIRE(range.has_value() == observed.has_value());
                    if (!range) continue;
                    REQUIRE(range->min <= range->max);
                    REQUIRE(range->min >= observed->min);
                    REQUIRE(range->max <= observed->max);
                    const Grid grid = make_grid(*range, rules);
                    REQUIRE(grid.step > 0);
                    REQUIRE(std::isfinite(grid.min));
                    REQUIRE(std::isfinite(grid.max));
                    REQUIRE(grid.min < grid.max);
                }
            }
        }
    }
}

TEST_CASE("a grid is beyond the observed range only by a least range, zero, half a step or a power of two") {
    for (const std::string name : {"normal", "relu", "negative", "near constant"}) {
        const Samples samples = drawn(distribution(name), 5);
        const TensorStatistics statistics = counted(samples);
        const TensorSamples tensor("x", statistics);
        for (const std::string& method : method_names()) {
            CAPTURE(name);
            CAPTURE(method);
            const GridRules rules = grid_rules(8);
            const Grid grid = make_grid(*parse_method(method).choose(tensor, rules), rules);
            const double low = std::min(0.0, statistics.extremes->min);
            const double high = std::max({0.0, statistics.extremes->max, low + rules.least_range});
            CHECK(grid.min >= low - grid.step / 2 * (1 + 1e-9));
            CHECK(grid.max <= high + grid.step / 2 * (1 + 1e-9));
        }
    }
}

TEST_CASE("percentiles widen as p grows") {
    for (const Distribution& distribution : distributions()) {
        const Samples samples = drawn(distribution, 7);
        const TensorStatistics statistics = counted(samples);
        if (!statistics.extremes) continue;
        for (const Scheme scheme : {Scheme::asymmetric, Scheme::symmetric}) {
            for (const std::string zeros : {"0", "1"}) {
                CAPTURE(distribution.name);
                std::optional<Range> before;
                for (const double percent : {50.0, 60.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0}) {
                    const Range range = *parse_method(fmt::format("percentile:p={},zeros={}", percent, zeros))
                                             .choose(TensorSamples("x", statistics), grid_rules(8, scheme));
                    if (before) CHECK((range.min <= before->min && range.max >= before->max));
                    before = range;
                }
                CHECK(*before == *statistics.extremes);
            }
        }
        std::optional<Range> before;
        const TemporaryFolder folder;
        write_samples(folder / "a.qstats", samples);
        for (const double percent : {50.0, 75.0, 90.0, 99.0, 100.0}) {
            const auto range = choose(
                folder / "a.qstats", fmt::format("sample-percentile:low={},high={}", 100 - percent, percent));
            if (before) CHECK((range->min <= before->min && range->max >= before->max));
            before = range;
        }
    }
}

TEST_CASE("methods of elements answer the same for any order of elements and any cutting into samples") {
    for (const Distribution& distribution : distributions()) {
        const Samples samples = drawn(distribution, 9);
        std::vector<float> all;
        for (const std::vector<float>& sample : samples) all.insert(all.end(), sample.begin(), sample.end());
        Samples others;
        std::vector<float> shuffled = all;
        Random random(3);
        for (std::size_t i = shuffled.size(); i > 1; --i)
            std::swap(shuffled[i - 1], shuffled[random.below(i)]);
        for (auto first = shuffled.begin(); first != shuffled.end();) {
            const auto length = std::min<std::ptrdiff_t>(shuffled.end() - first,
                                                         static_cast<std::ptrdiff_t>(1 + random.below(300)));
            others.emplace_back(first, first + length);
            first += length;
        }
        const TensorStatistics whole = counted({all});
        const TensorStatistics cut = counted(others);
        for (const std::string& method : method_names()) {
            if (works_on_rows(method)) continue;
            for (const GridRules& rules : grids()) {
                CAPTURE(distribution.name);
                CAPTURE(method);
                const MethodChoice choice = parse_method(method);
                CHECK(choice.choose(TensorSamples("x", whole), rules) ==
                      choice.choose(TensorSamples("x", cut), rules));
            }
        }
    }
}

TEST_CASE("every method answers the same for a run in shards, whatever completes first") {
    for (const std::string name : {"normal", "relu", "everything", "masked"}) {
        const Samples samples = drawn(distribution(name), 21);
        const TemporaryFolder folder;
        write_shards(folder / "one", samples, 1);
        write_shards(folder / "three", samples, 3);
        // In another order of completion: the statistics are merged backwards, the rows are in order.
        StatisticsHeader header;
        header.selected = samples.size();
        header.tensors = {{"x", false}};
        {
            StatisticsWriter writer(folder / "backwards", header);
            StatisticsSet set(1);
            Counter counter;
            for (std::size_t i = samples.size(); i-- > 0;) set.merge(0, counter.count(samples[i]));
            for (std::size_t i = 0; i < samples.size(); ++i) {
                writer.add_row({i, {summarize(counter.count(samples[i]))}});
            }
            writer.finish(set, {});
        }
        for (const std::string& method : method_names()) {
            CAPTURE(name);
            CAPTURE(method);
            const auto expected = choose(folder / "one", method);
            CHECK(choose(folder / "three", method) == expected);
            CHECK(choose(folder / "backwards", method) == expected);
        }
    }
}

TEST_CASE("a mirrored tensor gets the mirrored range") {
    Random random(31);
    std::vector<float> values = draw(distribution("normal"), 20000, random);
    for (float& value : values) value = value > 0 ? 2 * value : value;
    std::vector<float> mirrored = values;
    for (float& value : mirrored) value = -value;
    for (const std::string& method : method_names()) {
        for (const Scheme scheme : {Scheme::asymmetric, Scheme::symmetric}) {
            CAPTURE(method);
            const auto range = choose(values, method, grid_rules(8, scheme));
            const auto other = choose(mirrored, method, grid_rules(8, scheme));
            // Codes and ranks are not quite symmetric: half a step of zero point, one element of a
            // percentile.
            const double tolerance = method == "percentile" ? 0.5 : 0.05;
            CHECK(other->max == doctest::Approx(-range->min).epsilon(tolerance));
            CHECK(other->min == doctest::Approx(-range->max).epsilon(tolerance));
        }
    }
}

TEST_CASE("a tensor scaled by a power of two gets the scaled range") {
    Random random(37);
    const std::vector<float> values = draw(distribution("normal"), 20000, random);
    std::vector<float> scaled = values;
    for (float& value : scaled) value *= 1024;
    for (const std::string& method : method_names()) {
        for (GridRules rules :
             {grid_rules(8), grid_rules(4, Scheme::symmetric), grid_rules(8, Scheme::symmetric, true)}) {
            CAPTURE(method);
            rules.least_range = 1e-6;
            const auto range = choose(values, method, rules);
            const auto larger = choose(scaled, method, rules);
            CHECK(larger->min == doctest::Approx(1024 * range->min).epsilon(1e-9));
            CHECK(larger->max == doctest::Approx(1024 * range->max).epsilon(1e-9));
        }
    }
}
