#include "dataset/sample_source.h"

#include <doctest/doctest.h>

#include "array_files.h"
#include "dataset/sample_reader.h"
#include "dataset/sequence.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

namespace fs = std::filesystem;
using Values = std::vector<double>;
constexpr auto open = std::nullopt;

InputSpec input(const std::string& name, std::vector<std::optional<std::int64_t>> shape,
                DataType type = DataType::float32) {
    return {name, type, std::move(shape), true};
}

InputSpec with_value(InputSpec spec, float value) {
    spec.otherwise = floats({1}, {value});
    return spec;
}

// A source read for some inputs.
struct Source {
    std::vector<InputSpec> inputs;
    Remarks remarks;
    std::vector<ListEntry> entries;

    Source(const fs::path& path, std::vector<InputSpec> specs) : inputs(std::move(specs)) {
        entries = read_sample_source(path.string(), inputs, remarks);
    }
    Values values(std::size_t sample, std::size_t index = 0) const {
        return numbers_of(SampleReader(inputs, {}).read(entries[sample])[index].view());
    }
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const ListEntry& entry : entries) names.push_back(entry.files[0].filename().string());
        return names;
    }
};

std::string source_error(const fs::path& path, const std::vector<InputSpec>& inputs) {
    const std::string message = error_of([&] { const Source source(path, inputs); });
    const std::string prefix = path.string();
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

const std::vector<InputSpec> x_of_2{input("x", {1, 2})};
const std::vector<InputSpec> x_and_y{input("x", {1, 2}), input("y", {1})};

}  // namespace

TEST_CASE("A folder's files are samples in the order of their bytes; hidden ones and folders are left out") {
    const ArrayFolder folder;
    for (const char* name : {"b.npy", "a.npy", "B.npy", ".hidden.npy", "sub/c.npy"}) {
        folder.write(name, "");
        folder.npy(name, floats({1, 2}, {1, 2}));
    }
    const Source source(folder.path(), x_of_2);
    CHECK(source.names() == std::vector<std::string>{"B.npy", "a.npy", "b.npy"});
    CHECK(source.entries[2].line == 3);
    CHECK(source.values(1) == Values{1, 2});
    fs::create_directory(folder.path() / "empty");
    CHECK(source_error(folder.path() / "empty", x_of_2) ==
          ": expected files in this folder, a sample each, found none");
}

TEST_CASE("A pattern's wildcards match within one part of a path") {
    const ArrayFolder folder;
    for (const char* name :
         {"one/10.raw", "one/9.raw", "two/8.raw", "two/8.txt", "two/deep/7.raw", "one/.6.raw"}) {
        folder.write(name, "12345678");
    }
    CHECK(Source(folder.path() / "*/*.raw", x_of_2).names() ==
          std::vector<std::string>{"10.raw", "9.raw", "8.raw"});
    CHECK(Source(folder.path() / "one/?.raw", x_of_2).names() == std::vector<std::string>{"9.raw"});
    CHECK(source_error(folder.path() / "three/*.raw", x_of_2) == ": no file matches this pattern");
    CHECK(source_error(folder.path() / "*.raw", x_of_2) == ": no file matches this pattern");
    const WorkingDirectory inside(folder.path());
    CHECK(Source("t*/8.???", x_of_2).names() == std::vector<std::string>{"8.raw", "8.txt"});
    folder.write("odd*name", "two/8.raw\n");
    CHECK(Source("odd*name", x_of_2).names() == std::vector<std::string>{"8.raw"});  // a list of that name
}

TEST_CASE("One file a sample fills one input, or as .npz all of them") {
    const ArrayFolder folder;
    folder.npz("0.npz", {{"y", floats({1}, {3})}, {"x", floats({2}, {1, 2})}});
    folder.npz("1.npz", {{"x", floats({1, 2}, {4, 5})}, {"y", floats({1}, {6})}});
    const Source source(folder.path() / "*.npz", x_and_y);
    CHECK(source.values(0, 0) == Values{1, 2});
    CHECK(source.values(0, 1) == Values{3});
    CHECK(source.values(1, 0) == Values{4, 5});
    const ArrayFolder other;
    other.npy("a.npy", floats({1, 2}, {1, 2}));
    CHECK(source_error(other.path(), x_and_y) == ": a file fills one input, the model asks for 2, found " +
                                                     (other.path() / "a.npy").string() +
                                                     "; use .npz files with an array for each of x and y, "
                                                     "raw files with the data of all one after the "
                                                     "other, or a list");
}

TEST_CASE("A .npz file in a list is named for all inputs, and each finds its array by name") {
    const ArrayFolder folder;
    folder.npz("a.npz", {{"x", floats({2}, {1, 2})}, {"y", floats({1}, {3})}});
    folder.npz("b.npz", {{"arr_0", floats({2}, {4, 5})}});
    const fs::path both = folder.write("both.txt", "a.npz\n");
    CHECK(Source(both, x_and_y).values(0, 1) == Values{3});
    const fs::path one = folder.write("one.txt", "b.npz\na.npz\n");
    const Source only(one, x_of_2);
    CHECK(only.values(0) == Values{4, 5});  // the one array it has
    CHECK(only.values(1) == Values{1, 2});
    const fs::path split = folder.write("split.txt", "x:=b.npz y:=a.npz\n");
    CHECK(Source(split, x_and_y).values(0, 0) == Values{4, 5});
    const fs::path lacking = folder.write("lacking.txt", "b.npz\n");
    const Source bad(lacking, x_and_y);
    CHECK(error_of([&] { bad.values(0, 0); }) ==
          (folder.path() / "b.npz").string() + ": no array for input 'x'; found 'arr_0'");
    const Source with_default(lacking, {input("x", {1, 2}), with_value(input("y", {1}), 7)});
    CHECK(with_default.values(0, 0) == Values{4, 5});
    CHECK(with_default.values(0, 1) == Values{7});
}

TEST_CASE("A .npy file is cut into samples along its first axis") {
    const ArrayFolder folder;
    const Source source(folder.npy("s.npy", counting({3, 2})), x_of_2);
    REQUIRE(source.entries.size() == 3);
    CHECK(source.values(0) == Values{0, 1});
    CHECK(source.values(2) == Values{4, 5});
    CHECK(source.entries[2].line == 3);
    CHECK(Source(folder.npy("t.npy", counting({2, 1, 2})), x_of_2).values(1) == Values{2, 3});
    CHECK(source_error(folder.npy("scalar.npy", floats({}, {1})), x_of_2) ==
          ": expected an axis of samples in front, found a single number");
    CHECK(source_error(folder.npy("none.npy", floats({0, 2}, {})), x_of_2) ==
          ": expected samples along the first axis, found none");
    CHECK(source_error(folder.npy("s.npy", counting({3, 2})), x_and_y)
              .starts_with(": a .npy file has the samples of one input, the model asks for 2; "));
    const Source wrong(folder.npy("w.npy", counting({2, 3})), x_of_2);
    CHECK(error_of([&] { wrong.values(1); }) ==
          (folder.path() / "w.npy").string() +
              ", sample 1: expected shape [1,2] for input 'x' [1,2], found [3]");
    CHECK(describe_source({1, {wrong.entries[1]}}) == (folder.path() / "w.npy").string() + ", sample 1");
}

TEST_CASE("A .npz file has an array for each input, with samples along the first axis") {
    const ArrayFolder folder;
    for (const bool compressed : {false, true}) {
        CAPTURE(compressed);
        const fs::path file =
            folder.npz("s.npz", {{"y", floats({4}, {10, 11, 12, 13})}, {"x", counting({4, 2})}}, compressed);
        const Source source(file, x_and_y);
        REQUIRE(source.entries.size() == 4);
        for (const std::size_t sample : {3U, 0U, 2U, 1U, 1U, 3U}) {
            CHECK(source.values(sample, 0) == Values{2.0 * sample, 2.0 * sample + 1});
            CHECK(source.values(sample, 1) == Values{10.0 + sample});
        }
        CHECK(source.remarks.empty());
    }
}

TEST_CASE("A compressed .npz file is read in any order, far behind and ahead of where it was read last") {
    const ArrayFolder folder;
    const Source source(folder.npz("s.npz", {{"x", counting({300, 2})}}, true), x_of_2);
    for (const std::size_t sample : {299U, 298U, 236U, 235U, 0U, 1U, 150U, 149U, 20U, 299U}) {
        CHECK(source.values(sample) == Values{2.0 * sample, 2.0 * sample + 1});
    }
}

TEST_CASE("Arrays that no input takes are a remark, those that are missing an error with the nearest name") {
    const ArrayFolder folder;
    const fs::path file = folder.npz("s.npz", {{"image", counting({2, 2})}, {"labels", floats({2}, {0, 1})}});
    const Source source(file, {input("image", {1, 2})});
    CHECK(source.remarks.all() ==
          std::vector<std::string>{file.string() + ": an array is left out, which no input takes: 'labels'"});
    CHECK(source_error(file, {input("imaeg", {1, 2})}) ==
          ": no array for input 'imaeg' (did you mean 'image'?); found 'image', 'labels'");
    const fs::path uneven = folder.npz("u.npz", {{"x", counting({3, 2})}, {"y", floats({2}, {0, 1})}});
    CHECK(source_error(uneven, x_and_y) == ", array 'y': expected 3 samples along the first axis, as in " +
                                               uneven.string() + ", array 'x', found 2");
}

TEST_CASE("Files that are no archives, or damaged ones, are refused by name") {
    const ArrayFolder folder;
    CHECK(source_error(folder.write("a.npz", "nonsense"), x_of_2)
              .starts_with(": expected a .npz file, a zip archive of .npy files: "));
    CHECK(source_error(folder.path() / "none.npz", x_of_2).starts_with(": "));
    CHECK(source_error(folder.write("a.h5", "nonsense"), x_of_2) ==
          ": expected an HDF5 file, found another kind of file");
    for (const bool compressed : {false, true}) {
        const fs::path whole = folder.npz("w.npz", {{"x", counting({40, 2})}}, compressed);
        const std::string bytes = bytes_of(whole);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            std::string damaged = bytes;
            damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
            const fs::path file = folder.write("d.npz", damaged);
            const std::string message = error_of([&] {
                const Source source(file, x_of_2);
                for (std::size_t s = 0; s < source.entries.size(); ++s) static_cast<void>(source.values(s));
            });
            CHECK((message.empty() || message.starts_with(file.string())));
        }
    }
}

TEST_CASE("An .h5 file has a data set for each input, of any byte order, compressed or not") {
    const ArrayFolder folder;
    const fs::path file = folder.path() / "s.h5";
    Hdf5Writer(file)
        .add<float>("x", {3, 2}, {0, 1, 2, 3, 4, 5}, H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, 6)
        .add<std::int64_t>("nested/ids", {3, 1}, {7, 8, 9}, H5T_STD_I64LE, H5T_NATIVE_INT64)
        .add_floats("extra", {1}, {1});
    const Source source(file, {input("x", {1, 2}), input("nested/ids", {1, 1}, DataType::int64)});
    REQUIRE(source.entries.size() == 3);
    CHECK(source.values(2, 0) == Values{4, 5});
    CHECK(source.values(1, 1) == Values{8});
    CHECK(source.remarks.all() ==
          std::vector<std::string>{file.string() + ": an array is left out, which no input takes: 'extra'"});
    CHECK(Source(file, {input("/x", {1, 2})}).values(1) == Values{2, 3});
    CHECK(source_error(file, {input("z", {1, 2})}) ==
          ": no array for input 'z'; found 'extra', 'nested/ids', 'x'");
}

TEST_CASE("An .h5 file of records has a group for each sample, with types or as bytes") {
    const ArrayFolder folder;
    const fs::path typed = folder.path() / "typed.h5";
    Hdf5Writer(typed)
        .add_floats("value/0/0", {1, 2}, {1, 2})
        .add_floats("value/0/1", {1}, {3})
        .add_floats("value/1/0", {1, 2}, {4, 5})
        .add_floats("value/1/1", {1}, {6});
    const Source source(typed, x_and_y);
    REQUIRE(source.entries.size() == 2);
    CHECK(source.values(1, 0) == Values{4, 5});
    CHECK(source.values(1, 1) == Values{6});
    CHECK(source_error(typed, x_of_2) ==
          ": expected 1 data sets in group 'value/0', one for each input in the model's order, found 2");

    const fs::path raw = folder.path() / "raw.h5";
    Hdf5Writer(raw)
        .add<std::uint8_t>("value/0/0", {8}, {0, 0, 128, 63, 0, 0, 0, 64}, H5T_STD_U8LE, H5T_NATIVE_UINT8)
        .add<std::uint8_t>("value/1/0", {4}, {0, 0, 0, 0}, H5T_STD_U8LE, H5T_NATIVE_UINT8)
        .attribute("value", "rawData");
    const Source bytes(raw, x_of_2);
    CHECK(bytes.values(0) == Values{1, 2});
    CHECK(error_of([&] { bytes.values(1); })
              .starts_with(raw.string() +
                           ", data set 'value/1/0': expected 8 bytes (float32 for input 'x' [1,2])"));

    const fs::path gap = folder.path() / "gap.h5";
    Hdf5Writer(gap).add_floats("value/0/0", {1, 2}, {1, 2}).add_floats("value/3/0", {1, 2}, {4, 5});
    const Source missing(gap, x_of_2);
    CHECK(missing.values(0) == Values{1, 2});
    CHECK(error_of([&] { missing.values(1); }) ==
          gap.string() + ", data set 'value/1/0': there is no such data set");
}

TEST_CASE("Each record of an .h5 file must have a data set for each input, of its type and shape") {
    const ArrayFolder folder;
    const fs::path uneven = folder.path() / "uneven.h5";
    Hdf5Writer(uneven)
        .add_floats("value/0/0", {1, 2}, {1, 2})
        .add_floats("value/1/0", {1, 2}, {4, 5})
        .add_floats("value/1/1", {1}, {6})
        .add_floats("value/2/0", {1, 3}, {7, 8, 9})
        .add<std::int32_t>("value/3/0", {1, 2}, {1, 2}, H5T_STD_I32BE, H5T_NATIVE_INT32);
    const Source source(uneven, x_of_2);
    CHECK(source.values(0) == Values{1, 2});
    CHECK(error_of([&] { source.values(1); }) ==
          uneven.string() +
              ": expected 1 data sets in group 'value/1', one for each input in the model's order, "
              "found 2");
    CHECK(error_of([&] { source.values(2); }) ==
          uneven.string() + ", data set 'value/2/0': expected shape [1,2] for input 'x' [1,2], found [1,3]");
    CHECK(error_of([&] { source.values(3); })
              .starts_with(uneven.string() +
                           ", data set 'value/3/0': expected float32 for input 'x' [1,2], found "
                           "int32"));
    const Source integers(uneven, {input("x", {1, 2}, DataType::int32)});
    CHECK(integers.values(3) == Values{1, 2});
}

TEST_CASE("Data in other files, and types that no tensor has, are refused") {
    const ArrayFolder folder;
    const fs::path file = folder.path() / "s.h5";
    Hdf5Writer(file).add_floats("y", {2, 1}, {1, 2}).external_link("x", "/etc/other.h5");
    CHECK(source_error(file, x_of_2) == ": 'x' is a link into another file");
    const fs::path odd = folder.path() / "odd.h5";
    Hdf5Writer(odd).add<std::int32_t>("x", {2, 2}, {1, 2, 3, 4}, H5T_STD_B32LE, H5T_NATIVE_B32);
    CHECK(source_error(odd, x_of_2) ==
          ", data set 'x': expected numbers of 8 to 64 bits or bools, found another type");
    const fs::path doubles = folder.path() / "doubles.h5";
    Hdf5Writer(doubles).add<double>("x", {2, 2}, {1, 2, 3, 4}, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE);
    const Source wide(doubles, x_of_2);
    CHECK(error_of([&] { wide.values(0); }) ==
          doubles.string() +
              ", data set 'x', sample 0: expected float32 for input 'x' [1,2], found float64; "
              "convert it with numpy's astype('float32')");
}

TEST_CASE("A damaged .h5 file is an error that names it, or reads") {
    const ArrayFolder folder;
    const fs::path whole = folder.path() / "w.h5";
    Hdf5Writer(whole).add<float>("x", {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1);
    const std::string bytes = bytes_of(whole);
    const auto message_for = [&](const std::string& content) {
        const fs::path file = folder.write("d.h5", content);
        const std::string message = error_of([&] {
            const Source source(file, x_of_2);
            for (std::size_t s = 0; s < source.entries.size(); ++s) static_cast<void>(source.values(s));
        });
        CHECK((message.empty() || message.starts_with(file.string())));
        return message;
    };
    CHECK(message_for(bytes).empty());
    for (std::size_t size = 0; size < bytes.size(); size += 97)
        CHECK(!message_for(bytes.substr(0, size)).empty());
    for (std::size_t i = 0; i < bytes.size(); i += 7) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
        message_for(damaged);
    }
}

TEST_CASE("Samples of a store make batches and sequences as files do") {
    const ArrayFolder folder;
    std::vector<InputSpec> batch{input("x", {2, 2})};
    const Source items(folder.npy("s.npy", counting({4, 2})), batch);
    CHECK(group_size(items.entries, batch) == 2);
    const SampleReader reader(batch, {});
    CHECK(numbers_of(reader.read(SelectedSample{1, {items.entries[2], items.entries[3]}})[0].view()) ==
          Values{4, 5, 6, 7});
    const Source whole(folder.npy("w.npy", counting({3, 2, 2})), batch);
    CHECK(group_size(whole.entries, batch) == 1);

    const Source steps(folder.npz("q.npz", {{"x", counting({2, 3, 2})}}), x_of_2);
    const Sequence sequence(steps.entries[1], steps.inputs, {});
    CHECK(sequence.steps() == 3);
    CHECK(numbers_of(sequence.step(2)[0].view()) == Values{10, 11});
}
