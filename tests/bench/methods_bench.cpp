// What choosing a range costs: microseconds a tensor, by method, distribution and width. Built (target
// methods_bench) and run by hand:
//   methods_bench [METHOD...]          e.g. methods_bench mse entropy:clipped=1
// Each tensor has 2^20 elements in 64 samples. Columns: the least of many runs for asymmetric grids of 8
// bits, for symmetric ones of 8 bits, for asymmetric ones of 16 bits, and for asymmetric ones of 8 bits with
// a step that is a power of two.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "ranges/range_method.h"
#include "statistics/counter.h"
#include "statistics/statistics_file.h"

namespace {

using namespace qcalib;

constexpr std::size_t samples = 64;
constexpr std::size_t elements = 16384;

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
        {"uniform", [](Random& random) { return random.unit(); }},
        {"constant", [](Random&) { return 1.25; }},
        {"outliers", [](Random& random) { return normal(random) * (random.below(10000) == 0 ? 100 : 1); }},
        {"wide",
         [](Random& random) { return std::exp(6 * normal(random)) * (random.below(2) == 0 ? 1 : -1); }},
    };
    return all;
}

// A file with a tensor for each distribution.
void write_tensors(const std::filesystem::path& path) {
    StatisticsHeader header;
    header.selected = samples;
    for (const Distribution& distribution : distributions())
        header.tensors.push_back({distribution.name, false});
    StatisticsWriter writer(path, header);
    StatisticsSet set(header.tensors.size());
    Counter counter;
    Random random(1);
    std::vector<float> values(elements);
    for (std::size_t sample = 0; sample < samples; ++sample) {
        Row row{sample, {}};
        for (std::size_t tensor = 0; tensor < distributions().size(); ++tensor) {
            for (float& value : values) value = static_cast<float>(distributions()[tensor].draw(random));
            const TensorStatistics& found = counter.count(values);
            set.merge(tensor, found);
            row.entries.push_back(summarize(found));
        }
        writer.add_row(row);
    }
    writer.finish(set, {});
}

// The least time of one call, of as many as fit into a fifth of a second.
double microseconds(const std::function<void()>& call) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    double least = 1e300;
    while (Clock::now() - begin < std::chrono::milliseconds(200)) {
        const Clock::time_point start = Clock::now();
        call();
        least = std::min(least, std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    return least;
}

void measure(const MethodChoice& choice, const TensorSamples& tensor) {
    std::vector<GridRules> grids(4);
    grids[1].scheme = Scheme::symmetric;
    grids[2].bits = 16;
    grids[3].power_of_two = true;
    std::printf("%-24s %-10s", choice.method->name().c_str(), tensor.name().c_str());
    double sum = 0;
    for (const GridRules& grid : grids) {
        std::printf(" %10.2f", microseconds([&] { sum += choice.choose(tensor, grid)->max; }));
    }
    const Range range = *choice.choose(tensor, grids[0]);
    std::printf("   %.6g to %.6g%s\n", range.min, range.max, std::isnan(sum) ? " " : "");
    std::fflush(stdout);
}

void measure_all(const std::vector<std::string>& methods) {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("methods_bench." + std::to_string(std::random_device{}()));
    write_tensors(path);
    std::printf("%-24s %-10s %10s %10s %10s %10s\n", "microseconds a tensor", "", "8 asym", "8 sym",
                "16 asym", "8 pow2");
    {
        const StatisticsFile file(path);
        for (const std::string& text : methods) {
            const MethodChoice choice = parse_method(text);
            for (std::size_t i = 0; i < distributions().size(); ++i) measure(choice, TensorSamples(file, i));
        }
    }
    std::filesystem::remove(path);
}

}  // namespace

int main(int count, char** arguments) {
    const std::span<char*> given(arguments, static_cast<std::size_t>(count));
    std::vector<std::string> methods(given.begin() + 1, given.end());
    if (methods.empty()) {
        for (const RangeMethod* method : range_methods()) methods.push_back(method->name());
    }
    try {
        measure_all(methods);
    } catch (const Error& error) {
        std::fprintf(stderr, "methods_bench: %s\n", error.what());
        return 2;
    }
    return 0;
}
