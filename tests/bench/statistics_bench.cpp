// Nanoseconds that counting, merging and summarising cost, by distribution and size. Built and run by hand:
//   statistics_bench [elements...]
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "statistics/counter.h"

namespace {

using qcalib::Counter;
using qcalib::Random;

double normal(Random& random) {
    const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
    return radius * std::cos(6.283185307179586 * random.unit());
}

struct Distribution {
    std::string name;
    std::function<double(Random&)> draw;
};

const std::vector<Distribution>& distributions() {
    static const std::vector<Distribution> all = {
        {"normal", normal},
        {"relu", [](Random& random) { return std::max(0.0, normal(random)); }},
        {"relu6", [](Random& random) { return std::min(6.0, std::max(0.0, 6 * normal(random))); }},
        {"uniform", [](Random& random) { return random.unit(); }},
        {"picture", [](Random& random) { return static_cast<double>(random.below(256)) / 128 - 1.1; }},
        {"near constant", [](Random& random) { return random.below(4096) == 0 ? 2.0 : 1.0; }},
        {"constant", [](Random&) { return 1.25; }},
        {"wide spread", [](Random& random) { return std::exp(25 * normal(random)); }},
        {"half masked", [](Random& random) { return random.below(2) == 0 ? -3.4e38 : normal(random); }},
    };
    return all;
}

// The least time of one call, of as many as fit into a fifth of a second.
double nanoseconds(const std::function<void()>& call) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    double least = 1e300;
    std::size_t repeats = 1;
    while (Clock::now() - begin < std::chrono::milliseconds(200)) {
        const Clock::time_point start = Clock::now();
        for (std::size_t i = 0; i < repeats; ++i) call();
        const double spent = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
        least = std::min(least, spent / static_cast<double>(repeats));
        if (spent < 20000) repeats *= 2;
    }
    return least;
}

void measure(const Distribution& distribution, std::size_t size) {
    Random random(1);
    std::vector<float> values(size);
    for (float& value : values) value = static_cast<float>(distribution.draw(random));
    Counter counter;
    Counter extremes({.mask_below = {}, .extremes_only = true});
    qcalib::TensorStatistics total;
    const double counting = nanoseconds([&] { counter.count(values); });
    const double scanning = nanoseconds([&] { extremes.count(values); });
    const qcalib::TensorStatistics sample = counter.count(values);
    const double merging = nanoseconds([&] { total.merge(sample); });
    float sum = 0;
    const double summarizing = nanoseconds([&] { sum += qcalib::summarize(sample).high_tail; });
    const auto elements = static_cast<double>(size);
    std::printf(
        "%-14s %9zu  count %9.0f ns %6.3f ns/el   extremes %6.3f ns/el   merge %6.0f ns   summarize %6.0f "
        "ns%s\n",
        distribution.name.c_str(), size, counting, counting / elements, scanning / elements, merging,
        summarizing, std::isnan(sum) ? " " : "");
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<std::size_t> sizes;
    for (const char* text : std::span(arguments, static_cast<std::size_t>(count)).subspan(1)) {
        sizes.push_back(std::strtoull(text, nullptr, 10));
    }
    if (sizes.empty()) sizes = {16, 64, 512, 2048, 4096, 16384, 131072, 1048576, 8388608};
    for (const Distribution& distribution : distributions()) {
        for (const std::size_t size : sizes) measure(distribution, size);
    }
    return 0;
}
