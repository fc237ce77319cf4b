#include "format/model_facts.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "format/reading.h"
#include "graph/onnx_file.h"
#include "support/onnx_builder.h"
#include "support/temporary_folder.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// A Conv, a ConvTranspose, a MatMul and a Gemm one after the other.
Model weights_model() {
    OnnxModel model;
    model.graph.input("x", {1, 3, 8, 8})
        .initializer("conv", {4, 3, 1, 1}, std::vector<float>(12, 0.5F))
        .initializer("up", {4, 2, 1, 1}, std::vector<float>(8, 0.5F))
        .initializer("mat", {2, 64}, std::vector<float>(128, 0.5F))
        .node("Conv", {"x", "conv"}, {"c"})
        .node("ConvTranspose", {"c", "up"}, {"u"})
        .node("ReduceMean", {"u"}, {"r"}, {{"axes", OnnxInts{2, 3}}, {"keepdims", 0}})
        .node("MatMul", {"r", "mat"}, {"y"})
        .output("y");
    const TemporaryFolder folder;
    model.save(folder.path() / "m.onnx");
    return read_onnx_file(folder.path() / "m.onnx");
}

std::string channels(const std::string& name, int count, const std::string& type = "PER_CHANNEL",
                     const std::string& more = "") {
    std::string scales = "0.5";
    std::string offsets = "-8";
    for (int i = 1; i < count; ++i) {
        scales += ", 0.5";
        offsets += ", -8";
    }
    return fmt::format(
        R"({{"name": "{}", "bw": 4, "dtype": "INT", "enc_type": "{}", {}"is_sym": true, "offset": [{}], "scale": [{}]}})",
        name, type, more, offsets, scales);
}

Reading read_parameters(const std::string& entries) {
    return read_text("{\"version\": \"1.0.0\", \"activation_encodings\": [], \"param_encodings\": [" +
                     entries + "]}");
}

}  // namespace

TEST_CASE("the axis of output channels follows from the operator where the format does not say it") {
    const Model model = weights_model();
    Reading reading =
        read_parameters(channels("conv", 4) + "," + channels("up", 2) + "," + channels("mat", 64));
    REQUIRE(reading.error == "");
    Remarks remarks;
    add_model_facts(reading.file, *model.graph, remarks);
    CHECK(remarks.empty());
    CHECK(reading.entry("conv").encoding.axis == 0);
    CHECK(reading.entry("up").encoding.axis == 1);
    CHECK(reading.entry("mat").encoding.axis == 1);
    Remarks losses;
    CHECK(find_format("aimet-2.0.0").emit(reading.file, losses).find("\"axis\": 1") != std::string::npos);
    CHECK(losses.empty());
}

TEST_CASE("blocks are nested as deep as the tensor the model has") {
    const Model model = weights_model();
    Reading reading = read_parameters(channels("mat", 64, "PER_BLOCK", "\"block_size\": 2, ") + "," +
                                      channels("conv", 4, "PER_BLOCK", "\"block_size\": 3, "));
    REQUIRE(reading.error == "");
    Remarks remarks;
    add_model_facts(reading.file, *model.graph, remarks);
    CHECK(reading.entry("mat").nesting == Shape{1, 64});
    CHECK(reading.entry("mat").encoding.block_axis == 0);
    CHECK(reading.entry("conv").nesting == Shape{4, 1, 1, 1});
    const Reading again = read_text(find_format("aimet-2.0.0").emit(reading.file, remarks));
    REQUIRE(again.error == "");
    CHECK(again.entry("mat").encoding.encodings.size() == 64);
    CHECK(again.entry("mat").encoding.block_axis == 0);
    CHECK(again.entry("conv").encoding.encodings.size() == 4);
    CHECK(remarks.empty());
}

TEST_CASE("entries without a section are parameters where the model has an initializer of that name") {
    const Model model = weights_model();
    Reading reading = read_text(
        R"({"version": "2.0.0", "encodings": [{"name": "conv", "output_dtype": "int8", "y_scale": 0.5},
            {"name": "c", "output_dtype": "uint8", "y_scale": 0.5}, {"name": "nothing", "output_dtype": "uint8", "y_scale": 0.5}]})");
    REQUIRE(reading.error == "");
    Remarks remarks;
    add_model_facts(reading.file, *model.graph, remarks);
    CHECK(reading.entry("conv").section == Section::parameter);
    CHECK(reading.entry("c").section == Section::activation);
    CHECK(reading.entry("nothing").section == Section::any);
    CHECK(remarks.all() ==
          std::vector<std::string>{"e.json: 1 entry names no tensor of the model: 'nothing'"});
}

TEST_CASE("counts of channels that do not fit the model are one error") {
    const Model model = weights_model();
    Reading reading = read_parameters(channels("conv", 5) + ",\n" + channels("up", 4) + ",\n" +
                                      channels("mat", 8, "PER_BLOCK", "\"block_size\": 3, "));
    REQUIRE(reading.error == "");
    Remarks remarks;
    CHECK_THROWS_WITH_AS(
        add_model_facts(reading.file, *model.graph, remarks),
        "e.json:1: 'conv': expected 4 encodings, one a channel (axis 0 of [4,3,1,1]), found 5\n"
        "e.json:2: 'up': expected 2 encodings, one a channel (axis 1 of [4,2,1,1]), found 4\n"
        "e.json:3: 'mat': expected a block size that divides 2 (axis 0 of [2,64]), found 3",
        Error);
}
