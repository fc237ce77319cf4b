// record-minmax's lists and folders: a file for each input in the model's order, or one with the data of all.
#include <cstring>

#include <doctest/doctest.h>

#include "array_files.h"
#include "dataset/sample_reader.h"
#include "dataset/sample_source.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// A float image, integer ids and a bool mask: what one model may ask for at once.
const std::vector<InputSpec> three_inputs{{"image", DataType::float32, {1, 2}, true},
                                          {"ids", DataType::int64, {1, 3}, true},
                                          {"mask", DataType::boolean, {1, 4}, true}};

template <typename T>
std::string packed(const std::vector<T>& values) {
    std::string bytes(values.size() * sizeof(T), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

std::string image_bytes(float first) {
    return packed<float>({first, first + 1});
}
const std::string ids_bytes = packed<std::int64_t>({7, -8, 9});
const std::string mask_bytes{'\1', '\0', '\1', '\1'};

std::vector<std::vector<double>> read_numbers(const std::filesystem::path& source, std::size_t sample,
                                              const std::vector<InputSpec>& inputs) {
    Remarks remarks;
    const auto entries = read_sample_source(source.string(), inputs, remarks);
    std::vector<std::vector<double>> numbers;
    for (const Tensor& tensor : SampleReader(inputs, {}).read(entries.at(sample)))
        numbers.push_back(numbers_of(tensor.view()));
    return numbers;
}

}  // namespace

TEST_CASE("A line has a file for each input in the model's order, or one file with the data of all") {
    const ArrayFolder folder;
    folder.write("i.bin", image_bytes(1));
    folder.write("n.bin", ids_bytes);
    folder.write("m.bin", mask_bytes);
    folder.write("all.bin", image_bytes(5) + ids_bytes + mask_bytes);
    const auto list = folder.write("list.txt", "i.bin n.bin\t m.bin \r\n\nall.bin\n");
    const std::vector<double> ids{7, -8, 9};
    const std::vector<double> mask{1, 0, 1, 1};
    CHECK(read_numbers(list, 0, three_inputs) == std::vector{std::vector<double>{1, 2}, ids, mask});
    CHECK(read_numbers(list, 1, three_inputs) == std::vector{std::vector<double>{5, 6}, ids, mask});
}

TEST_CASE("A folder's raw files have the data of all inputs, in the order of the files' names") {
    const ArrayFolder folder;
    for (int i = 0; i < 9; ++i) {
        const int other = (i * 5) % 9;
        folder.write("records/" + std::to_string(other) + ".bin",
                     image_bytes(static_cast<float>(other)) + ids_bytes + mask_bytes);
    }
    for (std::size_t i = 0; i < 9; ++i) {
        const auto numbers = read_numbers(folder.path() / "records", i, three_inputs);
        CHECK(numbers[0] == std::vector<double>{static_cast<double>(i), static_cast<double>(i) + 1});
        CHECK(numbers[2] == std::vector<double>{1, 0, 1, 1});
    }
}

TEST_CASE("A file of another size than all inputs together is refused with the bytes of each") {
    const ArrayFolder folder;
    folder.write("records/short.bin", image_bytes(1) + ids_bytes);
    CHECK(error_of([&] { read_numbers(folder.path() / "records", 0, three_inputs); }) ==
          (folder.path() / "records/short.bin").string() +
              ": expected 36 bytes (8 of float32 for input 'image' [1,2], 24 of int64 for input 'ids' [1,3], "
              "4 of "
              "bool for input 'mask' [1,4]), found 32 bytes; where each input has a file of its own, they "
              "are given "
              "as name:=path");
    std::vector<InputSpec> open_inputs = three_inputs;
    open_inputs[1].shape[1] = std::nullopt;
    CHECK(
        error_of([&] { read_numbers(folder.path() / "records", 0, open_inputs); }) ==
        (folder.path() / "records/short.bin").string() +
            ": holds the data of several inputs, and input 'ids' [1,?] has no fixed size to cut it by; give "
            "--shape ids=...");
    const std::string bad_mask{'\1', '\0', '\2', '\1'};
    folder.write("bad/a.bin", image_bytes(1) + ids_bytes + bad_mask);
    CHECK(error_of([&] { read_numbers(folder.path() / "bad", 0, three_inputs); }) ==
          (folder.path() / "bad/a.bin").string() +
              ", bytes 32 to 36: expected 0 or 1 for the bool input 'mask' [1,4], found 2 at byte 2");
}

TEST_CASE("Two inputs that take data of one size must be named in a list") {
    const ArrayFolder folder;
    const std::vector<InputSpec> twins{{"a", DataType::float32, {1, 4}, true},
                                       {"b", DataType::float32, {1, 4}, true}};
    const auto list = folder.write("list.txt", "x.bin y.bin\n");
    CHECK(error_of([&] { read_numbers(list, 0, twins); }) ==
          list.string() +
              ":1: inputs 'a' and 'b' take data of the same size, so that nothing tells whether the "
              "files are in their order; name them, as a:=x.bin b:=y.bin");
    folder.write("x.bin", packed<float>({1, 2, 3, 4}));
    folder.write("y.bin", packed<float>({5, 6, 7, 8}));
    const auto named = folder.write("named.txt", "b:=x.bin a:=y.bin\n");
    CHECK(read_numbers(named, 0, twins) ==
          std::vector{std::vector<double>{5, 6, 7, 8}, std::vector<double>{1, 2, 3, 4}});
}

TEST_CASE("Files in another order than the model's inputs are refused by their sizes") {
    const ArrayFolder folder;
    folder.write("i.bin", image_bytes(1));
    folder.write("n.bin", ids_bytes);
    folder.write("m.bin", mask_bytes);
    const auto list = folder.write("list.txt", "n.bin i.bin m.bin\n");
    CHECK(error_of([&] { read_numbers(list, 0, three_inputs); })
              .starts_with((folder.path() / "n.bin").string() +
                           ": expected 8 bytes (float32 for input 'image' [1,2]), found 24 bytes"));
}
