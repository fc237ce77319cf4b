#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "statistics/header_difference.h"
#include "statistics/statistics_reader.h"
#include "statistics/statistics_writer.h"

namespace qcalib {

namespace {

using Shards = std::vector<std::unique_ptr<StatisticsReader>>;

std::string shown(const StatisticsReader& shard) {
    return printable(shard.path().string());
}

void check_same_run(const StatisticsReader& first, const StatisticsReader& other) {
    const auto difference = difference_of_runs(first.header(), other.header());
    if (!difference) return;
    fail("{}: is not of the same run as {}: {} is {}, expected {}", shown(other), shown(first),
         difference->what, difference->found, difference->expected);
}

// Expects the shards in the order of their numbers.
void check_complete(const Shards& shards) {
    const std::uint32_t expected = shards.front()->header().shards;
    for (std::size_t i = 1; i < shards.size(); ++i) {
        const StatisticsHeader& header = shards[i]->header();
        if (header.shard != shards[i - 1]->header().shard) continue;
        fail("{}: overlaps {}: both are shard {}/{}{}", shown(*shards[i]), shown(*shards[i - 1]),
             header.shard, expected,
             header.selected >= header.shard ? fmt::format(" and have sample {}", header.shard - 1) : "");
    }
    if (shards.size() == expected) return;
    constexpr std::size_t named = 8;
    std::vector<std::string> missing;
    std::size_t given = 0;
    for (std::uint32_t number = 1; number <= expected && missing.size() < named; ++number) {
        if (given < shards.size() && shards[given]->header().shard == number) {
            ++given;
        } else {
            missing.push_back(fmt::format("{}/{}", number, expected));
        }
    }
    const std::size_t total = expected - shards.size();
    fail("{}: is shard {}/{}, and of the other shards {}{} missing", shown(*shards.front()),
         shards.front()->header().shard, expected, join(missing, ", "),
         total > missing.size() ? fmt::format(" and {} more are", total - missing.size())
         : total == 1           ? " is"
                                : " are");
}

Shards open_shards(std::span<const std::filesystem::path> paths) {
    Shards shards;
    for (const std::filesystem::path& path : paths) {
        shards.push_back(std::make_unique<StatisticsReader>(path));
        check_same_run(*shards.front(), *shards.back());
    }
    std::stable_sort(shards.begin(), shards.end(),
                     [](const auto& a, const auto& b) { return a->header().shard < b->header().shard; });
    check_complete(shards);
    return shards;
}

void merge_rows(const Shards& shards, RecordWriter& writer) {
    struct Next {
        std::uint64_t number = 0;
        std::size_t shard = 0;
        std::size_t row = 0;
        bool operator>(const Next& other) const { return number > other.number; }
    };
    std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
    const auto push = [&](std::size_t shard, std::size_t row) {
        if (row < shards[shard]->rows()) queue.push({shards[shard]->row_number(row), shard, row});
    };
    for (std::size_t shard = 0; shard < shards.size(); ++shard) push(shard, 0);
    while (!queue.empty()) {
        const Next next = queue.top();
        queue.pop();
        writer.add_encoded_row(shards[next.shard]->encoded_row(next.row));
        push(next.shard, next.row + 1);
    }
}

TensorStatistics merge_tensor(const Shards& shards, std::size_t tensor) {
    const TensorInfo& info = shards.front()->header().tensors[tensor];
    TensorStatistics merged = shards.front()->tensor(tensor);
    for (std::size_t i = 1; i < shards.size(); ++i) {
        const TensorStatistics part = shards[i]->tensor(tensor);
        if (!info.constant) {
            merged.merge(part);
        } else if (!(part == merged)) {
            fail("{}: is not of the same run as {}: constant '{}' has other values", shown(*shards[i]),
                 shown(*shards.front()), printable(info.name));
        }
    }
    return merged;
}

}  // namespace

void merge_statistics(std::span<const std::filesystem::path> shards, const std::filesystem::path& output) {
    if (shards.empty()) fail("merge: expected the .qstats files of all shards of a run, found none");
    const Shards opened = open_shards(shards);
    StatisticsHeader header = opened.front()->header();
    header.shard = 1;
    header.shards = 1;
    RecordWriter writer(output, header);
    merge_rows(opened, writer);
    for (std::size_t tensor = 0; tensor < header.tensors.size(); ++tensor)
        writer.add_tensor(merge_tensor(opened, tensor));
    std::vector<std::uint64_t> skipped;
    for (const auto& shard : opened)
        skipped.insert(skipped.end(), shard->skipped().begin(), shard->skipped().end());
    std::sort(skipped.begin(), skipped.end());
    writer.finish(skipped);
}

}  // namespace qcalib
