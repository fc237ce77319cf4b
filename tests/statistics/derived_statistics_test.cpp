#include "statistics/derived_statistics.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "statistics/fixtures.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float greatest_float = std::numeric_limits<float>::max();
constexpr float least_normal = std::numeric_limits<float>::min();

const std::vector<CounterSettings>& all_settings() {
    static const std::vector<CounterSettings> settings = {{}, {.mask_below = -0.5, .extremes_only = false}};
    return settings;
}

// Tensors of all sorts: every distribution, alone and scaled, and what is odd.
std::vector<std::vector<float>> tensors() {
    Random random(41);
    std::vector<std::vector<float>> all = {{},
                                           {0.0F, -0.0F},
                                           {std::nanf(""), std::nanf("")},
                                           {infinity},
                                           {-infinity, 0.0F},
                                           {-3e38F, 3e38F},
                                           {-2.0F, -1.0F},
                                           {-2.0F, -3e38F, -infinity},
                                           {1.0F, 3e38F, infinity},
                                           {least_normal / 2, -least_normal / 4},
                                           {least_normal, -least_normal, 1.5F * least_normal},
                                           {3.0F, 5.0F, 5.9F, 6.0F, 6.1F, 7.9F, -4.0F}};
    for (const Distribution& distribution : distributions()) {
        for (const std::size_t size : {1, 40, 3000, 20000}) all.push_back(draw(distribution, size, random));
        for (float& value : all.emplace_back(draw(distribution, 5000, random))) value *= 4;
    }
    return all;
}

// Checks a derivation, where it is one, against the count of what it stands for; answers whether it is one.
template <typename Derive>
bool check_against_count(const CounterSettings& settings, const std::vector<float>& elements,
                         const std::vector<float>& expected, Derive derive) {
    Counter counter(settings);
    const TensorStatistics source = counter.count(elements);
    TensorStatistics result =
        counter.count(std::vector<float>(300, 9.0F));  // what a result held does not matter
    const bool derived = derive(source, result);
    if (derived) {
        CHECK(result == counter.count(expected));
        CHECK(summarize(result) == summarize(counter.count(expected)));
    }
    return derived;
}

std::vector<float> clip(std::vector<float> elements, Range bounds) {
    for (float& element : elements) {
        if (element < bounds.min) element = static_cast<float>(bounds.min);
        if (element > bounds.max) element = static_cast<float>(bounds.max);
    }
    return elements;
}

}  // namespace

TEST_CASE("a derived clip is what counting gives, and Relu is always derived") {
    const std::vector<Range> ranges = {{0, infinity},
                                       {-infinity, 0},
                                       {0, 6},
                                       {-1, 1},
                                       {-0.3F, 2.7F},
                                       {-0.5, 0.5},
                                       {0, least_normal / 2},
                                       {-least_normal, least_normal},
                                       {-1e-20F, 1e20F},
                                       {-greatest_float, greatest_float},
                                       {-1e30F, 1e30F},
                                       {-infinity, infinity}};
    std::size_t derived = 0;
    for (const CounterSettings& settings : all_settings()) {
        for (const std::vector<float>& elements : tensors()) {
            for (const Range& bounds : ranges) {
                CAPTURE(elements.size());
                CAPTURE(bounds.min);
                CAPTURE(bounds.max);
                CAPTURE(settings.mask_below.value_or(0));
                const bool found = check_against_count(
                    settings, elements, clip(elements, bounds), [&](const auto& source, auto& result) {
                        return derive_clipped(source, bounds, settings, result);
                    });
                if (bounds.min == 0 && std::isinf(bounds.max)) CHECK(found);
                derived += found ? 1 : 0;
            }
        }
    }
    CHECK(derived > 500);
}

TEST_CASE("a clip whose bound lies a binade or more below the greatest magnitude is not derived") {
    Counter counter;
    TensorStatistics result;
    CHECK_FALSE(derive_clipped(counter.count(std::vector<float>{1, 8}), {0, 6}, {}, result));
    CHECK(derive_clipped(counter.count(std::vector<float>{1, 7.9F}), {0, 6}, {}, result));
    CHECK_FALSE(derive_clipped(counter.count(std::vector<float>{-5, 1}), {-3, 6}, {}, result));
    CHECK_FALSE(derive_clipped(counter.count(std::vector<float>{1, 2}), {0.5, 6}, {}, result));
    CHECK_FALSE(derive_clipped(counter.count(std::vector<float>{1, 2}), {std::nan(""), 6}, {}, result));
}

TEST_CASE("derived multiplication by a power of two is what counting gives") {
    std::size_t derived = 0;
    for (const CounterSettings& settings : all_settings()) {
        for (const std::vector<float>& elements : tensors()) {
            for (const int power : {-126, -20, -3, -1, 0, 1, 4, 60}) {
                CAPTURE(elements.size());
                CAPTURE(power);
                CAPTURE(settings.mask_below.value_or(0));
                std::vector<float> scaled = elements;
                for (float& element : scaled) {
                    // Denormals are zeros from the first node to the last.
                    if (std::fabs(element) < least_normal) element = 0;
                    element = static_cast<float>(std::ldexp(element, power));
                }
                derived +=
                    check_against_count(settings, elements, scaled, [&](const auto& source, auto& result) {
                        return derive_scaled(source, power, settings, scaled, result);
                    });
            }
        }
    }
    CHECK(derived > 200);
}

TEST_CASE("multiplication is not derived where an element becomes zero or a mask, or is one") {
    Counter counter;
    TensorStatistics result;
    const auto derives = [&](float element, int power) {
        const std::vector<float> scaled = {static_cast<float>(std::ldexp(element, power)), 0.5F};
        return derive_scaled(counter.count(std::vector<float>{element, 0.5F}), power, {}, scaled, result);
    };
    CHECK(derives(2 * least_normal, -1));
    CHECK_FALSE(derives(least_normal, -1));
    CHECK(derives(1e29F, 3));
    CHECK_FALSE(derives(1e29F, 4));
    CHECK_FALSE(derives(infinity, 1));
    CHECK_FALSE(derives(-2e30F, -10));
}

TEST_CASE("derived repetition and joining are what counting gives") {
    const std::vector<std::vector<float>> all = tensors();
    for (std::size_t i = 0; i < all.size(); ++i) {
        CAPTURE(i);
        for (const std::uint64_t times : {0, 1, 3}) {
            std::vector<float> repeated;
            for (std::uint64_t k = 0; k < times; ++k)
                repeated.insert(repeated.end(), all[i].begin(), all[i].end());
            CHECK(check_against_count({}, all[i], repeated, [&](const auto& source, auto& result) {
                return derive_repeated(source, times, result);
            }));
        }
        const std::vector<float>& other = all[(i * 7 + 3) % all.size()];
        std::vector<float> joined = all[i];
        joined.insert(joined.end(), other.begin(), other.end());
        joined.insert(joined.end(), all[i].begin(), all[i].end());
        Counter counter;
        const TensorStatistics of_other = counter.count(other);
        CHECK(check_against_count({}, all[i], joined, [&](const auto& source, auto& result) {
            const std::vector<const TensorStatistics*> sources = {&source, &of_other, &source};
            return derive_joined(sources, result);
        }));
    }
}
