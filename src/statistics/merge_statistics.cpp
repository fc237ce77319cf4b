#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "statistics/statistics_reader.h"
#include "statistics/statistics_writer.h"

namespace qcalib {

namespace {

using Shards = std::vector<std::unique_ptr<StatisticsReader>>;

std::string shown(const StatisticsReader& shard) {
    return printable(shard.path().string());
}

// The first line in which two texts differ, of each.
std::pair<std::string, std::string> differing_lines(const std::string& a, const std::string& b) {
    const std::vector<std::string> lines_a = split(a, '\n');
    const std::vector<std::string> lines_b = split(b, '\n');
    const auto line = [](const std::vector<std::string>& lines, std::size_t i) {
        return i < lines.size() ? fmt::format("'{}'", printable(lines[i])) : std::string("nothing");
    };
    std::size_t i = 0;
    while (i < lines_a.size() && i < lines_b.size() && lines_a[i] == lines_b[i]) ++i;
    return {line(lines_a, i), line(lines_b, i)};
}

[[noreturn]] void refuse_foreign(const StatisticsReader& first, const StatisticsReader& other,
                                 std::string_view what, const std::string& of_first,
                                 const std::string& of_other) {
    fail("{}: is not of the same run as {}: {} is {}, expected {}", shown(other), shown(first), what,
         of_other, of_first);
}

std::string describe(const CounterSettings& counter) {
    return fmt::format("{}, masks below {}", counter.extremes_only ? "extremes" : "full",
                       counter.mask_below ? fmt::format("{}", *counter.mask_below) : "nothing");
}

void check_same_tensors(const StatisticsReader& first, const StatisticsReader& other) {
    const std::vector<TensorInfo>& expected = first.header().tensors;
    const std::vector<TensorInfo>& found = other.header().tensors;
    if (expected.size() != found.size()) {
        refuse_foreign(first, other, "the number of tensors", fmt::format("{}", expected.size()),
                       fmt::format("{}", found.size()));
    }
    const auto describe_tensor = [](const TensorInfo& tensor) {
        return fmt::format("'{}'{}", printable(tensor.name), tensor.constant ? ", a constant" : "");
    };
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i] == found[i]) continue;
        refuse_foreign(first, other, fmt::format("tensor {}", i), describe_tensor(expected[i]),
                       describe_tensor(found[i]));
    }
}

void check_same_run(const StatisticsReader& first, const StatisticsReader& other) {
    const StatisticsHeader& a = first.header();
    const StatisticsHeader& b = other.header();
    if (a.model_hash != b.model_hash)
        refuse_foreign(first, other, "the model hash", printable(a.model_hash), printable(b.model_hash));
    if (a.settings != b.settings) {
        const auto [of_first, of_other] = differing_lines(a.settings, b.settings);
        refuse_foreign(first, other, "a line of the settings", of_first, of_other);
    }
    if (a.instruction_set != b.instruction_set) {
        refuse_foreign(first, other, "the instruction set", printable(a.instruction_set),
                       printable(b.instruction_set));
    }
    if (!(a.counter == b.counter))
        refuse_foreign(first, other, "the kind of statistics", describe(a.counter), describe(b.counter));
    if (a.selected != b.selected) {
        refuse_foreign(first, other, "the number of samples", fmt::format("{}", a.selected),
                       fmt::format("{}", b.selected));
    }
    if (a.shards != b.shards) {
        refuse_foreign(first, other, "the number of shards", fmt::format("{}", a.shards),
                       fmt::format("{}", b.shards));
    }
    check_same_tensors(first, other);
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
