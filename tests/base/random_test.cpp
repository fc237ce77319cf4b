#include "base/random.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace qcalib {

// The first outputs of SplitMix64 for the seed 1234567, as widely published with the generator.
TEST_CASE("the generator answers SplitMix64's published numbers") {
    Random random(1234567);
    for (const std::uint64_t expected : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                         4593380528125082431U, 16408922859458223821U}) {
        CHECK(random.next() == expected);
    }
}

TEST_CASE("numbers below a bound reach every value and none beyond") {
    Random random(1);
    std::array<int, 7> counts = {};
    for (int i = 0; i < 7000; ++i) {
        const std::uint64_t value = random.below(7);
        REQUIRE(value < 7);
        ++counts[value];
    }
    for (const int count : counts) {
        CHECK(count > 850);
        CHECK(count < 1150);
    }
    CHECK(random.below(1) == 0);
}

TEST_CASE("units lie in [0, 1) and their mean near a half") {
    Random random(2);
    double sum = 0;
    for (int i = 0; i < 10000; ++i) {
        const double value = random.unit();
        REQUIRE(value >= 0);
        REQUIRE(value < 1);
        sum += value;
    }
    CHECK(sum / 10000 == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("a shuffle keeps all items and repeats with its seed") {
    std::vector<int> first(100);
    std::iota(first.begin(), first.end(), 0);
    std::vector<int> second = first;
    const std::vector<int> sorted = first;
    Random random(3);
    shuffle(std::span(first), random);
    Random again(3);
    shuffle(std::span(second), again);
    CHECK(first == second);
    CHECK(first != sorted);
    std::sort(first.begin(), first.end());
    CHECK(first == sorted);
    std::vector<int> none;
    shuffle(std::span(none), random);
    CHECK(none.empty());
}

}  // namespace qcalib
