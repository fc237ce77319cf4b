#include "tensor/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace qcalib {

namespace {

template <typename T>
Tensor tensor_of(Shape shape, const std::vector<T>& values) {
    return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

// Elements 0, 1, 2, ... of a type, as bytes, so that every byte of an element counts.
Tensor counted(DataType type, Shape shape, MemoryOrder order) {
    Tensor tensor(TensorDescriptor{type, std::move(shape), order});
    const auto bytes = tensor.mutable_view().bytes();
    const std::size_t size = size_of(type);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::size_t element = i / size;
        bytes[i] = static_cast<std::byte>(element >> (8 * (i % size)) ^ (i % size * 37));
    }
    return tensor;
}

// Where element (n, c, pixel) lies, counted in elements.
std::size_t place(const TensorDescriptor& descriptor, std::size_t n, std::size_t c, std::size_t pixel) {
    const auto channels = static_cast<std::size_t>(descriptor.shape[1]);
    const std::size_t pixels =
        descriptor.elements() / channels / static_cast<std::size_t>(descriptor.shape[0]);
    return descriptor.order == MemoryOrder::row_major ? (n * channels + c) * pixels + pixel
                                                      : (n * pixels + pixel) * channels + c;
}

// Whether both hold the same elements at the same logical places, one by one.
bool same_elements(const Tensor& a, const Tensor& b) {
    const std::size_t size = size_of(a.type());
    const auto batch = static_cast<std::size_t>(a.shape()[0]);
    const auto channels = static_cast<std::size_t>(a.shape()[1]);
    const std::size_t pixels = a.descriptor().elements() / batch / channels;
    for (std::size_t n = 0; n < batch; ++n) {
        for (std::size_t c = 0; c < channels; ++c) {
            for (std::size_t p = 0; p < pixels; ++p) {
                const std::byte* from = a.data() + place(a.descriptor(), n, c, p) * size;
                const std::byte* to = b.data() + place(b.descriptor(), n, c, p) * size;
                if (std::memcmp(from, to, size) != 0) return false;
            }
        }
    }
    return true;
}

template <typename Action>
std::string error_of(Action action) {
    return test::message_of<Error>(action);
}

}  // namespace

TEST_CASE("every data type has its size and name") {
    CHECK(size_of(DataType::float32) == 4);
    CHECK(size_of(DataType::float64) == 8);
    CHECK(size_of(DataType::bfloat16) == 2);
    CHECK(size_of(DataType::boolean) == 1);
    CHECK(size_of(DataType::undefined) == 0);
    CHECK(is_numeric(DataType::boolean));
    CHECK(is_numeric(DataType::bfloat16));
    for (const DataType type :
         {DataType::undefined, DataType::string, DataType::sequence, DataType::optional}) {
        CHECK_FALSE(is_numeric(type));
    }
    CHECK(name_of(DataType::boolean) == "bool");
    CHECK(name_of(DataType::uint16) == "uint16");
    CHECK(is_floating(DataType::float16));
    CHECK_FALSE(is_floating(DataType::int8));
    CHECK(data_type_of<bool>() == DataType::boolean);
    CHECK(data_type_of<std::uint64_t>() == DataType::uint64);
}

TEST_CASE("a tensor's own memory is aligned to 64 bytes and shared by its copies") {
    const Tensor tensor = tensor_of<float>({3}, {1, 2, 3});
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0);
    const Tensor copy = tensor;
    CHECK(copy.data() == tensor.data());
    CHECK(numbers_of(copy.view()) == std::vector<double>{1, 2, 3});
    CHECK_FALSE(tensor.mapped());
    CHECK(Tensor(TensorDescriptor{DataType::float32, {0, 3}}).view().bytes().empty());
}

TEST_CASE("a tensor inside a mapped file keeps the file and shows its bytes at any alignment") {
    const test::TemporaryFolder folder;
    const std::vector<float> values = {1.5F, -2, 3e30F};
    std::string text = "xyz";
    text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    test::write_unsynced(folder / "data", text);
    Tensor tensor;
    {
        const auto file = std::make_shared<const MappedFile>(folder / "data");
        tensor = Tensor(TensorDescriptor{DataType::float32, {3}}, file, file->bytes().subspan(3));
    }
    CHECK(tensor.mapped());
    CHECK(numbers_of(tensor.view()) == std::vector<double>{1.5, -2, static_cast<double>(3e30F)});
    tensor.release_pages();
    CHECK(numbers_of(tensor.view())[0] == 1.5);
}

TEST_CASE("elements keep their logical place in both directions between memory orders") {
    const std::vector<Shape> shapes = {{2, 3, 5},    {1, 17, 33},     {2, 3, 4, 5},       {3, 16, 7, 1},
                                       {1, 5, 1, 9}, {2, 33, 18, 17}, {2, 3, 2, 3, 4},    {1, 20, 3, 5, 2},
                                       {4, 1, 3, 3}, {2, 7, 1, 1},    {1, 2, 1, 1, 1000}, {1, 1000, 2}};
    const std::vector<DataType> types = {DataType::int8, DataType::float16, DataType::float32,
                                         DataType::float64};
    for (const Shape& shape : shapes) {
        for (const DataType type : types) {
            CAPTURE(to_string(shape));
            CAPTURE(name_of(type));
            const Tensor rows = counted(type, shape, MemoryOrder::row_major);
            Tensor last(TensorDescriptor{type, shape, MemoryOrder::channels_last});
            copy_to_order(rows.view(), last.mutable_view());
            CHECK(same_elements(rows, last));
            Tensor back(TensorDescriptor{type, shape, MemoryOrder::row_major});
            copy_to_order(last.view(), back.mutable_view());
            CHECK(std::equal(back.data(), back.data() + back.descriptor().bytes(), rows.data()));
            Tensor copy(TensorDescriptor{type, shape, MemoryOrder::channels_last});
            copy_to_order(last.view(), copy.mutable_view());
            CHECK(same_elements(rows, copy));
        }
    }
}

TEST_CASE("tensors of other ranks and empty ones are copied as they lie") {
    for (const Shape& shape : {Shape{}, Shape{4}, Shape{2, 3}, Shape{1, 2, 1, 2, 1, 2}, Shape{2, 0, 3}}) {
        const Tensor source = counted(DataType::int32, shape, MemoryOrder::row_major);
        Tensor target(TensorDescriptor{DataType::int32, shape, MemoryOrder::channels_last});
        copy_to_order(source.view(), target.mutable_view());
        CHECK(std::equal(target.data(), target.data() + target.descriptor().bytes(), source.data()));
    }
}

TEST_CASE("unaligned elements of a mapped file are reordered") {
    const test::TemporaryFolder folder;
    const Tensor rows = counted(DataType::float32, {1, 3, 2, 2}, MemoryOrder::row_major);
    test::write_unsynced(folder / "data", "x" + std::string(reinterpret_cast<const char*>(rows.data()), 48));
    const auto file = std::make_shared<const MappedFile>(folder / "data");
    const Tensor mapped(rows.descriptor(), file, file->bytes().subspan(1));
    Tensor last(TensorDescriptor{DataType::float32, {1, 3, 2, 2}, MemoryOrder::channels_last});
    copy_to_order(mapped.view(), last.mutable_view());
    CHECK(same_elements(rows, last));
}

TEST_CASE("both orders are the same for one channel, one pixel, other ranks and no elements") {
    CHECK(same_in_both_orders(Shape{4, 1, 5, 5}));
    CHECK(same_in_both_orders(Shape{4, 7, 1, 1}));
    CHECK(same_in_both_orders(Shape{4, 7}));
    CHECK(same_in_both_orders(Shape{2, 3, 4, 5, 6, 7}));
    CHECK(same_in_both_orders(Shape{2, 3, 0}));
    CHECK_FALSE(same_in_both_orders(Shape{1, 2, 2}));
    CHECK_FALSE(same_in_both_orders(Shape{1, 2, 1, 1, 2}));
}

TEST_CASE("integer tensors are read as numbers and other types refused") {
    CHECK(integers_of(tensor_of<std::int64_t>({2}, {-1, 5}).view()) == std::vector<std::int64_t>{-1, 5});
    CHECK(integers_of(tensor_of<std::int32_t>({2}, {-1, 5}).view()) == std::vector<std::int64_t>{-1, 5});
    CHECK(error_of([] { integers_of(tensor_of<float>({1}, {1}).view()); }) ==
          "expected an int32 or int64 tensor, found float32");
}

TEST_CASE("numbers of every type are read") {
    CHECK(numbers_of(tensor_of<std::int8_t>({1}, {-128}).view()) == std::vector<double>{-128});
    CHECK(numbers_of(tensor_of<std::uint8_t>({1}, {255}).view()) == std::vector<double>{255});
    CHECK(numbers_of(tensor_of<std::int16_t>({1}, {-32768}).view()) == std::vector<double>{-32768});
    CHECK(numbers_of(tensor_of<std::uint16_t>({1}, {65535}).view()) == std::vector<double>{65535});
    CHECK(numbers_of(tensor_of<std::uint32_t>({1}, {4294967295U}).view()) ==
          std::vector<double>{4294967295.0});
    CHECK(numbers_of(tensor_of<std::int64_t>({1}, {-5}).view()) == std::vector<double>{-5});
    CHECK(numbers_of(tensor_of<std::uint64_t>({1}, {1ULL << 63U}).view()) == std::vector<double>{0x1p63});
    CHECK(numbers_of(tensor_of<double>({2}, {1e300, -0.5}).view()) == std::vector<double>{1e300, -0.5});
    CHECK_THROWS_AS(numbers_of(Tensor(TensorDescriptor{DataType::string, {0}}).view()), Error);
}

TEST_CASE("half floats become float32 exactly") {
    // Bits and values: IEEE 754 binary16 (one, least denormal, largest, -2, infinity) and bfloat16.
    Tensor half(TensorDescriptor{DataType::float16, {6}});
    const std::vector<std::uint16_t> half_bits = {0x3c00, 0x0001, 0x7bff, 0xc000, 0x7c00, 0x8000};
    std::memcpy(half.mutable_view().data, half_bits.data(), 12);
    const Tensor from_half = to_float32(half, "h");
    CHECK(from_half.type() == DataType::float32);
    CHECK(numbers_of(from_half.view()) ==
          std::vector<double>{1, 0x1p-24, 65504, -2, std::numeric_limits<double>::infinity(), -0.0});
    CHECK(std::signbit(numbers_of(from_half.view())[5]));

    Tensor brain(TensorDescriptor{DataType::bfloat16, {4}, MemoryOrder::row_major});
    const std::vector<std::uint16_t> brain_bits = {0x3f80, 0x0001, 0x7f7f, 0xc000};
    std::memcpy(brain.mutable_view().data, brain_bits.data(), 8);
    CHECK(numbers_of(to_float32(brain, "b").view()) == std::vector<double>{1, 0x1p-133, 0x1.fep127, -2});
    CHECK(numbers_of(brain.view()) == numbers_of(to_float32(brain, "b").view()));
}

TEST_CASE("every float16 number comes back from float32 with its bits") {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        if ((bits & 0x7c00U) == 0x7c00U && (bits & 0x3ffU) != 0) continue;  // NaN
        Tensor half(TensorDescriptor{DataType::float16, {1}});
        const auto stored = static_cast<std::uint16_t>(bits);
        std::memcpy(half.mutable_view().data, &stored, 2);
        std::vector<float> value = {static_cast<float>(numbers_of(half.view())[0])};
        const float before = value[0];
        round_to(DataType::float16, value);
        REQUIRE(std::memcmp(&before, value.data(), 4) == 0);
    }
}

TEST_CASE("double becomes float32 rounded, and beyond its range is an error that names the tensor") {
    const double infinity = std::numeric_limits<double>::infinity();
    const Tensor doubles = tensor_of<double>({3}, {1.0 + 0x1p-25, -infinity, 0.1});
    const Tensor floats = to_float32(doubles, "w");
    CHECK(numbers_of(floats.view()) == std::vector<double>{1.0, -infinity, static_cast<double>(0.1F)});
    CHECK(std::isnan(numbers_of(to_float32(tensor_of<double>({1}, {std::nan("")}), "w").view())[0]));
    CHECK(error_of([] {
              to_float32(tensor_of<double>({2}, {1, -1e39}), "initializer 'w'");
          }) == "initializer 'w': expected values within float32's range, found -1e+39");
}

TEST_CASE("types that are no wider or narrower floats stay as they are") {
    const Tensor floats = tensor_of<float>({1}, {1});
    CHECK(to_float32(floats, "x").data() == floats.data());
    const Tensor integers = tensor_of<std::int64_t>({1}, {1});
    CHECK(to_float32(integers, "x").type() == DataType::int64);
}

TEST_CASE("rounding to half types takes the nearest value and the even one of two equally near") {
    std::vector<float> values = {
        1 + 0x1p-11F, 1 + 3 * 0x1p-11F, 1 + 0x1p-11F + 0x1p-20F, 65519, 65520, 0x1p-25F, 0x1.8p-24F, 0.1F};
    round_to(DataType::float16, values);
    CHECK(values == std::vector<float>{1, 1 + 0x1p-9F, 1 + 0x1p-10F, 65504,
                                       std::numeric_limits<float>::infinity(), 0, 0x1p-23F, 0x1.998p-4F});
    values = {1 + 0x1p-8F, 1 + 3 * 0x1p-8F, 1 + 0x1p-8F + 0x1p-20F, 3.4e38F, -0.1F};
    round_to(DataType::bfloat16, values);
    CHECK(values == std::vector<float>{1, 1 + 0x1p-6F, 1 + 0x1p-7F, std::numeric_limits<float>::infinity(),
                                       -0x1.9ap-4F});
    values = {0.1F};
    round_to(DataType::float32, values);
    CHECK(values[0] == 0.1F);
    values = {std::nanf("")};
    round_to(DataType::float16, values);
    CHECK(std::isnan(values[0]));
    round_to(DataType::bfloat16, values);
    CHECK(std::isnan(values[0]));
}

TEST_CASE("a string tensor keeps strings of any length, in copies of its elements, too") {
    const std::vector<std::string> strings = {"",
                                              "short",
                                              std::string(24, 'a'),
                                              std::string(25, 'b'),
                                              std::string("\0x", 2),
                                              std::string(1000, 'c')};
    Tensor copy;
    {
        const Tensor original = Tensor::of_strings({2, 3}, strings);
        CHECK(strings_of(original.view()) == strings);
        copy = Tensor(original.descriptor());
        CHECK(strings_of(copy.view()) == std::vector<std::string>(6));
        copy_to_order(original.view(), copy.mutable_view());
        copy.own_elements();
    }
    CHECK(strings_of(copy.view()) == strings);
}

TEST_CASE("strings take part in a change of memory order") {
    const std::vector<std::string> strings = {"a", "b", std::string(30, 'c'), "d", "e", "f"};
    const Tensor original = Tensor::of_strings({1, 2, 3}, strings);
    Tensor other(TensorDescriptor{DataType::string, {1, 2, 3}, MemoryOrder::channels_last});
    copy_to_order(original.view(), other.mutable_view());
    CHECK(strings_of(other.view()) ==
          std::vector<std::string>{"a", "d", "b", "e", std::string(30, 'c'), "f"});
}

TEST_CASE("a sequence and an optional value own their tensors, however deep") {
    Tensor copy;
    {
        const Tensor inner = Tensor::of_tensors(
            DataType::sequence, {Tensor::of<float>({2}, std::vector<float>{1, 2}),
                                 Tensor::of_strings({1}, std::vector<std::string>{std::string(30, 's')})});
        const Tensor outer = Tensor::of_tensors(DataType::optional, {inner});
        CHECK(outer.shape() == Shape{1});
        copy = Tensor(outer.descriptor());
        CHECK(copy.view().as<TensorElement>()[0] == nullptr);
        copy_to_order(outer.view(), copy.mutable_view());
        copy.own_elements();
    }
    const Tensor& sequence = *copy.view().as<TensorElement>()[0];
    CHECK(sequence.type() == DataType::sequence);
    REQUIRE(sequence.shape() == Shape{2});
    const auto elements = sequence.view().as<TensorElement>();
    CHECK(numbers_of(elements[0]->view()) == std::vector<double>{1, 2});
    CHECK(strings_of(elements[1]->view()) == std::vector<std::string>{std::string(30, 's')});
    CHECK(Tensor::of_tensors(DataType::optional, {}).shape() == Shape{0});
}

}  // namespace qcalib
