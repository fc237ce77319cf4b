#include "statistics/bin_counts.h"

#include <algorithm>
#include <utility>

#include <doctest/doctest.h>

namespace qcalib {
namespace {

TEST_CASE("counts are made as zeros, and made once") {
    BinCounts counts;
    CHECK(counts.empty());
    CHECK(counts.all().empty());
    counts.make();
    REQUIRE(counts.all().size() == BinCounts::bins);
    CHECK(std::ranges::all_of(counts.all(), [](std::uint32_t count) { return count == 0; }));
    counts[5] = 7;
    counts.make();
    CHECK(counts[5] == 7);
}

TEST_CASE("adjoined counts lie one behind the other, and stay where they are when adjoined again") {
    BinCounts first;
    BinCounts second;
    BinCounts::adjoin(first, second);
    REQUIRE(second.data() == first.data() + BinCounts::bins);
    first.data()[BinCounts::bins + 3] = 9;
    CHECK(second[3] == 9);
    const std::uint32_t* const place = first.data();
    BinCounts::adjoin(first, second);
    CHECK(first.data() == place);
    CHECK(second[3] == 9);
}

TEST_CASE("counts that were made apart are adjoined in new memory") {
    BinCounts first;
    BinCounts second;
    first.make();
    second.make();
    BinCounts::adjoin(first, second);
    CHECK(second.data() == first.data() + BinCounts::bins);
    CHECK(first[0] == 0);
}

TEST_CASE("adjoined counts that changed places are adjoined anew") {
    BinCounts first;
    BinCounts second;
    BinCounts::adjoin(first, second);
    std::swap(first, second);
    BinCounts::adjoin(first, second);
    CHECK(second.data() == first.data() + BinCounts::bins);
}

TEST_CASE("a copy of one of two adjoined counts has memory of its own") {
    BinCounts first;
    BinCounts second;
    BinCounts::adjoin(first, second);
    second[1] = 4;
    BinCounts copy = second;
    copy[1] = 5;
    CHECK(second[1] == 4);
    first = copy;
    CHECK(first[1] == 5);
    CHECK(second[1] == 4);
    copy = BinCounts();
    CHECK(copy.empty());
}

}  // namespace
}  // namespace qcalib
