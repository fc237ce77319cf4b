#include "tensor/npy.h"

#include <numeric>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"
#include "support/temporary_folder.h"

namespace qcalib {

namespace {

using test::TemporaryFolder;

// A file of the given format version, header text as it is, and data.
std::string npy(const std::string& header, const std::string& data, char version = 1) {
    std::string file = "\x93NUMPY";
    file += version;
    file += '\0';
    for (std::size_t i = 0; i < (version == 1 ? 2U : 4U); ++i)
        file += static_cast<char>(header.size() >> (8 * i));
    return file + header + data;
}

std::string header(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
    return "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

Tensor read(const std::string& content) {
    const TemporaryFolder folder;
    test::write_unsynced(folder / "x.npy", content);
    return read_npy(folder / "x.npy");
}

// The error of reading `content`, without its path, which must come first.
std::string error_of(const std::string& content) {
    const TemporaryFolder folder;
    const std::string path = (folder / "x.npy").string();
    test::write_unsynced(path, content);
    const std::string message = test::message_of<Error>([&] { read_npy(path); });
    REQUIRE(message.starts_with(path + ": "));
    return message.substr(path.size() + 2);
}

template <typename T>
void check_round_trip(const Shape& shape) {
    const TemporaryFolder folder;
    Tensor tensor(TensorDescriptor{data_type_of<T>(), shape, MemoryOrder::row_major});
    Random random(7);
    for (std::byte& byte : tensor.mutable_view().bytes()) {
        byte = static_cast<std::byte>(std::is_same_v<T, bool> ? random.below(2) : random.below(256));
    }
    write_npy(folder / "x.npy", tensor.view());
    const Tensor back = read_npy(folder / "x.npy");
    CHECK(back.descriptor() == tensor.descriptor());
    CHECK(std::equal(back.data(), back.data() + back.descriptor().bytes(), tensor.data()));
}

}  // namespace

TEST_CASE("tensors of every type and rank come back from .npy as they were") {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{1, 3, 4, 5}, Shape{0, 2}}) {
        CAPTURE(to_string(shape));
        check_round_trip<float>(shape);
        check_round_trip<double>(shape);
        check_round_trip<std::int8_t>(shape);
        check_round_trip<std::uint8_t>(shape);
        check_round_trip<std::int16_t>(shape);
        check_round_trip<std::uint16_t>(shape);
        check_round_trip<std::int32_t>(shape);
        check_round_trip<std::uint32_t>(shape);
        check_round_trip<std::int64_t>(shape);
        check_round_trip<std::uint64_t>(shape);
        check_round_trip<bool>(shape);
    }
}

TEST_CASE("a written .npy file is what numpy.save writes") {
    const TemporaryFolder folder;
    const std::vector<float> values = {0.5, -1};
    write_npy(folder / "x.npy", Tensor::of<float>({1, 2}, std::span<const float>(values)).view());
    // numpy 1.26: numpy.save("x.npy", numpy.array([[0.5, -1]], dtype=numpy.float32))
    std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
    text.resize(117, ' ');
    const std::string data("\0\0\0\x3f\0\0\x80\xbf", 8);
    CHECK(read_text_file(folder / "x.npy") == npy(text + "\n", data));

    write_npy(folder / "s.npy", Tensor::of<float>({1}, std::span<const float>(values).first(1)).view());
    CHECK(read_text_file(folder / "s.npy").find("'shape': (1,), }") != std::string::npos);
    write_npy(folder / "s.npy", Tensor::of<float>({}, std::span<const float>(values).first(1)).view());
    CHECK(read_text_file(folder / "s.npy").find("'shape': (), }") != std::string::npos);
    CHECK(read_text_file(folder / "s.npy").size() == 128 + 4);
}

TEST_CASE("a channels-last tensor is written in the order of its logical shape") {
    const TemporaryFolder folder;
    std::vector<float> values(24);
    std::iota(values.begin(), values.end(), 0.0F);
    const Tensor rows = Tensor::of<float>({1, 2, 3, 4}, std::span<const float>(values));
    Tensor last(TensorDescriptor{DataType::float32, {1, 2, 3, 4}, MemoryOrder::channels_last});
    copy_to_order(rows.view(), last.mutable_view());
    write_npy(folder / "x.npy", last.view());
    const Tensor back = read_npy(folder / "x.npy");
    CHECK(back.descriptor() == rows.descriptor());
    CHECK(numbers_of(back.view()) == numbers_of(rows.view()));
}

TEST_CASE("float16 is kept in .npy and bfloat16, which numpy lacks, refused") {
    const TemporaryFolder folder;
    const Tensor half(TensorDescriptor{DataType::float16, {3}});
    write_npy(folder / "x.npy", half.view());
    CHECK(read_npy(folder / "x.npy").type() == DataType::float16);
    const Tensor brain(TensorDescriptor{DataType::bfloat16, {3}});
    CHECK(test::message_of<Error>([&] { write_npy(folder / "b.npy", brain.view()); }) ==
          (folder / "b.npy").string() + ": .npy has no type for bfloat16");
    CHECK_FALSE(std::filesystem::exists(folder / "b.npy"));
}

TEST_CASE("all formats of .npy and all ways to write its header are read") {
    const std::string two("\1\0\2\0", 4);
    for (const char version : {1, 2, 3}) {
        CHECK(numbers_of(read(npy(header("'<i2'", "(2,)"), two, version)).view()) ==
              std::vector<double>{1, 2});
    }
    for (const char* descr : {"'=i2'", "'i2'", "'|i2'", "\"<i2\""}) {
        CHECK(numbers_of(read(npy(header(descr, "(2,)"), two)).view()) == std::vector<double>{1, 2});
    }
    CHECK(read(npy("{\"shape\":(1,2),'fortran_order':False,'descr':'<i2'}", two)).shape() == Shape{1, 2});
    CHECK(read(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (1L, 2L)}  \n", two)).shape() ==
          Shape{1, 2});
    CHECK(read(npy(header("'<i2'", "( 2 , 1 , )"), two)).shape() == Shape{2, 1});
    CHECK(read(npy(header("'>u1'", "(4,)"), two)).type() == DataType::uint8);
    CHECK(read(npy(header("'?'", "(4,)"), two)).type() == DataType::boolean);
}

TEST_CASE("any byte of a stored bool but zero is read as one") {
    const Tensor tensor = read(npy(header("'|b1'", "(3,)"), std::string("\0\1\xfe", 3)));
    CHECK(tensor.type() == DataType::boolean);
    CHECK(numbers_of(tensor.view()) == std::vector<double>{0, 1, 1});
}

TEST_CASE("fortran order, foreign byte order and foreign types are refused by name") {
    const std::string data(16, '\0');
    CHECK(error_of(npy(header("'<f4'", "(2, 2)", "True"), data)) ==
          "expected an array in C order, found fortran order (numpy.ascontiguousarray makes it C order)");
    CHECK(error_of(npy(header("'>f4'", "(4,)"), data)) == "expected little-endian numbers, found type '>f4'");
    CHECK(error_of(npy(header("'<c8'", "(2,)"), data)) ==
          "expected a .npy file of numbers, found type '<c8'");
    CHECK(error_of(npy(header("'|O'", "(2,)"), data)) == "expected a .npy file of numbers, found type '|O'");
    CHECK(error_of(npy(header("'<U4'", "(1,)"), data)) ==
          "expected a .npy file of numbers, found type '<U4'");
    CHECK(error_of(npy(header("''", "(1,)"), data)) == "expected a .npy file of numbers, found type ''");
    CHECK(error_of(npy(header("[('a', '<f4')]", "(4,)"), data)) ==
          "expected a .npy file of numbers, found records of several fields");
}

TEST_CASE("data of another size than the shape asks for is refused with both") {
    CHECK(error_of(npy(header("'<f4'", "(2, 2)"), std::string(12, '\0'))) ==
          "expected 4 elements of 4 bytes for float32 [2,2], found 12 bytes");
    CHECK(error_of(npy(header("'<f4'", "(2, 2)"), std::string(17, '\0'))) ==
          "expected 4 elements of 4 bytes for float32 [2,2], found 17 bytes");
    CHECK(
        error_of(npy(header("'<f8'", "(4611686018427387904,)"), std::string(16, '\0'))) ==
        "expected 4611686018427387904 elements of 8 bytes for float64 [4611686018427387904], found 16 bytes");
    CHECK(error_of(npy(header("'<f4'", "(4611686018427387904, 4)"), "")) ==
          "shape [4611686018427387904,4]: more elements than can be addressed");
}

TEST_CASE("what is no .npy file is refused") {
    CHECK(error_of("") == "expected a .npy file, found an empty one");
    CHECK(error_of("PK\3\4 this is an npz") == "expected a .npy file, found another kind of file");
    CHECK(error_of("\x93NUMPY") == "expected a .npy file, found another kind of file");
    CHECK(error_of(std::string("\x93NUMPY\4\0\2\0{}", 12)) == "expected .npy format 1 to 3, found 4");
    CHECK(error_of(std::string("\x93NUMPY\1\0\2", 9)) == "expected a .npy header, found the file's end");
    CHECK(error_of(std::string("\x93NUMPY\1\0\xff\xff{}", 12)) ==
          "expected a .npy header of 65535 bytes, found 2");
}

TEST_CASE("a malformed header is refused with what stands in the place") {
    CHECK(error_of(npy("{'descr': '<f4'}", "")) == ".npy header: expected an order, found no fortran_order");
    CHECK(error_of(npy("{'descr': '<f4', 'fortran_order': False}", "")) ==
          ".npy header: expected a shape, found none");
    CHECK(error_of(npy("{}", "")) == ".npy header: expected a type, found no descr");
    CHECK(error_of(npy("", "")) == ".npy header: expected '{', found its end");
    CHECK(error_of(npy("{'descr': '<f4", "")) == ".npy header: expected a type such as '<f4', found ''<f4'");
    CHECK(error_of(npy("{'descr' '<f4'}", "")) == ".npy header: expected ':', found ''<f4'}'");
    CHECK(error_of(npy(header("'<f4'", "(2"), "")) == ".npy header: expected a dimension, found '}\\x0a'");
    CHECK(error_of(npy(header("'<f4'", "(-2,)"), ""))
              .starts_with(".npy header: expected a dimension, found '-2,)"));
    CHECK(error_of(npy(header("'<f4'", "(99999999999999999999,)"), ""))
              .starts_with(".npy header: expected a dimen"));
    CHECK(error_of(npy(header("'<f4'", "(1,)", "maybe"), ""))
              .starts_with(".npy header: expected True or False"));
    CHECK(error_of(npy(header("'<f4'", "(1,)") + "x", "")) ==
          ".npy header: expected nothing after the dictionary, found 'x'");
    CHECK(error_of(npy("{'name': 1}", "")) ==
          ".npy header: expected the keys descr, fortran_order and shape, found 'name'");
}

TEST_CASE("a cut or changed .npy file is read or refused but never worse") {
    const TemporaryFolder folder;
    std::vector<float> values(12, 1.0F);
    write_npy(folder / "x.npy", Tensor::of<float>({3, 4}, std::span<const float>(values)).view());
    const std::string whole = read_text_file(folder / "x.npy");
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CHECK_FALSE(error_of(whole.substr(0, size)).empty());
    }
    Random random(11);
    for (int i = 0; i < 2000; ++i) {
        std::string changed = whole;
        changed[random.below(80)] = static_cast<char>(random.below(256));
        test::write_unsynced(folder / "y.npy", changed);
        try {
            const Tensor tensor = read_npy(folder / "y.npy");
            CHECK(tensor.descriptor().bytes() == 48);
        } catch (const Error& error) {
            CHECK(std::string_view(error.what()).starts_with((folder / "y.npy").string()));
        }
    }
}

}  // namespace qcalib
