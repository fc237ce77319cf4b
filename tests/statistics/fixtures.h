#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "statistics/counter.h"
#include "statistics/statistics_file.h"
#include "support/temporary_folder.h"

namespace qcalib::test {

inline std::size_t files_in(const TemporaryFolder& folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

// Box and Muller, "A note on the generation of random normal deviates", 1958.
inline double normal(Random& random) {
    const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
    return radius * std::cos(6.283185307179586 * random.unit());
}

struct Distribution {
    std::string name;
    std::function<float(Random&)> draw;
};

inline const std::vector<Distribution>& distributions() {
    const auto signed_power = [](Random& random, double least, double most) {
        const double magnitude = std::pow(10.0, least + (most - least) * random.unit());
        return static_cast<float>(random.below(2) == 0 ? magnitude : -magnitude);
    };
    static const std::vector<Distribution> all = {
        {"normal", [](Random& random) { return static_cast<float>(normal(random)); }},
        {"relu", [](Random& random) { return static_cast<float>(std::max(0.0, normal(random))); }},
        {"uniform", [](Random& random) { return static_cast<float>(random.unit()); }},
        {"negative", [](Random& random) { return static_cast<float>(-1 - random.unit()); }},
        {"constant", [](Random&) { return -0.37F; }},
        {"near constant", [](Random& random) { return random.below(500) == 0 ? 3.0F : 1.0F; }},
        {"tiny", [=](Random& random) { return signed_power(random, -46, -36); }},
        {"eleven decades", [=](Random& random) { return signed_power(random, -7, 4); }},
        {"everything", [=](Random& random) { return signed_power(random, -46, 38); }},
        {"any bits",
         [](Random& random) {
             return std::bit_cast<float>(static_cast<std::uint32_t>(random.next() >> 32));
         }},
        {"masked",
         [](Random& random) { return random.below(2) == 0 ? -3.4e38F : static_cast<float>(normal(random)); }},
    };
    return all;
}

inline std::vector<float> draw(const Distribution& distribution, std::size_t size, Random& random) {
    std::vector<float> values(size);
    std::generate(values.begin(), values.end(), [&] { return distribution.draw(random); });
    return values;
}

inline const Distribution& distribution(const std::string& name) {
    return *std::find_if(distributions().begin(), distributions().end(),
                         [&](const Distribution& candidate) { return candidate.name == name; });
}

inline StatisticsHeader example_header(std::uint64_t selected, std::uint32_t shard = 1,
                                       std::uint32_t shards = 1) {
    StatisticsHeader header;
    header.model_hash = "30a86f5731181461d08021402766601e4302a9b9b9666be8aff402696339cdff";
    header.settings = "shape x=1,3,8,8\nmultiply 0.00392157\n";
    header.instruction_set = "avx512";
    header.selected = selected;
    header.shard = shard;
    header.shards = shards;
    header.tensors = {{"image", false}, {"weight", true}, {std::string("odd\xff\0name", 9), false}};
    return header;
}

// The elements of one tensor of example_header in one sample, the same each time they are asked for.
inline std::vector<float> example_elements(std::size_t tensor, std::uint64_t sample) {
    static const std::vector<std::string> names = {"normal", "uniform", "eleven decades"};
    if (tensor == 2 && sample % 5 == 4)
        return {std::nanf(""), -std::numeric_limits<float>::infinity()};  // no data
    Random random(tensor == 1 ? 1 : 1000 * sample + tensor);
    return draw(distribution(names[tensor]), 60 + 7 * (sample % 3), random);
}

// Writes what a run of that header over example_elements gives; the samples in `skip` could not be read.
inline void write_example(const std::filesystem::path& path, const StatisticsHeader& header,
                          const std::set<std::uint64_t>& skip = {}) {
    StatisticsWriter writer(path, header);
    StatisticsSet set(header.tensors.size());
    Counter counter(header.counter);
    std::vector<std::uint64_t> skipped;
    set.merge(1, counter.count(example_elements(1, 0)));
    for (std::uint64_t sample = header.shard - 1; sample < header.selected; sample += header.shards) {
        if (skip.contains(sample)) {
            skipped.push_back(sample);
            continue;
        }
        Row row{sample, {}};
        for (const std::size_t tensor : {0, 2}) {
            const TensorStatistics& found = counter.count(example_elements(tensor, sample));
            set.merge(tensor, found);
            row.entries.push_back(summarize(found));
        }
        writer.add_row(row);
    }
    writer.finish(set, skipped);
}

}  // namespace qcalib::test
