#include <bit>
#include <cstring>
#include <limits>

#include <doctest/doctest.h>
#include <hwy/targets.h>
#include <xmmintrin.h>

#include "base/error.h"
#include "statistics/block_kernels.h"
#include "statistics/fixtures.h"
#include "statistics/reference_counter.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float greatest_float = std::numeric_limits<float>::max();
constexpr float least_normal = std::numeric_limits<float>::min();
constexpr float denormal = std::numeric_limits<float>::denorm_min();

// Sets flush-to-zero and denormals-are-zero, as the workers do.
class FlushDenormals {
  public:
    FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
    ~FlushDenormals() { _mm_setcsr(before_); }
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;

  private:
    unsigned before_;
};

// Runs `body` once for each instruction set of this machine that Highway knows.
template <typename Body>
void on_all_instruction_sets(Body body) {
    std::int64_t left = hwy::SupportedTargets() | HWY_SCALAR;
    while (left != 0) {
        const std::int64_t target = left & -left;
        left &= left - 1;
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        INFO("instruction set ", hwy::TargetName(target));
        body();
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Counts the elements as they lie `offset` bytes behind an aligned place.
const TensorStatistics& count_at_offset(Counter& counter, std::span<const float> elements,
                                        std::size_t offset) {
    static std::vector<std::byte> memory;
    memory.assign(elements.size_bytes() + offset + 64, std::byte{0xff});
    std::byte* const aligned =
        memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
    if (!elements.empty()) std::memcpy(aligned + offset, elements.data(), elements.size_bytes());
    return counter.count({reinterpret_cast<const float*>(aligned + offset), elements.size()});
}

void check_count(Counter& counter, std::span<const float> elements, std::optional<double> mask_below = {}) {
    const ReferenceCounts expected = reference_count(elements, mask_below);
    for (const std::size_t offset : {0, 1, 4, 14, 36}) {
        CAPTURE(offset);
        CHECK(first_difference(count_at_offset(counter, elements, offset), expected) == "");
    }
    const FlushDenormals guard;
    CHECK(first_difference(counter.count(elements), expected) == "");
}

TensorStatistics count(std::initializer_list<float> elements) {
    Counter counter;
    return counter.count(std::vector<float>(elements));
}

}  // namespace

TEST_CASE(
    "counts equal a brute-force count bin by bin, on every instruction set, unaligned, with and without "
    "FTZ") {
    on_all_instruction_sets([] {
        Counter counter;  // one for all: what a call leaves behind must not show in the next
        Random random(7);
        for (const std::size_t size :
             {1, 2, 15, 16, 31, 33, 64, 100, 1000, 2048, 2049, 4095, 4096, 4097, 9000, 33000}) {
            for (const Distribution& distribution : distributions()) {
                CAPTURE(size);
                CAPTURE(distribution.name);
                check_count(counter, draw(distribution, size, random));
            }
        }
    });
}

TEST_CASE("large tensors whose values change from block to block are counted exactly") {
    Random random(11);
    Counter counter;
    for (int trial = 0; trial < 12; ++trial) {
        CAPTURE(trial);
        std::vector<float> elements;
        while (elements.size() < 400000) {
            const Distribution& distribution = distributions()[random.below(distributions().size())];
            const auto scale = static_cast<float>(std::pow(10.0, 6 * random.unit() - 3));
            for (float value : draw(distribution, 500 + random.below(12000), random))
                elements.push_back(scale * value);
        }
        CHECK(first_difference(counter.count(elements), reference_count(elements)) == "");
    }
}

TEST_CASE("a block that ends with equal values, the furthest from zero, is counted element by element") {
    // Both signs and no zeros before it, and a tail that fills no vector.
    for (const float last : {-10000.0F, -3.0F, 10000.0F}) {
        for (const std::size_t equal : {1U, 7U, 16U, 31U, 40U}) {
            CAPTURE(last);
            CAPTURE(equal);
            std::vector<float> values;
            for (std::size_t i = 0; i < 5000; ++i) {
                const float magnitude = 0.25F + static_cast<float>(i % 977) / 1024;
                values.push_back(i % 2 == 0 ? magnitude : -magnitude);
            }
            values.insert(values.end(), equal, last);
            on_all_instruction_sets([&] {
                Counter counter;
                CHECK(first_difference(counter.count(values), reference_count(values)) == "");
            });
        }
    }
}

TEST_CASE("blocks with a single ordinary value each do not overflow the scratch counts") {
    std::vector<float> elements(4096 * 300, 0.0F);
    for (std::size_t i = 0; i < elements.size(); i += 4096) {
        elements[i + 5] = 1.0F;
        elements[i + 6] = 2.0F;
    }
    std::vector<float> dense(4096 * 64, 1.0F);
    for (std::size_t i = 0; i < dense.size(); i += 4096) dense[i] = 2.0F;
    Counter counter;
    CHECK(first_difference(counter.count(elements), reference_count(elements)) == "");
    CHECK(first_difference(counter.count(dense), reference_count(dense)) == "");
}

TEST_CASE("a block with any count is marked and added up on every instruction set, and no other block") {
    Random random(17);
    on_all_instruction_sets([&] {
        for (std::size_t filled = 0; filled < MagnitudeHistogram::bins / MagnitudeHistogram::block;
             ++filled) {
            MagnitudeHistogram positive;
            MagnitudeHistogram negative;
            std::uint32_t* const counts = MagnitudeHistogram::counts_by_slot(positive, negative);
            positive.grow(0);
            negative.grow(0);
            const std::size_t bin = filled * MagnitudeHistogram::block + random.below(16);
            const std::uint32_t count = std::uint32_t{1} << random.below(31);  // zero when cut to less bits
            counts[bin] = count;
            counts[first_negative_slot + bin] = count;
            MagnitudeHistogram::OccupiedBlocks expected = {};
            expected[filled / 64] = std::uint64_t{1} << (filled % 64);
            CHECK(positive.recount(bin + 1) == count);
            CHECK(positive.occupied_blocks() == expected);
            negative.recount(bin + 1, count);
            CHECK(negative.occupied_blocks() == expected);
            CHECK(negative.total() == count);
            CHECK(positive == negative);
        }
    });
}

TEST_CASE("histograms are as good as new once cleared, whichever blocks were filled") {
    Random random(18);
    MagnitudeHistogram histogram;
    for (const std::size_t blocks : {1, 8, 9, 32, 100, 256}) {
        CAPTURE(blocks);
        histogram.grow(0);
        for (std::size_t i = 0; i < 3 * blocks; ++i) {
            histogram.add(random.below(blocks) * MagnitudeHistogram::block + random.below(16), 1);
            histogram.add(MagnitudeHistogram::bins - 1 - random.below(16 * blocks), 3);
        }
        histogram.clear();
        histogram.grow(0);
        MagnitudeHistogram fresh;
        fresh.grow(0);
        CHECK(histogram == fresh);
    }
}

TEST_CASE("each step of growth within one tensor keeps every count") {
    Counter counter;
    std::vector<float> elements;
    Random random(3);
    for (int binade = -120; binade <= 95; binade += 5) {
        for (int i = 0; i < 3000; ++i) {
            const double value = std::ldexp(1 + random.unit(), binade);
            elements.push_back(static_cast<float>(random.below(2) == 0 ? value : -value / 8));
        }
        for (int i = 0; i < 4096; ++i) elements.push_back(static_cast<float>(std::ldexp(1.5, binade + 3)));
    }
    CHECK(first_difference(counter.count(elements), reference_count(elements)) == "");
}

TEST_CASE("2^25 equal values are counted to the last") {
    const std::vector<float> elements(std::size_t{1} << 25, 0.3F);
    Counter counter;
    const TensorStatistics& found = counter.count(elements);
    CHECK(found.positive.exponent() == -1);
    CHECK(found.positive.total() == std::uint64_t{1} << 25);
    CHECK(found.positive.count(MagnitudeHistogram::bin_of(0.3F, -1)) == std::uint64_t{1} << 25);
    CHECK(*found.extremes == Range{0.3F, 0.3F});
    TensorStatistics total;
    for (int i = 0; i < 256; ++i) total.merge(found);
    CHECK(total.positive.total() == std::uint64_t{1} << 33);
}

TEST_CASE("+0 and -0 are one zero, in either order") {
    for (const TensorStatistics& found : {count({0.0F, -0.0F}), count({-0.0F, 0.0F})}) {
        CHECK(found.zeros == 2);
        REQUIRE(found.extremes);
        CHECK(*found.extremes == Range{0, 0});
        CHECK_FALSE(std::signbit(found.extremes->min));
        CHECK_FALSE(std::signbit(found.extremes->max));
        CHECK(found.positive.empty());
        CHECK(found.negative.empty());
    }
    CHECK(count({0.0F, -0.0F}) == count({-0.0F, 0.0F}));
    CHECK_FALSE(std::signbit(count({-0.0F}).extremes->min));
    CHECK(*count({-0.0F, -1.0F}).extremes == Range{-1, 0});
    CHECK_FALSE(std::signbit(count({-0.0F, -1.0F}).extremes->max));
}

TEST_CASE("denormals are zeros and the least normal is not") {
    const TensorStatistics found =
        count({denormal, -denormal, std::nextafter(least_normal, 0.0F), least_normal});
    CHECK(found.zeros == 3);
    CHECK(found.positive.total() == 1);
    CHECK(found.positive.exponent() == -125);
    CHECK(*found.extremes == Range{0, least_normal});
}

TEST_CASE("NaN, infinities and masks are counted apart and have no part in the extremes") {
    const TensorStatistics found = count({not_a_number, -not_a_number, infinity, -infinity, -infinity,
                                          greatest_float, -greatest_float, 1e30F, -1e30F, 2.0F});
    CHECK(found.nans == 2);
    CHECK(found.positive_infinities == 1);
    CHECK(found.negative_infinities == 2);
    CHECK(found.positive_masks == 2);
    CHECK(found.negative_masks == 2);
    CHECK(*found.extremes == Range{2, 2});
    CHECK(found.elements() == 10);
    CHECK(found.counted() == 1);
}

TEST_CASE("a magnitude just below 1e30 is no mask") {
    const TensorStatistics found = count({std::nextafter(1e30F, 0.0F)});
    CHECK(found.positive_masks == 0);
    CHECK(found.positive.exponent() == 100);
}

TEST_CASE("a tensor without any value left has no data") {
    for (const TensorStatistics& found :
         {count({}), count({not_a_number}), count({infinity, -greatest_float})}) {
        CHECK_FALSE(found.extremes);
        CHECK(found.counted() == 0);
        CHECK_FALSE(summarize(found).has_data);
    }
}

TEST_CASE("one element and a constant tensor have their value as both extremes and as tails") {
    const std::vector<float> constant(5000, -2.75F);
    Counter counter;
    for (const TensorStatistics& found : {count({-2.75F}), counter.count(constant)}) {
        CHECK(summarize(found) == SampleSummary{true, -2.75F, -2.75F, -2.75F, -2.75F});
    }
}

TEST_CASE("values below mask_below are negative masks, and the value itself is not") {
    Random random(5);
    for (const double limit : {-1e-40, -1e-38, -0.5, -0.3, -1.0, -1e29, -1e30, -1e35}) {
        CAPTURE(limit);
        Counter counter({.mask_below = limit, .extremes_only = false});
        std::vector<float> elements = {static_cast<float>(limit),
                                       std::nextafter(static_cast<float>(limit), -infinity),
                                       std::nextafter(static_cast<float>(limit), 0.0F), -infinity, 4.0F};
        check_count(counter, elements, limit);
        for (const Distribution& distribution : distributions()) {
            const std::vector<float> drawn = draw(distribution, 5000, random);
            elements.insert(elements.end(), drawn.begin(), drawn.end());
        }
        check_count(counter, elements, limit);
    }
    CHECK_THROWS_WITH_AS(Counter({.mask_below = 3.0, .extremes_only = false}),
                         "mask-below: expected a negative number, found 3", Error);
}

TEST_CASE("extremes_only gives the same extremes and special counts without histograms") {
    on_all_instruction_sets([] {
        Random random(9);
        Counter full;
        Counter extremes({.mask_below = {}, .extremes_only = true});
        for (const Distribution& distribution : distributions()) {
            CAPTURE(distribution.name);
            const std::vector<float> elements = draw(distribution, 10001, random);
            TensorStatistics expected = full.count(elements);
            expected.positive = {};
            expected.negative = {};
            CHECK(extremes.count(elements) == expected);
        }
    });
}

TEST_CASE("the tails of a sample are those of its sorted elements, within a bin") {
    Random random(13);
    Counter counter;
    for (const std::size_t size : {1, 50, 9999, 10000, 10001, 65536}) {
        for (const Distribution& distribution : distributions()) {
            CAPTURE(size);
            CAPTURE(distribution.name);
            std::vector<float> elements = draw(distribution, size, random);
            const TensorStatistics& found = counter.count(elements);
            const SampleSummary summary = summarize(found);
            std::erase_if(elements, [](float value) { return !(std::fabs(value) < 1e30F); });
            CHECK(summary.has_data == !elements.empty());
            if (elements.empty()) continue;
            for (float& value : elements) value = std::fabs(value) < least_normal ? 0.0F : value;
            std::sort(elements.begin(), elements.end());
            const auto at = [&](double p) {
                const double rank = std::ceil(p * static_cast<double>(elements.size()));
                return static_cast<double>(elements[static_cast<std::size_t>(std::max(rank, 1.0)) - 1]);
            };
            const auto bin_width = [&](double value) {
                const MagnitudeHistogram& side = value < 0 ? found.negative : found.positive;
                if (value == 0) return 0.0;
                const std::size_t bin =
                    MagnitudeHistogram::bin_of(static_cast<float>(std::fabs(value)), side.exponent());
                return side.lower_edge(bin + 1) - side.lower_edge(bin);
            };
            CHECK(std::fabs(summary.low_tail - at(0.0001)) <= bin_width(at(0.0001)) * 1.0001);
            CHECK(std::fabs(summary.high_tail - at(0.9999)) <= bin_width(at(0.9999)) * 1.0001);
            CHECK(summary.min == elements.front());
            CHECK(summary.max == elements.back());
        }
    }
}

TEST_CASE("tails that would be denormal are zero, with and without FTZ") {
    const TensorStatistics found = count({0.0F, 0.0F, least_normal, 2 * least_normal, 1e-20F});
    const SampleSummary plain = summarize(found);
    const FlushDenormals guard;
    CHECK(summarize(found) == plain);
    CHECK((plain.low_tail == 0.0F));
}
