#include "encoding/encoding_file.h"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace qcalib;

namespace {

FileEntry entry_of(std::string tensor, std::size_t encodings, std::optional<int> axis, std::size_t line = 0) {
    FileEntry entry;
    entry.encoding.tensor = std::move(tensor);
    entry.encoding.encodings.resize(encodings);
    entry.encoding.axis = axis;
    entry.line = line;
    return entry;
}

std::string fault_of(FileEntry entry, const Shape& shape) {
    EncodingFile file;
    file.path = "e.json";
    file.entries.push_back(std::move(entry));
    const std::vector<EntryFault> faults = check_shapes(
        file, [&](const std::string& name) { return name == "w" ? std::optional(shape) : std::nullopt; });
    return faults.empty() ? "" : describe(file.path, faults.front());
}

}  // namespace

TEST_CASE("a count of channels that does not fit the tensor is a fault, named with file, line and tensor") {
    CHECK(fault_of(entry_of("w", 3, 0, 7), {3, 64, 3, 3}).empty());
    CHECK(fault_of(entry_of("w", 1, 0, 7), {64, 3, 3, 3}).empty());
    CHECK(fault_of(entry_of("other", 5, 0, 7), {64, 3, 3, 3}).empty());
    CHECK(fault_of(entry_of("w", 1, {}, 7), {64, 3, 3, 3}).empty());
    CHECK(fault_of(entry_of("w", 5, 0, 7), {64, 3, 3, 3}) ==
          "e.json:7: 'w': expected 64 encodings, one a channel (axis 0 of [64,3,3,3]), found 5");
    CHECK(fault_of(entry_of("w", 3, 0), {64, 3, 3, 3}) ==
          "e.json: 'w': expected 64 encodings, one a channel (axis 0 of [64,3,3,3]), found 3; the channels "
          "of axis 1 "
          "are as many");
    CHECK(fault_of(entry_of("w", 3, 4), {64, 3, 3, 3}) ==
          "e.json: 'w': expected an axis below 4 for the shape [64,3,3,3], found 4");
    CHECK(fault_of(entry_of("w", 3, -1), {64, 3}).empty());
    CHECK(fault_of(entry_of("w", 3, -2), {64, 3}) ==
          "e.json: 'w': expected 64 encodings, one a channel (axis -2 of [64,3]), found 3");
    CHECK(fault_of(entry_of("w", 3, -3), {64, 3}) ==
          "e.json: 'w': expected an axis below 2 for the shape [64,3], found -3");
}

TEST_CASE("blocks must divide their axis and be as many as channels and blocks") {
    const auto blocks = [](std::size_t encodings, std::int64_t size, int block_axis = 1) {
        FileEntry entry = entry_of("w", encodings, 0);
        entry.encoding.block_axis = block_axis;
        entry.encoding.block_size = size;
        return entry;
    };
    CHECK(fault_of(blocks(8, 16), {4, 32}).empty());
    CHECK(fault_of(blocks(8, 5), {4, 32}) ==
          "e.json: 'w': expected a block size that divides 32 (axis 1 of [4,32]), found 5");
    CHECK(fault_of(blocks(8, 0), {4, 32}) ==
          "e.json: 'w': expected a block size that divides 32 (axis 1 of [4,32]), found 0");
    CHECK(
        fault_of(blocks(9, 16), {4, 32}) ==
        "e.json: 'w': expected 8 encodings, one a channel and block of 16 (axes 0 and 1 of [4,32]), found 9");
    CHECK(fault_of(blocks(8, 16, 2), {4, 32}) ==
          "e.json: 'w': expected an axis below 2 for the shape [4,32], found 2");
}

TEST_CASE("a file becomes a set with its origin, and a set a file") {
    EncodingFile file;
    file.path = "dir/e.json";
    file.entries = {entry_of("x", 1, {}, 3), entry_of("w", 1, {}, 4), entry_of("y", 1, {})};
    file.entries[0].section = Section::activation;
    file.entries[1].section = Section::parameter;
    EncodingSet set = encoding_set(file);
    REQUIRE(set.activations.size() == 2);
    REQUIRE(set.parameters.size() == 1);
    CHECK(set.activations[0].origin == "dir/e.json:3");
    CHECK(set.activations[1].origin == "dir/e.json");
    CHECK(set.parameters[0].tensor == "w");
    set = encoding_set(file, [](const std::string& name) { return name == "y"; });
    CHECK(set.parameters.size() == 2);
    const EncodingFile again = encoding_file(set);
    REQUIRE(again.entries.size() == 3);
    CHECK(again.entries[0].section == Section::activation);
    CHECK(again.entries[2].section == Section::parameter);
    CHECK(again.entries[1].encoding == set.parameters[0]);
}
