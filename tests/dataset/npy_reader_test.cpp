#include <numeric>

#include <doctest/doctest.h>

#include "dataset/sample_reader.h"
#include "sample_files.h"
#include "tensor/npy.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr auto open = std::nullopt;

struct Files {
    SampleFolder folder;

    template <typename T>
    std::filesystem::path array(const Shape& shape, const std::string& name = "a.npy") const {
        std::vector<T> values(static_cast<std::size_t>(element_count(shape)));
        std::iota(values.begin(), values.end(), T{0});
        write_npy(folder.path() / name, Tensor::of<T>(shape, values).view());
        return folder.path() / name;
    }
};

InputSpec float_input(std::vector<std::optional<std::int64_t>> shape) {
    return {"x", DataType::float32, std::move(shape), true};
}

Tensor read_one(const InputSpec& input, const std::filesystem::path& file,
                DataLayout layout = DataLayout::as_model) {
    PictureFlags preprocessing;
    preprocessing.layout = layout;
    return SampleReader({input}, preprocessing).read({1, {file}}).at(0);
}

std::string error_with(const InputSpec& input, const std::filesystem::path& file,
                       DataLayout layout = DataLayout::as_model) {
    const std::string message = error_of([&] { read_one(input, file, layout); });
    const std::string folder = file.parent_path().string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
}

}  // namespace

TEST_CASE("A .npy file of the input's type and shape is taken as it is, its ending in any case") {
    const Files files;
    const Tensor tensor = read_one(float_input({1, 2, 3}), files.array<float>({1, 2, 3}, "A.NPY"));
    CHECK(tensor.shape() == Shape{1, 2, 3});
    CHECK(!tensor.mapped());
    CHECK(numbers_of(tensor.view()) == std::vector<double>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("A .npy file binds every open dimension, and a batch of 1 may be left out") {
    const Files files;
    CHECK(read_one(float_input({open, 3, open}), files.array<float>({2, 3, 4})).shape() == Shape{2, 3, 4});
    CHECK(read_one(float_input({open, 3, open}), files.array<float>({3, 4})).shape() == Shape{1, 3, 4});
    CHECK(read_one(float_input({1, 3, 4}), files.array<float>({3, 4})).shape() == Shape{1, 3, 4});
    CHECK(read_one({"x", DataType::float32, {}, false}, files.array<float>({3, 4})).shape() == Shape{3, 4});
    CHECK(error_with(float_input({2, 3, 4}), files.array<float>({3, 4})) ==
          "a.npy: expected shape [2,3,4] for input 'x' [2,3,4], found [3,4]");
    CHECK(error_with(float_input({1, open}), files.array<float>({1, 0})) ==
          "a.npy: no elements for input 'x' [1,?], found shape [1,0]");
}

TEST_CASE("A .npy file of another type is refused with what to do") {
    const Files files;
    CHECK(error_with(float_input({2}), files.array<double>({2})) ==
          "a.npy: expected float32 for input 'x' [2], found float64; convert it with numpy's "
          "astype('float32')");
    CHECK(error_with({"ids", DataType::int64, {2}, true}, files.array<std::int32_t>({2})) ==
          "a.npy: expected int64 for input 'ids' [2], found int32; convert it with numpy's astype('int64')");
}

TEST_CASE("A .npy file that is none is refused by its name") {
    const Files files;
    CHECK(error_with(float_input({2}), files.folder.write("a.npy", "12345678")).starts_with("a.npy: "));
    CHECK(error_with(float_input({2}), files.folder.path() / "none.npy").starts_with("none.npy: "));
}

TEST_CASE("NHWC .npy data are permuted to the model's NCHW") {
    const Files files;
    const Tensor tensor =
        read_one(float_input({1, 3, 2, open}), files.array<float>({2, 2, 3}), DataLayout::nhwc);
    CHECK(tensor.shape() == Shape{1, 3, 2, 2});
    CHECK(tensor.descriptor().order == MemoryOrder::row_major);
    CHECK(numbers_of(tensor.view()) == std::vector<double>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
}

TEST_CASE(
    "NCHW .npy data are permuted to the model's NHWC, told so or by a shape that fits in no other way") {
    const Files files;
    for (const DataLayout layout : {DataLayout::nchw, DataLayout::as_model}) {
        const Tensor tensor = read_one(float_input({1, 2, 5, 3}), files.array<float>({1, 3, 2, 5}), layout);
        CHECK(tensor.shape() == Shape{1, 2, 5, 3});
        CHECK(tensor.descriptor().order == MemoryOrder::row_major);
        const std::vector<double> values = numbers_of(tensor.view());
        CHECK(values[0] == 0);   // c 0
        CHECK(values[1] == 10);  // c 1
        CHECK(values[2] == 20);
        CHECK(values[3] == 1);  // column 1
        CHECK(values[29] == 29);
        CHECK(values[15] == 5);  // row 1
    }
}

TEST_CASE("A .npy shape that fits in the other layout alone is permuted") {
    const Files files;
    const Tensor tensor = read_one(float_input({1, 3, 4, 5}), files.array<float>({1, 4, 5, 3}));
    CHECK(tensor.shape() == Shape{1, 3, 4, 5});
    CHECK(numbers_of(tensor.view())[1] == 3);
    CHECK(read_one(float_input({1, 3, 4, 5}), files.array<float>({4, 5, 3})).shape() == Shape{1, 3, 4, 5});
    CHECK(
        error_with(float_input({1, 3, 4, 5}), files.array<float>({1, 3, 4, 5}), DataLayout::nhwc) ==
        "a.npy: expected shape [1,4,5,3] (channels last) for input 'x' [1,3,4,5], found [1,3,4,5]; leave out "
        "--data-layout nhwc");
}

TEST_CASE("A .npy shape of as many channels as rows leaves a doubt and is refused unless told") {
    const Files files;
    CHECK(error_with(float_input({1, 8, 6, 8}), files.array<float>({1, 8, 8, 6})) ==
          "a.npy: expected shape [1,8,6,8] for input 'x' [1,8,6,8], found [1,8,8,6], which fits as NCHW; but "
          "its "
          "axes of 8 leave a doubt about which are the channels: say --data-layout nchw, or transpose it");
    CHECK(read_one(float_input({1, 8, 6, 8}), files.array<float>({1, 8, 8, 6}), DataLayout::nchw).shape() ==
          Shape{1, 8, 6, 8});
    // Equal sides fit as they are: the model's layout.
    CHECK(numbers_of(read_one(float_input({1, 2, 2, 2}), files.array<float>({1, 2, 2, 2})).view())[1] == 1);
    // Nothing fits.
    CHECK(error_with(float_input({1, 3, 4, 5}), files.array<float>({1, 5, 3, 4})) ==
          "a.npy: expected shape [1,3,4,5] for input 'x' [1,3,4,5], found [1,5,3,4]");
}
