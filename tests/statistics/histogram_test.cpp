#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include <doctest/doctest.h>

#include "statistics/fixtures.h"
#include "statistics/reference_counter.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

MagnitudeHistogram histogram_of(std::span<const float> magnitudes, int exponent) {
    MagnitudeHistogram histogram;
    histogram.grow(exponent);
    for (const float magnitude : magnitudes)
        histogram.add(MagnitudeHistogram::bin_of(magnitude, exponent), 1);
    return histogram;
}

}  // namespace

TEST_CASE("bins are those of the definition and hold what lies between their edges") {
    Random random(1);
    for (const int exponent : {-125, -100, -3, 0, 1, 7, 100}) {
        CAPTURE(exponent);
        MagnitudeHistogram histogram;
        histogram.grow(exponent);
        CHECK(histogram.lower_edge(0) == 0);
        CHECK(histogram.lower_edge(512) == std::exp2(exponent - 7));
        CHECK(histogram.lower_edge(4096) == std::exp2(exponent));
        for (int i = 0; i < 2000; ++i) {
            const int below = static_cast<int>(random.below(30));
            const auto magnitude = static_cast<float>(std::ldexp(1 + random.unit(), exponent - 1 - below));
            if (magnitude < std::numeric_limits<float>::min() || magnitude >= std::exp2(exponent)) continue;
            const std::size_t bin = MagnitudeHistogram::bin_of(magnitude, exponent);
            CHECK(bin == reference_bin(magnitude, exponent));
            CHECK(histogram.lower_edge(bin) <= magnitude);
            CHECK(magnitude < histogram.lower_edge(bin + 1));
        }
    }
}

TEST_CASE("every edge between bins belongs to the bin above it") {
    const int exponent = 3;
    MagnitudeHistogram histogram;
    histogram.grow(exponent);
    for (std::size_t bin = 1; bin < MagnitudeHistogram::bins; ++bin) {
        const auto edge = static_cast<float>(histogram.lower_edge(bin));
        CHECK(MagnitudeHistogram::bin_of(edge, exponent) == bin);
        CHECK(MagnitudeHistogram::bin_of(std::nextafter(edge, 0.0F), exponent) == bin - 1);
    }
}

TEST_CASE("growing by one adds the two lowest groups pairwise and moves the others down") {
    MagnitudeHistogram histogram;
    histogram.grow(0);
    for (std::size_t bin = 0; bin < MagnitudeHistogram::bins; ++bin) histogram.add(bin, bin * bin + 1);
    MagnitudeHistogram grown = histogram;
    grown.grow(1);
    CHECK(grown.exponent() == 1);
    CHECK(grown.total() == histogram.total());
    for (std::size_t bin = 0; bin < 512; ++bin) {
        CHECK(grown.count(bin) == histogram.count(2 * bin) + histogram.count(2 * bin + 1));
    }
    for (std::size_t bin = 512; bin < 3584; ++bin) CHECK(grown.count(bin) == histogram.count(bin + 512));
    for (std::size_t bin = 3584; bin < 4096; ++bin) CHECK(grown.count(bin) == 0);
}

TEST_CASE("growth in any steps gives what counting at the greater exponent gives") {
    Random random(2);
    std::vector<float> magnitudes;
    for (int i = 0; i < 3000; ++i)
        magnitudes.push_back(static_cast<float>(std::ldexp(1 + random.unit(), -1 - i % 26)));
    for (const int target : {1, 2, 3, 6, 7, 8, 9, 15, 16, 17, 24, 60, 100}) {
        CAPTURE(target);
        MagnitudeHistogram at_once = histogram_of(magnitudes, 0);
        at_once.grow(target);
        MagnitudeHistogram by_one = histogram_of(magnitudes, 0);
        for (int exponent = 1; exponent <= target; ++exponent) by_one.grow(exponent);
        const MagnitudeHistogram expected = histogram_of(magnitudes, target);
        CHECK(at_once == expected);
        CHECK(by_one == expected);
        MagnitudeHistogram merged = histogram_of(std::vector<float>{}, target);
        merged.merge(histogram_of(magnitudes, 0));
        CHECK(merged == expected);
        CHECK(at_once.occupied_blocks() == expected.occupied_blocks());
        CHECK(merged.occupied_blocks() == expected.occupied_blocks());
    }
}

TEST_CASE("growing never shrinks and an empty histogram changes nothing in a merge") {
    MagnitudeHistogram histogram = histogram_of(std::vector<float>{1.0F, 3.0F}, 2);
    const MagnitudeHistogram before = histogram;
    histogram.grow(-4);
    histogram.merge(MagnitudeHistogram{});
    CHECK(histogram == before);
    MagnitudeHistogram empty;
    CHECK(empty.empty());
    CHECK(empty.count(17) == 0);
    empty.merge(before);
    CHECK(empty == before);
    empty.clear();
    CHECK(empty == MagnitudeHistogram{});
    empty.merge(before);
    CHECK(empty == before);
}

TEST_CASE("on 300 random splits and merge orders of data spread over 11 decades no count differs") {
    Random random(20260801);
    Counter counter;
    for (int trial = 0; trial < 300; ++trial) {
        CAPTURE(trial);
        std::vector<float> elements = draw(distribution("eleven decades"), 500 + random.below(4000), random);
        for (std::size_t i = random.below(40); i > 0; --i) {
            elements.push_back(distribution("any bits").draw(random));
            elements.push_back(random.below(2) == 0 ? 0.0F : -0.0F);
        }
        const TensorStatistics whole = counter.count(elements);
        REQUIRE(first_difference(whole, reference_count(elements)) == "");

        shuffle(std::span(elements), random);
        std::vector<TensorStatistics> parts;
        for (std::size_t begin = 0; begin < elements.size();) {
            const std::size_t size = std::min<std::size_t>(1 + random.below(900), elements.size() - begin);
            parts.push_back(counter.count(std::span(elements).subspan(begin, size)));
            begin += size;
        }
        while (parts.size() > 1) {  // pairs in any order, so that partial merges meet partial merges
            const std::size_t from = random.below(parts.size());
            std::swap(parts[from], parts.back());
            const std::size_t into = random.below(parts.size() - 1);
            parts[into].merge(parts.back());
            parts.pop_back();
        }
        REQUIRE(parts.front() == whole);
    }
}

TEST_CASE("counts beyond 32 bits are kept through additions, growth, merges and moves") {
    constexpr std::uint64_t many = std::uint64_t{3} << 31;
    MagnitudeHistogram histogram;
    histogram.grow(0);
    histogram.add(4095, many);
    histogram.add(4095, 0xffffffffU);
    histogram.add(4095, 0xffffffffU);
    histogram.add(700, 5);
    CHECK(histogram.count(4095) == many + 2 * std::uint64_t{0xffffffffU});
    CHECK(histogram.total() == histogram.count(4095) + 5);
    MagnitudeHistogram grown = histogram;
    grown.grow(1);
    CHECK(grown.count(3583) == histogram.count(4095));
    CHECK(grown.count(350) == 5);
    MagnitudeHistogram merged = grown;
    merged.merge(histogram);
    merged.merge(merged);
    CHECK(merged.count(3583) == 4 * histogram.count(4095));
    CHECK(merged.total() == 4 * histogram.total());
    CHECK(merged.block_total(3583 / 16) == merged.count(3583));
    MagnitudeHistogram repeated;
    repeated.add_repeated(grown, 4);
    CHECK(repeated == merged);
    repeated.pile_up(350);
    CHECK(repeated.count(350) == merged.total());
    CHECK(repeated.total() == merged.total());
    repeated.clear();
    CHECK(repeated == MagnitudeHistogram{});
    repeated.grow(0);
    CHECK(repeated.count(350) == 0);
}
