#include <cstring>
#include <limits>

#include <doctest/doctest.h>

#include "base/digest.h"
#include "base/error.h"
#include "statistics/fixtures.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// The message of the Error that reading all of a file throws, or "" where it can be read.
std::string read_error(const std::filesystem::path& path) {
    try {
        const StatisticsFile file(path);
        for (std::size_t row = 0; row < file.rows(); ++row) static_cast<void>(file.row(row));
        for (std::size_t i = 0; i < file.header().tensors.size(); ++i) {
            if (file.tensor(i).extremes && file.tensor(i).counted() > 0)
                static_cast<void>(quantile(file.tensor(i), 0.3));
        }
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

// Puts the right checksum at the end, so that what was changed before is found by other checks.
void seal(std::string& bytes) {
    const std::size_t body = bytes.size() - 32;
    Sha256 digest;
    digest.update(std::as_bytes(std::span(bytes).first(body)));
    const Digest checksum = digest.finish();
    std::memcpy(bytes.data() + body, checksum.data(), checksum.size());
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// A file of one tensor "x" and one row, of elements that need few bytes.
void write_small(const std::filesystem::path& path, bool extremes_only = false) {
    StatisticsHeader header = example_header(2);
    header.tensors = {{"x", false}};
    header.counter.extremes_only = extremes_only;
    Counter counter(header.counter);
    const std::vector<float> elements = {1.0F, 0.0F, -1.0F, 1.1F};
    const TensorStatistics& found = counter.count(elements);
    StatisticsWriter writer(path, header);
    writer.add_row({1, {summarize(found)}});
    writer.finish(std::span(&found, 1), std::vector<std::uint64_t>{0});
}

}  // namespace

TEST_CASE("a file gives back what was written") {
    const TemporaryFolder folder;
    for (const bool extremes_only : {false, true}) {
        CAPTURE(extremes_only);
        StatisticsHeader header = example_header(20, 2, 3);
        header.counter = {.mask_below = -1.5, .extremes_only = extremes_only};
        write_example(folder / "a.qstats", header, {4, 10});
        const StatisticsFile file(folder / "a.qstats");
        CHECK(file.path() == folder / "a.qstats");
        CHECK(file.header() == header);
        CHECK(file.skipped() == std::vector<std::uint64_t>{4, 10});
        REQUIRE(file.rows() == 5);

        Counter counter(header.counter);
        std::vector<TensorStatistics> expected(3);
        expected[1] = counter.count(example_elements(1, 0));
        const std::vector<std::uint64_t> numbers = {1, 7, 13, 16, 19};
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            CHECK(file.row_number(i) == numbers[i]);
            const Row row = file.row(i);
            CHECK(row.number == numbers[i]);
            REQUIRE(row.entries.size() == 2);
            for (const std::size_t tensor : {0, 2}) {
                const TensorStatistics& sample = counter.count(example_elements(tensor, numbers[i]));
                expected[tensor].merge(sample);
                CHECK(file.entry(i, tensor) == summarize(sample));
                CHECK(row.entries[tensor / 2] == summarize(sample));
            }
        }
        CHECK_FALSE(file.entry(4, 2).has_data);
        for (std::size_t i = 0; i < 3; ++i) CHECK(file.tensor(i) == expected[i]);
    }
}

TEST_CASE("tensors are found by name, whatever its bytes") {
    const TemporaryFolder folder;
    write_example(folder / "a.qstats", example_header(3));
    const StatisticsFile file(folder / "a.qstats");
    CHECK(file.find("image") == 0);
    CHECK(file.find(std::string("odd\xff\0name", 9)) == 2);
    CHECK_FALSE(file.find("odd"));
}

TEST_CASE("a run without samples and a model without tensors have files too") {
    const TemporaryFolder folder;
    StatisticsHeader header = example_header(1, 3, 3);
    write_example(folder / "a.qstats", header);
    const StatisticsFile file(folder / "a.qstats");
    CHECK(file.rows() == 0);
    CHECK(file.tensor(1).extremes);
    CHECK_FALSE(file.tensor(0).extremes);

    header = example_header(2);
    header.tensors.clear();
    StatisticsWriter writer(folder / "b.qstats", header);
    writer.add_row({0, {}});
    writer.add_row({1, {}});
    writer.finish(StatisticsSet(0), {});
    CHECK(StatisticsFile(folder / "b.qstats").rows() == 2);
}

TEST_CASE("the same content makes the same bytes") {
    const TemporaryFolder folder;
    write_example(folder / "a.qstats", example_header(20), {3});
    write_example(folder / "b.qstats", example_header(20), {3});
    CHECK(read_text_file(folder / "a.qstats") == read_text_file(folder / "b.qstats"));
}

TEST_CASE("a file is called .part until it is finished, and is gone without finish") {
    const TemporaryFolder folder;
    {
        StatisticsWriter writer(folder / "a.qstats", example_header(0));
        CHECK(std::filesystem::exists(folder / "a.qstats.part"));
        CHECK_FALSE(std::filesystem::exists(folder / "a.qstats"));
    }
    CHECK(files_in(folder) == 0);
    write_example(folder / "a.qstats", example_header(2));
    CHECK(files_in(folder) == 1);
}

TEST_CASE("a file cut off at any length is refused as truncated") {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "cut.qstats";
    write_small(path);
    const std::string whole = read_text_file(path);
    REQUIRE(read_error(path).empty());
    for (std::size_t length = 1; length < whole.size(); ++length) {
        CAPTURE(length);
        write_unsynced(path, std::string_view(whole).substr(0, length));
        const std::string message = read_error(path);
        CHECK(message.starts_with(path.string() + ": "));
        CHECK(contains(message, "truncated"));
    }
    write_unsynced(path, "");
    CHECK(read_error(path) == path.string() + ": expected a .qstats file, found an empty one");
}

TEST_CASE("other contents, other versions, trailing bytes and damage each have their message") {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "bad.qstats";
    write_small(path);
    const std::string whole = read_text_file(path);

    write_unsynced(path,
                   "{\"json\": true, \"and\": \"long enough to be looked at, were it not for its start\"}");
    CHECK(read_error(path) == path.string() + ": expected a .qstats file, found other contents");

    std::string changed = whole;
    changed[8] = 2;
    seal(changed);
    write_unsynced(path, changed);
    CHECK(read_error(path) == path.string() + ": expected .qstats version 1, found version 2");

    write_unsynced(path, whole + "abc");
    CHECK(read_error(path) == path.string() + ": found 3 bytes behind the last record");

    changed = whole;
    changed[whole.find("avx512")] = 'b';
    write_unsynced(path, changed);
    CHECK(read_error(path) == path.string() + ": damaged: its checksum is not that of its contents");

    CHECK(contains(read_error(folder / "none.qstats"), "none.qstats: cannot be read"));
}

TEST_CASE("every damaged byte is noticed") {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "damaged.qstats";
    write_small(path);
    const std::string whole = read_text_file(path);
    Random random(17);
    for (std::size_t at = 0; at < whole.size(); ++at) {
        CAPTURE(at);
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ (1 << random.below(8)));
        write_unsynced(path, changed);
        CHECK(read_error(path).starts_with(path.string() + ": "));
    }
}

TEST_CASE("damage behind a right checksum gives an Error or a readable file, never a crash") {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "fuzz.qstats";
    StatisticsHeader header = example_header(6, 1, 2);
    for (const bool extremes_only : {false, true}) {
        header.counter.extremes_only = extremes_only;
        write_example(path, header, {2});
        const std::string whole = read_text_file(path);
        Random random(23);
        std::size_t refused = 0;
        for (int trial = 0; trial < 800; ++trial) {
            CAPTURE(trial);
            std::string changed = whole;
            for (std::uint64_t i = 1 + random.below(4); i > 0; --i) {
                const std::size_t at = 12 + random.below(trial % 2 == 0 ? 250 : changed.size() - 44);
                switch (random.below(4)) {
                    case 0:
                        changed[at] = static_cast<char>(random.next());
                        break;
                    case 1:
                        changed[at] = static_cast<char>(changed[at] ^ (1 << random.below(8)));
                        break;
                    case 2:
                        changed.erase(at,
                                      std::min<std::size_t>(1 + random.below(5), changed.size() - 40 - at));
                        break;
                    default:
                        changed.insert(at, 1 + random.below(3), static_cast<char>(random.below(2) * 0xff));
                        break;
                }
            }
            seal(changed);
            write_unsynced(path, changed);
            const std::string message = read_error(path);
            if (message.empty()) continue;
            ++refused;
            CHECK(message.starts_with(path.string() + ": "));
        }
        CHECK(refused > 400);
    }
}

TEST_CASE("rows and tensors that no count can give are refused") {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "impossible.qstats";
    const auto error_of = [&](auto change_header, auto change_row, auto change_tensor) {
        StatisticsHeader header = example_header(1);
        header.tensors = {{"x", false}};
        Counter counter;
        TensorStatistics found = counter.count(std::vector<float>{1.0F, 0.0F, -3.0F});
        Row row{0, {summarize(found)}};
        change_header(header);
        change_row(row);
        change_tensor(found);
        StatisticsWriter writer(path, header);
        if (row.entries.size() == 1) writer.add_row(row);
        writer.finish(std::span(&found, 1), {});
        const std::string message = read_error(path);
        return message.starts_with(path.string() + ": ") ? message.substr(path.string().size() + 2) : message;
    };
    const auto same = [](auto&) {};
    REQUIRE(error_of(same, same, same) == "");
    CHECK(error_of([](StatisticsHeader& header) { header.shard = 2; }, same, same) ==
          "found the impossible shard 2/1");
    CHECK(error_of([](StatisticsHeader& header) { header.counter.mask_below = 2; }, same, same) ==
          "expected a negative mask setting, found 2");
    CHECK(error_of([](StatisticsHeader& header) { header.selected = 2; }, same, same) ==
          "expected 2 rows and skipped samples in shard 1/1 of 2 samples, found 1");
    CHECK(error_of([](StatisticsHeader& header) { header.selected = std::uint64_t{1} << 62; }, same, same) ==
          "expected 4611686018427387904 rows and skipped samples in shard 1/1 of 4611686018427387904 "
          "samples, found 1");
    CHECK(error_of([](StatisticsHeader& header) { header.tensors[0].constant = true; },
                   [](Row& row) { row.entries.clear(); },
                   same) == "expected 1 rows and skipped samples in shard 1/1 of 1 samples, found 0");
    CHECK(error_of(
              same, [](Row& row) { row.number = 1; }, same) ==
          "sample 0 is neither a row nor skipped, or out of order");
    CHECK(error_of(
              same, [](Row& row) { row.entries[0].max = -4; }, same) ==
          "sample 0, tensor 'x': found impossible minimum, maximum or tails");
    CHECK(error_of(
              same, [](Row& row) { row.entries[0].low_tail = std::numeric_limits<float>::infinity(); },
              same) == "sample 0, tensor 'x': found impossible minimum, maximum or tails");
    CHECK(error_of(same, same, [](TensorStatistics& found) { found.extremes.reset(); }) ==
          "tensor 'x': has counts and no minimum and maximum");
    CHECK(error_of(same, same, [](TensorStatistics& found) { found.extremes->max = 4; }) ==
          "tensor 'x': minimum -3 and maximum 4 are not those of its counts");
    CHECK(error_of(same, same, [](TensorStatistics& found) { found.extremes->min = -0.0; }) ==
          "tensor 'x': found the impossible minimum -0 and maximum 1");
    CHECK(
        error_of(same, same, [](TensorStatistics& found) { found.positive.grow(2); }) ==
        "tensor 'x': expected a histogram from its first to its last count, the last in the highest binade");
    CHECK(error_of(same, same, [](TensorStatistics& found) { found.nans = ~std::uint64_t{0}; }) ==
          "tensor 'x': counts more than 2^62 elements");
}

TEST_CASE("a file that lists a tensor twice is refused") {
    const TemporaryFolder folder;
    StatisticsHeader header = example_header(0);
    header.tensors = {{"x", false}, {"x", true}};
    StatisticsWriter(folder / "twice.qstats", header).finish(StatisticsSet(2), {});
    CHECK(contains(read_error(folder / "twice.qstats"), "lists tensor 'x' twice"));
}

TEST_CASE("the first rows of a file are a file with the extremes of these rows") {
    const TemporaryFolder folder;
    write_example(folder / "all.qstats", example_header(12), {3});
    const StatisticsFile all(folder / "all.qstats");
    const StatisticsFile first = all.first(5);
    CHECK(first.rows() == 5);
    CHECK(first.header() == all.header());
    CHECK(first.row_number(4) == 5);
    CHECK(first.tensor(1) == all.tensor(1));  // a constant
    for (const std::size_t tensor : {0, 2}) {
        Range expected{1e30, -1e30};
        for (std::size_t row = 0; row < 5; ++row) {
            const SampleSummary entry = all.entry(row, tensor);
            CHECK(first.entry(row, tensor) == entry);
            if (!entry.has_data) continue;
            expected = {std::min<double>(expected.min, entry.min), std::max<double>(expected.max, entry.max)};
        }
        CHECK(first.tensor(tensor).extremes == expected);
        CHECK(first.tensor(tensor).elements() == 0);
    }
    CHECK(all.first(100).rows() == all.rows());
    CHECK(all.first(0).tensor(0).extremes == std::nullopt);
    CHECK(first.find("image") == std::size_t{0});
}
