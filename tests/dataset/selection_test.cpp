#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "dataset/sample_list.h"
#include "sample_files.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

std::vector<ListEntry> entries_up_to(std::size_t count) {
    std::vector<ListEntry> entries(count);
    for (std::size_t i = 0; i < count; ++i) entries[i].line = i + 1;
    return entries;
}

std::vector<std::size_t> lines_of(const SelectedSamples& samples) {
    std::vector<std::size_t> lines;
    for (const SelectedSample& sample : samples.samples) lines.push_back(sample.entries.front().line);
    return lines;
}

}  // namespace

TEST_CASE("Without options all samples are taken in the list's order and numbered from 0") {
    const SelectedSamples samples = select_samples(entries_up_to(3), {});
    CHECK(samples.selected == 3);
    CHECK(lines_of(samples) == std::vector<std::size_t>{1, 2, 3});
    CHECK(samples.samples[2].number == 2);
}

TEST_CASE("Shuffling permutes the list, the same way for the same seed on every machine") {
    Selection selection;
    selection.shuffle_seed = 1;
    const auto lines = lines_of(select_samples(entries_up_to(100), selection));
    CHECK(lines == lines_of(select_samples(entries_up_to(100), selection)));
    auto sorted = lines;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::size_t> all(100);
    std::iota(all.begin(), all.end(), std::size_t{1});
    CHECK(sorted == all);
    CHECK(std::vector(lines.begin(), lines.begin() + 6) == std::vector<std::size_t>{33, 43, 36, 29, 4, 87});
    selection.shuffle_seed = 2;
    CHECK(lines != lines_of(select_samples(entries_up_to(100), selection)));
}

TEST_CASE("The limit takes the first samples after shuffling") {
    Selection selection;
    selection.shuffle_seed = 7;
    const auto all = lines_of(select_samples(entries_up_to(20), selection));
    selection.limit = 5;
    const SelectedSamples samples = select_samples(entries_up_to(20), selection);
    CHECK(samples.selected == 5);
    CHECK(lines_of(samples) == std::vector(all.begin(), all.begin() + 5));
    selection.limit = 50;
    CHECK(select_samples(entries_up_to(20), selection).selected == 20);
}

TEST_CASE("Shards partition the selection: sample k belongs to shard k mod n + 1") {
    Selection selection;
    selection.shuffle_seed = 3;
    selection.limit = 11;
    const auto whole = select_samples(entries_up_to(30), selection);
    for (const std::uint32_t shards : {1U, 2U, 3U, 7U, 12U}) {
        std::vector<std::size_t> seen(11, 0);
        for (std::uint32_t shard = 1; shard <= shards; ++shard) {
            selection.shard = shard;
            selection.shards = shards;
            const auto part = select_samples(entries_up_to(30), selection);
            CHECK(part.selected == 11);
            for (const SelectedSample& sample : part.samples) {
                CHECK(sample.number % shards + 1 == shard);
                CHECK(sample.entries.front().line == whole.samples[sample.number].entries.front().line);
                ++seen[sample.number];
            }
        }
        CHECK(std::all_of(seen.begin(), seen.end(), [](std::size_t count) { return count == 1; }));
    }
}

TEST_CASE("--shard takes i/n") {
    Selection selection;
    parse_shard("2/3", selection);
    CHECK(selection.shard == 2);
    CHECK(selection.shards == 3);
    const auto error = [&](const std::string& text) {
        return error_of([&] { parse_shard(text, selection); });
    };
    for (const char* text : {"0/3", "4/3", "-1/3", "1/0", "3", "1/2/3", "", "1/5000000000"}) {
        CHECK(error(text) ==
              "--shard: expected i/n with whole numbers and 1 <= i <= n, found '" + std::string(text) + "'");
    }
    CHECK(error("a/3") == "--shard a/3: expected a whole number, found 'a'");
    CHECK(selection.shard == 2);
    CHECK(selection.shards == 3);
}
