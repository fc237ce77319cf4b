#include <doctest/doctest.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "graph/model_files.h"

namespace qcalib {

namespace {

using namespace test;  // NOLINT: the builder's vocabulary

constexpr auto float32 = DataType::float32;

std::string floats(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// A folder with m.onnx, whose initializers t0, t1, ... are the given ones, and w.bin, which holds 0, 1,
// ... 7.
struct ExternalCase {
    TemporaryFolder folder;
    OnnxModel model;

    explicit ExternalCase(const std::vector<OnnxTensor>& tensors) {
        write_unsynced(folder / "w.bin", floats({0, 1, 2, 3, 4, 5, 6, 7}));
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            OnnxTensor tensor = tensors[i];
            tensor.name = fmt::format("t{}", i);
            model.graph.initializer(tensor).output(tensor.name);
        }
        model.save(folder / "m.onnx");
    }

    Model load() const { return read_onnx_file(folder / "m.onnx"); }
    std::string error() const { return error_of_file(folder / "m.onnx"); }
};

OnnxTensor at(const std::string& location, std::int64_t offset = -1, std::int64_t length = -1,
              Shape shape = {2}) {
    return OnnxTensor::external_file("", float32, std::move(shape), location, offset, length);
}

std::string error_of_location(const std::string& location) {
    return ExternalCase({at(location)}).error();
}

}  // namespace

TEST_CASE("external data is read in place from its offset") {
    const ExternalCase test({at("w.bin"), at("w.bin", 12), at("w.bin", 24, 8), at("./w.bin", 0, 32, {2, 4}),
                             at("w.bin", 32, 0, {0})});
    const Model model = test.load();
    const auto numbers = [&](const std::string& name) {
        return numbers_of(value(*model.graph, name).initializer->view());
    };
    CHECK(numbers("t0") == std::vector<double>{0, 1});
    CHECK(numbers("t1") == std::vector<double>{3, 4});
    CHECK(numbers("t2") == std::vector<double>{6, 7});
    CHECK(numbers("t3").size() == 8);
    CHECK(numbers("t4").empty());
    CHECK(value(*model.graph, "t1").initializer->mapped());
    // One mapping serves all names of a file.
    CHECK(value(*model.graph, "t1").initializer->data() ==
          value(*model.graph, "t3").initializer->data() + 12);
}

TEST_CASE("external data may lie in a folder below the model and be converted") {
    ExternalCase test({at("sub/../sub/d.bin", 2)});
    test.model.graph.initializers[0].data_type = onnx_type(DataType::float16);
    test.model.save(test.folder / "m.onnx");
    std::filesystem::create_directory(test.folder / "sub");
    write_unsynced(test.folder / "sub/d.bin", std::string("\0\0\0\x3c\0\xc0", 6));
    const Model model = test.load();
    CHECK(numbers_of(value(*model.graph, "t0").initializer->view()) == std::vector<double>{1, -2});
}

TEST_CASE("the model's hash covers its external files once each in the order of first use") {
    ExternalCase test({at("v.bin"), at("w.bin"), at("./v.bin", 8)});
    write_unsynced(test.folder / "v.bin", floats({9, 8, 7, 6}));
    Sha256 hash;
    for (const char* name : {"m.onnx", "v.bin", "w.bin"}) {
        const std::string bytes = read_text_file(test.folder / name);
        hash.update(std::as_bytes(std::span(bytes)));
    }
    const std::string expected = to_hex(hash.finish());
    CHECK(test.load().hash == expected);
    write_unsynced(test.folder / "w.bin", floats({0, 1, 2, 3, 4, 5, 6, 8}));
    CHECK(test.load().hash != expected);
}

TEST_CASE("a model named without a folder finds its external data beside it") {
    const ExternalCase test({at("w.bin", 4)});
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(test.folder.path());
    const Model model = read_onnx_file("m.onnx");
    std::filesystem::current_path(before);
    CHECK(numbers_of(value(*model.graph, "t0").initializer->view()) == std::vector<double>{1, 2});
}

TEST_CASE("external data outside the model's folder is refused") {
    const TemporaryFolder elsewhere;
    write_unsynced(elsewhere / "w.bin", floats({1, 2}));
    const std::string absolute = (elsewhere / "w.bin").string();
    CHECK(error_of_location(absolute) ==
          "external data '" + absolute +
              "' of initializer 't0': expected a path relative to the model's folder, "
              "found an absolute one");
    for (const char* location : {"../w.bin", "..", "sub/../../w.bin", "./../w.bin", "a/b/../../../w.bin"}) {
        CAPTURE(location);
        CHECK(error_of_location(location).ends_with(
            "expected a path inside the model's folder, found one that leads out of it"));
    }
}

TEST_CASE("links are followed inside the model's folder and refused where they leave it") {
    const TemporaryFolder elsewhere;
    write_unsynced(elsewhere / "w.bin", floats({1, 2}));
    const ExternalCase test({at("link.bin"), at("out/w.bin"), at("far.bin")});
    std::filesystem::create_symlink("w.bin", test.folder / "link.bin");
    std::filesystem::create_directory_symlink(elsewhere.path(), test.folder / "out");
    std::filesystem::create_symlink(elsewhere / "w.bin", test.folder / "far.bin");
    CHECK(test.error() ==
          "2 problems:\n"
          "  - external data 'out/w.bin' of initializer 't1': expected a path inside the model's folder, "
          "found a link "
          "that leads out of it\n"
          "  - external data 'far.bin' of initializer 't2': expected a path inside the model's folder, found "
          "a link "
          "that leads out of it");
}

TEST_CASE("a folder whose name begins as the model's folder does is outside of it") {
    const TemporaryFolder parent;
    std::filesystem::create_directories(parent / "model");
    std::filesystem::create_directories(parent / "model-other");
    write_unsynced(parent / "model-other/w.bin", floats({1, 2}));
    std::filesystem::create_symlink(parent / "model-other/w.bin", parent / "model/w.bin");
    OnnxModel model;
    model.graph.initializer(OnnxTensor::external_file("t", float32, {2}, "w.bin")).output("t");
    model.save(parent / "model/m.onnx");
    CHECK(error_of_file(parent / "model/m.onnx").ends_with("found a link that leads out of it"));
}

TEST_CASE("a file that is missing or no file is told once with the tensors that need it") {
    const ExternalCase test(
        {at("none.bin"), at("w.bin"), at("none.bin"), at("none.bin", 4), at("sub"), at("pipe")});
    std::filesystem::create_directory(test.folder / "sub");
    REQUIRE(::mkfifo((test.folder / "pipe").c_str(), 0600) == 0);
    const std::string root = std::filesystem::canonical(test.folder.path()).string();
    CHECK(test.error() ==
          "3 problems:\n"
          "  - external data 'none.bin' of initializer 't0' and 2 more: cannot be read: No such file "
          "or directory\n"
          "  - external data 'sub' of initializer 't4': " +
              root + "/sub: expected a file, found a folder\n" +
              "  - external data 'pipe' of initializer 't5': " + root +
              "/pipe: expected a file, found no regular file");
    CHECK(error_of_location("") ==
          "external data '' of initializer 't0': expected a file name, found an empty one");
    CHECK(error_of_location(std::string("w.bin\0x", 7)) ==
          "external data 'w.bin\\x00x' of initializer 't0': expected a file name, found a zero byte in it");
}

TEST_CASE("offsets and lengths are checked against the file and the shape") {
    const auto error = [](const OnnxTensor& tensor) { return ExternalCase({tensor}).error(); };
    const std::string too_small =
        "initializer 't0': external data 'w.bin': expected 2 elements of 4 bytes from byte ";
    CHECK(error(at("w.bin", 28)) == too_small + "28 on, found a file of 32 bytes");
    CHECK(error(at("w.bin", 33)) == too_small + "33 on, found a file of 32 bytes");
    CHECK(error(at("w.bin", std::numeric_limits<std::int64_t>::max())) ==
          too_small + "9223372036854775807 on, found a file of 32 bytes");
    CHECK(error(at("w.bin", 0, 12)) ==
          "initializer 't0': expected 2 elements of 4 bytes for float32 [2], found 12 bytes");
    CHECK(error(at("w.bin", 0, -1, {std::int64_t{1} << 62})).find("expected 4611686018427387904 elements") !=
          std::string::npos);
    OnnxTensor odd = at("w.bin");
    odd.external.emplace_back("offset", "-4");
    CHECK(error(odd) == "initializer 't0': external data: expected a number of bytes as offset, found '-4'");
    odd.external.back() = {"length", "8 bytes"};
    CHECK(error(odd) ==
          "initializer 't0': external data: expected a number of bytes as length, found '8 bytes'");
    odd.external.back() = {"offset", "99999999999999999999"};
    CHECK(error(odd).find("expected a number of bytes as offset") != std::string::npos);
    odd.external.back() = {"checksum", "da39a3ee"};
    CHECK(error(odd).empty());
    odd.external = {{"offset", "0"}};
    CHECK(error(odd) == "initializer 't0': external data: expected a location, found none");
    odd = at("w.bin");
    odd.floats = {1, 2};
    CHECK(error(odd) == "initializer 't0': expected data in one place, found it in several");
    odd = at("w.bin");
    odd.data_type = onnx_type(DataType::string);
    CHECK(error(odd) == "initializer 't0': expected strings in string_data, found raw data");
}

}  // namespace qcalib
