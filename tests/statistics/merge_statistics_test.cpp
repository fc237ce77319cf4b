#include <doctest/doctest.h>

#include "base/error.h"
#include "statistics/fixtures.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using Paths = std::vector<std::filesystem::path>;

// Writes the shards of a run over `selected` samples.
Paths write_shards(const TemporaryFolder& folder, std::uint64_t selected, std::uint32_t shards,
                   const std::set<std::uint64_t>& skip = {}) {
    Paths paths;
    for (std::uint32_t shard = 1; shard <= shards; ++shard) {
        paths.push_back(folder / (std::to_string(shard) + "of" + std::to_string(shards) + ".qstats"));
        write_example(paths.back(), example_header(selected, shard, shards), skip);
    }
    return paths;
}

std::string merge_error(const TemporaryFolder& folder, const Paths& paths) {
    const std::size_t files = files_in(folder);
    std::string message;
    try {
        merge_statistics(paths, folder / "out.qstats");
    } catch (const Error& error) {
        message = error.what();
    }
    CHECK(files_in(folder) == files);  // nothing is left behind
    return message;
}

}  // namespace

TEST_CASE("merged shards are byte for byte the file of the unsharded run, in any order") {
    const TemporaryFolder folder;
    Random random(31);
    for (const std::uint64_t selected : {1, 2, 17, 40}) {
        const std::set<std::uint64_t> skip = {0, 5, 6, 38};
        std::set<std::uint64_t> met;
        for (const std::uint64_t number : skip) {
            if (number < selected) met.insert(number);
        }
        write_example(folder / "whole.qstats", example_header(selected), met);
        const std::string expected = read_text_file(folder / "whole.qstats");
        for (const std::uint32_t shards : {1, 2, 3, 7}) {
            CAPTURE(selected);
            CAPTURE(shards);
            Paths paths = write_shards(folder, selected, shards, met);
            for (int order = 0; order < 4; ++order) {
                shuffle(std::span(paths), random);
                merge_statistics(paths, folder / "merged.qstats");
                CHECK(read_text_file(folder / "merged.qstats") == expected);
            }
        }
    }
}

TEST_CASE("shards of extremes merge too, and the output may take the place of a shard") {
    const TemporaryFolder folder;
    StatisticsHeader header = example_header(9);
    header.counter = {.mask_below = -2, .extremes_only = true};
    write_example(folder / "whole.qstats", header);
    Paths paths;
    for (header.shards = 2, header.shard = 1; header.shard <= 2; ++header.shard) {
        paths.push_back(folder / std::to_string(header.shard));
        write_example(paths.back(), header);
    }
    merge_statistics(paths, paths[1]);
    CHECK(read_text_file(paths[1]) == read_text_file(folder / "whole.qstats"));
}

TEST_CASE("a shard given twice is an overlap that names both files and a sample") {
    const TemporaryFolder folder;
    const Paths paths = write_shards(folder, 10, 3);
    std::filesystem::copy_file(paths[1], folder / "copy.qstats");
    CHECK(merge_error(folder, {paths[0], paths[1], paths[2], folder / "copy.qstats"}) ==
          (folder / "copy.qstats").string() + ": overlaps " + paths[1].string() +
              ": both are shard 2/3 and have sample 1");
    const Paths empty = write_shards(folder, 1, 2);
    CHECK(merge_error(folder, {empty[1], empty[1], empty[0]}) ==
          empty[1].string() + ": overlaps " + empty[1].string() + ": both are shard 2/2");
}

TEST_CASE("missing shards are named") {
    const TemporaryFolder folder;
    const Paths paths = write_shards(folder, 10, 4);
    CHECK(merge_error(folder, {paths[3], paths[0], paths[1]}) ==
          paths[0].string() + ": is shard 1/4, and of the other shards 3/4 is missing");
    CHECK(merge_error(folder, {paths[2]}) ==
          paths[2].string() + ": is shard 3/4, and of the other shards 1/4, 2/4, 4/4 are missing");
    write_example(folder / "far.qstats", example_header(1, 1, 4000000000U));
    CHECK(merge_error(folder, {folder / "far.qstats"}).ends_with(" and 3999999991 more are missing"));
    CHECK(merge_error(folder, {}) == "merge: expected the .qstats files of all shards of a run, found none");
}

TEST_CASE("a shard of another run is refused with what differs") {
    const TemporaryFolder folder;
    const Paths paths = write_shards(folder, 10, 2);
    const auto error_with = [&](auto change) {
        StatisticsHeader header = example_header(10, 2, 2);
        change(header);
        write_example(folder / "foreign.qstats", header);
        const std::string message = merge_error(folder, {paths[0], folder / "foreign.qstats"});
        const std::string start =
            (folder / "foreign.qstats").string() + ": is not of the same run as " + paths[0].string() + ": ";
        return message.starts_with(start) ? message.substr(start.size()) : message;
    };
    CHECK(error_with([](StatisticsHeader& header) { header.model_hash = "00ff"; }) ==
          "the model hash is 00ff, expected " + example_header(1).model_hash);
    CHECK(error_with([](StatisticsHeader& header) { header.settings = "shape x=1,3,8,8\nmultiply 1\n"; }) ==
          "a line of the settings is 'multiply 1', expected 'multiply 0.00392157'");
    CHECK(error_with([](StatisticsHeader& header) {
              header.settings = "shape x=1,3,8,8\nmultiply 0.00392157\nlimit 3\n";
          }) == "a line of the settings is 'limit 3', expected ''");
    CHECK(error_with([](StatisticsHeader& header) { header.instruction_set = "avx2"; }) ==
          "the instruction set is avx2, expected avx512");
    CHECK(error_with([](StatisticsHeader& header) { header.counter.extremes_only = true; }) ==
          "the kind of statistics is extremes, masks below nothing, expected full, masks below nothing");
    CHECK(error_with([](StatisticsHeader& header) { header.selected = 11; }) ==
          "the number of samples is 11, expected 10");
    CHECK(error_with([](StatisticsHeader& header) { header.shards = 3; }) ==
          "the number of shards is 3, expected 2");
    CHECK(error_with([](StatisticsHeader& header) { header.tensors[2].name = "other"; }) ==
          "tensor 2 is 'other', expected 'odd\\xff\\x00name'");
    CHECK(error_with([](StatisticsHeader& header) {
              header.tensors.push_back({"more", true});
          }) == "the number of tensors is 4, expected 3");
}

TEST_CASE("shards whose constants differ are not of one run") {
    const TemporaryFolder folder;
    const Paths paths = write_shards(folder, 2, 2);
    const StatisticsHeader header = example_header(2, 2, 2);
    StatisticsSet set(3);
    Counter counter;
    set.merge(1, counter.count(std::vector<float>{1.0F}));
    StatisticsWriter(folder / "other.qstats", header).finish(set, std::vector<std::uint64_t>{1});
    CHECK(merge_error(folder, {paths[0], folder / "other.qstats"}) ==
          (folder / "other.qstats").string() + ": is not of the same run as " + paths[0].string() +
              ": constant 'weight' has other values");
}

TEST_CASE("a truncated shard is refused by name") {
    const TemporaryFolder folder;
    const Paths paths = write_shards(folder, 10, 2);
    std::filesystem::resize_file(paths[1], std::filesystem::file_size(paths[1]) - 100);
    const std::string message = merge_error(folder, paths);
    CHECK(message.starts_with(paths[1].string() + ": truncated"));
}
