#include "dataset/sample_list.h"

#include <doctest/doctest.h>

#include "sample_files.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

namespace fs = std::filesystem;

std::vector<InputSpec> inputs_named(const std::vector<std::string>& names) {
    std::vector<InputSpec> inputs;
    for (const std::string& name : names) inputs.push_back({name, DataType::float32, {1}, true});
    return inputs;
}

// A list with `text`, read for a model with inputs of these names.
struct List {
    SampleFolder folder;
    std::vector<InputSpec> inputs;
    Remarks remarks;

    explicit List(const std::vector<std::string>& names) : inputs(inputs_named(names)) {}

    std::vector<ListEntry> read(std::string_view text) {
        return read_sample_list(folder.write("list.txt", text), inputs, remarks);
    }
    fs::path at(const std::string& name) const { return folder.path() / name; }
    // The error, without the folder's path.
    std::string error(std::string_view text) {
        std::string message = error_of([&] { read(text); });
        const std::string prefix = folder.path().string() + "/";
        return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
    }
};

}  // namespace

TEST_CASE("With one input a line is a path, blanks inside included and around it not") {
    List list({"image"});
    const auto entries = list.read("a.raw\n  my picture (1).png \t\n\n/abs/c d.raw");
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].line == 1);
    CHECK(entries[0].files == std::vector{list.at("a.raw")});
    CHECK(entries[1].line == 2);
    CHECK(entries[1].files == std::vector{list.at("my picture (1).png")});
    CHECK(entries[2].line == 4);
    CHECK(entries[2].files == std::vector<fs::path>{"/abs/c d.raw"});
    CHECK(list.remarks.empty());
}

TEST_CASE("With one input its name may stand before the path") {
    List list({"input:0"});
    const auto entries = list.read("input:0:=my a.raw\n  input:0:= b.raw\nc.raw\n");
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].files == std::vector{list.at("my a.raw")});
    CHECK(entries[1].files == std::vector{list.at("b.raw")});
    CHECK(entries[2].files == std::vector{list.at("c.raw")});
}

TEST_CASE("A file whose name has := in it is a path, and an unknown name otherwise") {
    List list({"image"});
    list.folder.write("odd:=name.raw", "x");
    CHECK(list.read("odd:=name.raw")[0].files == std::vector{list.at("odd:=name.raw")});
    CHECK(list.error("a.raw\nimgae:=b.raw\n") == "list.txt:2: no input 'imgae' (did you mean 'image'?)");
    CHECK(list.error("image:=a.raw mask:=b.raw") ==
          "list.txt:1: no input 'mask' (the model's inputs: image)");
    CHECK(list.error("image:=a.raw image:=b.raw") == "list.txt:1: input 'image' is given twice");
    CHECK(list.error("image:=  \n") == "list.txt:1: no path after 'image:='");
}

TEST_CASE("CRLF, a byte order mark and a missing last line end are understood") {
    List list({"image"});
    const auto entries = list.read(
        "\xef\xbb\xbf"
        "a.raw\r\n\r\nb c.raw\r\nd.raw");
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].files == std::vector{list.at("a.raw")});
    CHECK(entries[1].files == std::vector{list.at("b c.raw")});
    CHECK(entries[1].line == 3);
    CHECK(entries[2].files == std::vector{list.at("d.raw")});
}

TEST_CASE("Items of several inputs come in any order and keep the blanks of their paths") {
    List list({"image", "mask"});
    const auto entries = list.read("mask:=m 1.raw image:=i 1.raw\nimage:=i2.raw\tmask:=m2.raw");
    REQUIRE(entries.size() == 2);
    CHECK(entries[0].files == std::vector{list.at("i 1.raw"), list.at("m 1.raw")});
    CHECK(entries[1].files == std::vector{list.at("i2.raw"), list.at("m2.raw")});
}

TEST_CASE("Input names may hold any bytes, each other's names included") {
    List list({"in", "my in", "in:=2", "\xff\x01", " lead"});
    const auto entries = list.read(" lead:=l in:=a my in:=b in:=2:=c \xff\x01:=d");
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].files ==
          std::vector{list.at("a"), list.at("b"), list.at("c"), list.at("d"), list.at("l")});
}

TEST_CASE("Wrong items of several inputs are named with list and line") {
    List list({"image", "mask"});
    CHECK(list.error("image:=a mask:=b\nimgae:=a mask:=b") ==
          "list.txt:2: no input 'imgae' (did you mean 'image'?)");
    CHECK(list.error("image:=a msak:=b") == "list.txt:1: no input 'msak' (did you mean 'mask'?)");
    CHECK(list.error("image:=a mask:=b extra:=c") ==
          "list.txt:1: no input 'extra' (the model's inputs: image and mask)");
    CHECK(list.error("image:=a") == "list.txt:1: no file for input 'mask'");
    CHECK(list.error("image:=a image:=b mask:=c") == "list.txt:1: input 'image' is given twice");
    CHECK(list.error("image:= mask:=c") == "list.txt:1: no path after 'image:='");
    CHECK(
        list.error("\n\na.raw b.raw c.raw") ==
        "list.txt:3: expected name:=path for each of the model's inputs (image and mask), a path for each in "
        "this order, or one file with the data of all, found 'a.raw b.raw c.raw'");
}

TEST_CASE("Lines with # and % are skipped with one remark") {
    List list({"image"});
    const auto entries = list.read("\n#conv_1 conv_2\n%out\na#b.raw\n# more\n");
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].files == std::vector{list.at("a#b.raw")});
    REQUIRE(list.remarks.all().size() == 1);
    CHECK(list.remarks.all()[0] ==
          list.at("list.txt").string() +
              ":2: 3 lines that start with # or % skipped; SNPE takes them as output names");
}

TEST_CASE("A relative path is looked up from the working directory, then from the list's folder") {
    List list({"image"});
    const SampleFolder elsewhere;
    elsewhere.write("both.raw", "1");
    list.folder.write("both.raw", "2");
    list.folder.write("sub/only.raw", "3");
    const WorkingDirectory here(elsewhere.path());
    const auto entries = list.read("both.raw\nsub/only.raw\nneither.raw");
    REQUIRE(entries.size() == 3);
    CHECK(fs::equivalent(entries[0].files[0], elsewhere.path() / "both.raw"));
    CHECK(entries[1].files[0] == list.at("sub/only.raw"));
    CHECK(entries[2].files[0] == list.at("neither.raw"));
}

TEST_CASE("A list in the working directory needs no folder") {
    const SampleFolder folder;
    folder.write("list.txt", "a.raw");
    const WorkingDirectory here(folder.path());
    Remarks remarks;
    CHECK(read_sample_list("list.txt", inputs_named({"x"}), remarks)[0].files ==
          std::vector<fs::path>{"a.raw"});
}

TEST_CASE("A list that is missing, empty, binary or for a model without inputs is refused") {
    List list({"image"});
    CHECK(error_of([&] {
              read_sample_list(list.at("none.txt"), list.inputs, list.remarks);
          }).starts_with(list.at("none.txt").string() + ": "));
    CHECK(error_of([&] {
              read_sample_list(list.folder.path(), list.inputs, list.remarks);
          }).starts_with(list.folder.path().string() + ": "));
    CHECK(list.error("") == "list.txt: expected one sample a line, found none");
    CHECK(list.error("\r\n  \n#x\n") == "list.txt: expected one sample a line, found none");
    CHECK(list.error(std::string_view("a\nb\0c", 5)) ==
          "list.txt:2: expected a list of paths as UTF-8 text, found a zero byte");
    List without({});
    CHECK(without.error("a.raw") == "list.txt: the model has no inputs that samples could fill");
}

TEST_CASE("Inputs with a value of their own may be left out, and the one that is left needs no name") {
    List list({"x", "state", "sr"});
    list.inputs[1].otherwise = Tensor::of<float>({1}, std::vector<float>{0});
    list.inputs[2].otherwise = list.inputs[1].otherwise;
    const auto entries = list.read("a.raw\nx:=b.raw\nstate:=s.raw x:=c.raw\nmy d.raw\n");
    REQUIRE(entries.size() == 4);
    CHECK(entries[0].files == std::vector<fs::path>{list.at("a.raw"), {}, {}});
    CHECK(entries[1].files == std::vector<fs::path>{list.at("b.raw"), {}, {}});
    CHECK(entries[2].files == std::vector<fs::path>{list.at("c.raw"), list.at("s.raw"), {}});
    CHECK(entries[3].files == std::vector<fs::path>{list.at("my d.raw"), {}, {}});
    CHECK(list.error("sr:=a.raw\n") == "list.txt:1: no file for input 'x'");
    CHECK(list.error("stat:=a.raw\n") == "list.txt:1: no input 'stat' (did you mean 'state'?)");
}
