#include "engine/input_export.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"

namespace qcalib {
namespace {

namespace fs = std::filesystem;

// A folder of its own, removed at the end.
class Folder {
  public:
    explicit Folder(const std::string& name) : path_(fs::temp_directory_path() / name) {
        fs::remove_all(path_);
        fs::create_directory(path_);
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

std::vector<float> floats_of(const fs::path& file) {
    const std::string text = read_text_file(file);
    std::vector<float> values(text.size() / sizeof(float));
    std::memcpy(values.data(), text.data(), values.size() * sizeof(float));
    return values;
}

// Statistics with these rows and nothing else.
StatisticsFile rows_file(const fs::path& path, std::span<const std::uint64_t> numbers, bool sequences) {
    StatisticsHeader header;
    header.selected = 4;
    header.sequences = sequences;
    StatisticsWriter writer(path, header);
    for (const std::uint64_t number : numbers) writer.add_row({number, {}});
    std::vector<std::uint64_t> skipped;
    for (std::uint64_t i = 0; i < header.selected; ++i) {
        const std::uint64_t first = sequences ? step_number(i, 0) : i;
        if (std::ranges::find(numbers, first) == numbers.end()) skipped.push_back(first);
    }
    writer.finish(std::span<const TensorStatistics>(), skipped);
    return StatisticsFile(path);
}

InputSpec input(const std::string& name) {
    return {.name = name, .type = DataType::float32, .shape = {}};
}

TEST_CASE("an input that is to have its channels last is written so, as float32") {
    const Folder folder("qcalib_input_export_order");
    const std::vector<InputSpec> inputs = {input("image")};
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};  // two channels of three pixels
    const std::vector<Tensor> sample = {Tensor::of<float>({1, 2, 1, 3}, values)};
    InputExport(folder.path(), inputs, {4}).write("000000", sample);
    CHECK(floats_of(folder.path() / "000000.image.raw") == std::vector<float>{1, 4, 2, 5, 3, 6});
    InputExport(folder.path(), inputs, {3, 5}).write("000001", sample);
    CHECK(floats_of(folder.path() / "000001.image.raw") == values);
}

TEST_CASE("integers are written as float32") {
    const Folder folder("qcalib_input_export_integers");
    const std::vector<InputSpec> inputs = {input("ids")};
    const std::vector<std::int64_t> values = {-3, 7};
    InputExport(folder.path(), inputs, {4})
        .write("000000", std::vector<Tensor>{Tensor::of<std::int64_t>({1, 2}, values)});
    CHECK(floats_of(folder.path() / "000000.ids.raw") == std::vector<float>{-3, 7});
}

TEST_CASE("the list has a line for each counted sample, with names only where there are several inputs") {
    const Folder folder("qcalib_input_export_list");
    const std::vector<std::uint64_t> numbers = {0, 2};
    const StatisticsFile statistics = rows_file(folder.path() / "s.qstats", numbers, false);
    const std::string at = folder.path().string();
    const std::vector<InputSpec> one = {input("a")};
    const fs::path list = InputExport(folder.path(), one, {}).write_list(statistics);
    CHECK(list == folder.path() / "input_list.txt");
    CHECK(read_text_file(list) == at + "/000000.a.raw\n" + at + "/000002.a.raw\n");
    const std::vector<InputSpec> two = {input("a/x:0"), input("b")};
    InputExport(folder.path(), two, {}).write_list(statistics);
    CHECK(read_text_file(list) == "a/x:0:=" + at + "/000000.a_x_0.raw b:=" + at + "/000000.b.raw\n" +
                                      "a/x:0:=" + at + "/000002.a_x_0.raw b:=" + at + "/000002.b.raw\n");
}

TEST_CASE("a step of a sequence is a sample of its own") {
    const Folder folder("qcalib_input_export_steps");
    const std::vector<std::uint64_t> numbers = {step_number(0, 0), step_number(3, 0), step_number(3, 1)};
    const StatisticsFile statistics = rows_file(folder.path() / "s.qstats", numbers, true);
    const std::vector<InputSpec> one = {input("a")};
    const fs::path list = InputExport(folder.path(), one, {}).write_list(statistics);
    const std::string at = folder.path().string();
    CHECK(read_text_file(list) ==
          at + "/000000.000000.a.raw\n" + at + "/000003.000000.a.raw\n" + at + "/000003.000001.a.raw\n");
}

TEST_CASE("what cannot stand in a list is refused by name") {
    const std::vector<InputSpec> one = {input("a b")};
    const std::vector<InputSpec> two = {input("a b"), input("c")};
    CHECK_NOTHROW(InputExport("inputs", one, {}));
    CHECK_THROWS_WITH_AS(InputExport("inputs", two, {}), doctest::Contains("input 'a b': expected"), Error);
    CHECK_THROWS_WITH_AS(InputExport("my inputs", one, {}), doctest::Contains("without blanks"), Error);
}

}  // namespace
}  // namespace qcalib
