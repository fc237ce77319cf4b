#include <cstring>
#include <numeric>

#include <doctest/doctest.h>

#include "dataset/sample_reader.h"
#include "sample_files.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using PartialShape = std::vector<std::optional<std::int64_t>>;
constexpr auto open = std::nullopt;

InputSpec float_input(PartialShape shape) {
    return {"x", DataType::float32, std::move(shape), true};
}

std::vector<float> counting(std::size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0F);
    return values;
}

struct Files {
    SampleFolder folder;

    std::filesystem::path floats(std::size_t count) const {
        return folder.write_values<float>("a.raw", counting(count));
    }
    std::filesystem::path bytes(std::size_t count) const {
        return folder.write("a.raw", std::string(count, '\1'));
    }
};

Tensor read_one(const InputSpec& input, const std::filesystem::path& file,
                DataLayout layout = DataLayout::as_model) {
    PictureFlags preprocessing;
    preprocessing.layout = layout;
    return SampleReader({input}, preprocessing).read({1, {file}}).at(0);
}

// The error without the folder of the file.
std::string error_with(const InputSpec& input, const std::filesystem::path& file,
                       DataLayout layout = DataLayout::as_model) {
    const std::string message = error_of([&] { read_one(input, file, layout); });
    const std::string folder = file.parent_path().string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
}

}  // namespace

TEST_CASE("Raw data fill an input of their size, bit by bit") {
    const Files files;
    const Tensor tensor = read_one(float_input({1, 2, 3}), files.floats(6));
    CHECK(tensor.type() == DataType::float32);
    CHECK(tensor.shape() == Shape{1, 2, 3});
    CHECK(tensor.descriptor().order == MemoryOrder::row_major);
    CHECK(numbers_of(tensor.view()) == std::vector<double>{0, 1, 2, 3, 4, 5});
    const std::vector<std::int64_t> ids{5, -1, std::int64_t{1} << 40};
    const auto file = files.folder.write_values<std::int64_t>("ids.bin", ids);
    CHECK(integers_of(read_one({"ids", DataType::int64, {3}, true}, file).view()) == ids);
}

TEST_CASE("Raw data fill a scalar") {
    const Files files;
    CHECK(read_one(float_input({}), files.floats(1)).shape().empty());
}

TEST_CASE("Raw data bind the one open dimension") {
    const Files files;
    CHECK(read_one(float_input({open, 2, 3}), files.floats(12)).shape() == Shape{2, 2, 3});
    CHECK(read_one(float_input({1, 2, open}), files.floats(12)).shape() == Shape{1, 2, 6});
    CHECK(error_with(float_input({1, 5, open}), files.floats(12)) ==
          "a.raw: expected a multiple of 20 bytes (float32 for input 'x' [1,5,?]), found 48 bytes");
    CHECK(error_with(float_input({1, 5, open}), files.bytes(0)) ==
          "a.raw: expected a multiple of 20 bytes (float32 for input 'x' [1,5,?]), found 0 bytes");
}

TEST_CASE("Raw data of an input with several open dimensions need --shape") {
    const Files files;
    CHECK(error_with(float_input({open, 3, open, open}), files.floats(12)) ==
          "a.raw: the shape of input 'x' [?,3,?,?] cannot be told from 48 bytes; give --shape x=...");
    CHECK(error_with({"x", DataType::float32, {}, false}, files.floats(12)) ==
          "a.raw: the shape of input 'x' of any shape cannot be told from 48 bytes; give --shape x=...");
}

TEST_CASE("Raw data of a wrong size are refused with both sizes and what they may be") {
    const Files files;
    const InputSpec input = float_input({1, 3, 4, 5});
    CHECK(error_with(input, files.bytes(239)) ==
          "a.raw: expected 240 bytes (float32 for input 'x' [1,3,4,5]), found 239 bytes");
    CHECK(error_with(input, files.bytes(0)) ==
          "a.raw: expected 240 bytes (float32 for input 'x' [1,3,4,5]), found 0 bytes");
    CHECK(error_with(input, files.bytes(60))
              .ends_with("found 60 bytes (the size of this shape in elements of 1 bytes (uint8 or int8))"));
    CHECK(error_with(input, files.bytes(480))
              .ends_with("found 480 bytes (the size of this shape in elements of 8 bytes (float64 or int64), "
                         "or of 2 samples of this "
                         "shape in one file)"));
    CHECK(
        error_with(float_input({2, 3, 4, 5}), files.bytes(240))
            .ends_with(
                "found 240 bytes (the size of one item of the batch of 2, or of this shape in elements of 2 "
                "bytes (float16 or int16))"));
    CHECK(error_with({"x", DataType::uint8, {1, 3, 4, 5}, true}, files.bytes(240))
              .starts_with(
                  "a.raw: expected 60 bytes (uint8 for input 'x' [1,3,4,5]), found 240 bytes (the size of "
                  "this shape in elements of 4 bytes (float32 or int32)"));
}

TEST_CASE("A raw file that is missing, or for a type it cannot hold, is refused") {
    const Files files;
    CHECK(error_with(float_input({1}), files.folder.path() / "none.raw").starts_with("none.raw: "));
    CHECK(error_with({"x", DataType::string, {1}, true}, files.bytes(4)) ==
          "a.raw: input 'x' [1] is of type string, which raw files cannot hold");
    CHECK(error_with(float_input({std::int64_t{1} << 60}), files.bytes(4)) ==
          "a.raw: input 'x' [1152921504606846976] is too large for a file");
}

TEST_CASE("Raw bools are 0 or 1") {
    const Files files;
    const auto good = files.folder.write("good.raw", std::string("\0\1\1", 3));
    CHECK(numbers_of(read_one({"x", DataType::boolean, {3}, true}, good).view()) ==
          std::vector<double>{0, 1, 1});
    const auto bad = files.folder.write("bad.raw", std::string("\0\1\7", 3));
    CHECK(error_with({"x", DataType::boolean, {3}, true}, bad) ==
          "bad.raw: expected 0 or 1 for the bool input 'x' [3], found 7 at byte 2");
}

TEST_CASE("NHWC raw data are permuted to the model's NCHW") {
    const Files files;
    const Tensor tensor = read_one(float_input({1, 3, 2, 2}), files.floats(12), DataLayout::nhwc);
    CHECK(tensor.shape() == Shape{1, 3, 2, 2});
    CHECK(tensor.descriptor().order == MemoryOrder::row_major);
    CHECK(numbers_of(tensor.view()) == std::vector<double>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
    CHECK(read_one(float_input({1, 3, 2, open}), files.floats(12), DataLayout::nhwc).shape() ==
          Shape{1, 3, 2, 2});
    CHECK(error_with(float_input({1, 3, 4, 5}), files.bytes(3), DataLayout::nhwc) ==
          "a.raw: expected 240 bytes (float32 [1,4,5,3], channels last, for input 'x' [1,3,4,5]), found 3 "
          "bytes");
}

TEST_CASE("NHWC raw data stay as they are for inputs that are channels-last or not of rank 4") {
    const Files files;
    const std::vector<double> straight{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    CHECK(numbers_of(read_one(float_input({1, 2, 2, 3}), files.floats(12), DataLayout::nhwc).view()) ==
          straight);
    CHECK(numbers_of(read_one(float_input({1, 3, 4}), files.floats(12), DataLayout::nhwc).view()) ==
          straight);
}
