// What counting a tensor costs, by distribution and size, beside two plain passes over the same elements.
// Built (target statistics_bench) and run by hand:
//   statistics_bench [--isa sse4|avx2|avx512] [--only DISTRIBUTION] [elements...]
// Columns: nanoseconds an element of a full count; of a count of extremes alone; of a plain histogram
// (extremes, then 4,096 equal bins in one table, as numpy does it) and of a plain min/max pass; the ratios of
// ours to these; and the microseconds a tensor of merging its statistics and of its row entry. Each is the
// least of many runs.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hwy/targets.h>

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
        {"constant", [](Random&) { return 1.25; }},
        {"near-constant", [](Random& random) { return random.below(4096) == 0 ? 2.0 : 1.0; }},
        {"picture", [](Random& random) { return static_cast<double>(random.below(256)) / 128 - 1.1; }},
        {"wide", [](Random& random) { return std::exp(25 * normal(random)); }},
        {"half-masked", [](Random& random) { return random.below(2) == 0 ? -3.4e38 : normal(random); }},
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

struct Extremes {
    float least = 0;
    float greatest = 0;
};

// Eight at a time, which compilers turn into vector instructions of the baseline.
Extremes plain_extremes(std::span<const float> values) {
    std::array<float, 8> least = {};
    std::array<float, 8> greatest = {};
    least.fill(values.front());
    greatest.fill(values.front());
    std::size_t i = 0;
    for (; i + 8 <= values.size(); i += 8) {
        for (std::size_t k = 0; k < 8; ++k) {
            least[k] = values[i + k] < least[k] ? values[i + k] : least[k];
            greatest[k] = values[i + k] > greatest[k] ? values[i + k] : greatest[k];
        }
    }
    Extremes extremes{*std::min_element(least.begin(), least.end()),
                      *std::max_element(greatest.begin(), greatest.end())};
    for (; i < values.size(); ++i) {
        extremes.least = std::min(extremes.least, values[i]);
        extremes.greatest = std::max(extremes.greatest, values[i]);
    }
    return extremes;
}

void plain_histogram(std::span<const float> values, std::vector<std::uint64_t>& counts) {
    const Extremes extremes = plain_extremes(values);
    const float width = extremes.greatest - extremes.least;
    const float scale = width > 0 ? 4096 / width : 0;
    for (const float value : values) {
        const float place = (value - extremes.least) * scale;
        ++counts[static_cast<std::size_t>(std::min(std::max(place, 0.0F), 4095.0F))];
    }
}

void measure(const Distribution& distribution, std::size_t size) {
    Random random(1);
    std::vector<float> values(size);
    for (float& value : values) value = static_cast<float>(distribution.draw(random));
    Counter counter;
    Counter extremes({.mask_below = {}, .extremes_only = true});
    qcalib::TensorStatistics total;
    std::vector<std::uint64_t> plain(4096);
    float sum = 0;
    const double counting = nanoseconds([&] { counter.count(values); });
    const double scanning = nanoseconds([&] { extremes.count(values); });
    const double histogram = nanoseconds([&] { plain_histogram(values, plain); });
    const double pass = nanoseconds([&] { sum += plain_extremes(values).greatest; });
    const qcalib::TensorStatistics sample = counter.count(values);
    const double merging = nanoseconds([&] { total.merge(sample); });
    const double summarizing = nanoseconds([&] { sum += qcalib::summarize(sample).high_tail; });
    const auto elements = static_cast<double>(size);
    std::printf(
        "%-14s %8zu  count %6.3f  extremes %6.3f  plain histogram %6.3f (%5.2f)  plain min/max %6.3f (%5.2f) "
        " "
        "merge %6.2f us  row %6.2f us%s\n",
        distribution.name.c_str(), size, counting / elements, scanning / elements, histogram / elements,
        counting / histogram, pass / elements, scanning / pass, merging / 1000, summarizing / 1000,
        std::isnan(sum) ? " " : "");
    std::fflush(stdout);
}

bool hold_to(std::string_view isa) {
    if (isa == "avx2") hwy::DisableTargets(HWY_AVX2 - 1);
    if (isa == "sse4") hwy::DisableTargets(HWY_SSE4 - 1);
    return isa == "avx512" || isa == "avx2" || isa == "sse4";
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<std::size_t> sizes;
    std::string only;
    const std::span<char*> given(arguments, static_cast<std::size_t>(count));
    for (std::size_t i = 1; i < given.size(); ++i) {
        const std::string_view text = given[i];
        const std::string_view value = i + 1 < given.size() ? given[i + 1] : "";
        if (text == "--isa" && hold_to(value)) {
            ++i;
        } else if (text == "--only" && !value.empty()) {
            only = given[++i];
        } else if (const std::size_t size = std::strtoull(given[i], nullptr, 10); size > 0) {
            sizes.push_back(size);
        } else {
            std::fprintf(stderr,
                         "statistics_bench: expected --isa, --only or a number of elements, found %s\n",
                         given[i]);
            return 2;
        }
    }
    if (sizes.empty()) sizes = {64, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
    for (const Distribution& distribution : distributions()) {
        if (!only.empty() && distribution.name != only) continue;
        for (const std::size_t size : sizes) measure(distribution, size);
    }
    return 0;
}
