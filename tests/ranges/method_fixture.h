#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ranges/range_method.h"
#include "statistics/fixtures.h"

namespace qcalib::test {

// A file with one activation "x", whose samples have these elements, and one constant "c".
inline void write_samples(const std::filesystem::path& path, const std::vector<std::vector<float>>& samples,
                          const std::vector<float>& constant = {-2.0F, 5.0F}) {
    StatisticsHeader header;
    header.selected = samples.size();
    header.tensors = {{"x", false}, {"c", true}};
    StatisticsWriter writer(path, header);
    StatisticsSet set(2);
    Counter counter;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const TensorStatistics& found = counter.count(samples[i]);
        set.merge(0, found);
        writer.add_row({i, {summarize(found)}});
    }
    set.merge(1, counter.count(constant));
    writer.finish(set, {});
}

inline std::optional<Range> choose(const std::filesystem::path& path, const std::string& method,
                                   std::size_t tensor = 0, const GridRules& grid = {}) {
    const StatisticsFile file(path);
    return parse_method(method).choose(TensorSamples(file, tensor), grid);
}

// Of values that are one sample.
inline std::optional<Range> choose(const std::vector<float>& values, const std::string& method,
                                   const GridRules& grid = {}) {
    const TemporaryFolder folder;
    write_samples(folder / "a.qstats", {values});
    return choose(folder / "a.qstats", method, 0, grid);
}

inline TensorStatistics counted(const std::vector<std::vector<float>>& samples) {
    Counter counter;
    TensorStatistics all;
    for (const std::vector<float>& sample : samples) all.merge(counter.count(sample));
    return all;
}

inline GridRules grid_rules(int bits, Scheme scheme = Scheme::asymmetric, bool power_of_two = false) {
    GridRules rules;
    rules.bits = bits;
    rules.scheme = scheme;
    rules.power_of_two = power_of_two;
    return rules;
}

inline const std::vector<std::string>& method_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const RangeMethod* method : range_methods()) all.push_back(method->name());
        return all;
    }();
    return names;
}

// Every scheme, narrow and wide, with any step and with a power of two.
inline const std::vector<GridRules>& grids() {
    static const std::vector<GridRules> all = [] {
        std::vector<GridRules> rules;
        for (const Scheme scheme : {Scheme::asymmetric, Scheme::symmetric, Scheme::unsigned_symmetric}) {
            for (const bool power_of_two : {false, true}) {
                for (const int bits : {2, 4, 8, 16}) rules.push_back(grid_rules(bits, scheme, power_of_two));
            }
        }
        GridRules without_zero;
        without_zero.include_zero = false;
        rules.push_back(without_zero);
        return rules;
    }();
    return all;
}

// The squared error that a grid makes of values, value by value: no histogram.
inline double exact_error(const std::vector<std::vector<float>>& samples, const Grid& grid,
                          double clipped = 1) {
    double sum = 0;
    for (const std::vector<float>& sample : samples) {
        for (const float value : sample) {
            const double code =
                std::clamp<double>(std::round(value / grid.step), static_cast<double>(grid.offset),
                                   static_cast<double>(grid.offset + grid.codes));
            const double error = value - code * grid.step;
            const bool outside = value < static_cast<double>(grid.offset) * grid.step ||
                                 value > static_cast<double>(grid.offset + grid.codes) * grid.step;
            sum += (outside ? clipped : 1) * error * error;
        }
    }
    return sum;
}

}  // namespace qcalib::test
