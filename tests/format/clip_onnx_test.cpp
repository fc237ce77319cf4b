#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "format/format.h"
#include "format/model_facts.h"
#include "format/tidl_params.h"
#include "graph/onnx_file.h"
#include "support/onnx_builder.h"
#include "support/temporary_folder.h"
#include "target/constant_lookup.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// A model, encodings for it, and what the formats of TIDL write for them.
class TidlEmission {
  public:
    explicit TidlEmission(OnnxModel model) {
        model.save(folder_ / "m.onnx");
        model_ = read_onnx_file(folder_ / "m.onnx");
    }

    TidlEmission& activation(const std::string& tensor, double min, double max, bool is_signed,
                             int bits = 8) {
        set_.activations.push_back(entry(tensor, min, max, is_signed, bits));
        return *this;
    }
    TidlEmission& weight(const std::string& tensor, double end, int bits = 8) {
        set_.parameters.push_back(entry(tensor, -end, end, true, bits));
        return *this;
    }

    std::vector<FormattedFile> files(const char* format, const std::filesystem::path& patch = {}) {
        const Target target = load_target("tidl");
        const EmittedModel emitted{model_, constants_of(*model_.graph), target, decisions_, patch};
        Remarks remarks;
        std::vector<FormattedFile> files = find_format(format).files(set_, emitted, "out.onnx", remarks);
        remarks_ = join(remarks.all(), "\n");
        return files;
    }

    // The model with Clips, read again.
    Model clipped() {
        for (const FormattedFile& file : files("tidl-onnx")) write_unsynced(folder_ / file.path, file.bytes);
        return read_onnx_file(folder_ / "out.onnx");
    }

    const std::string& remarks() const { return remarks_; }
    bool remarked(const std::string& text) const { return remarks_.find(text) != std::string::npos; }
    const TemporaryFolder& folder() const { return folder_; }
    const Graph& graph() const { return *model_.graph; }

  private:
    TensorEncoding entry(const std::string& tensor, double min, double max, bool is_signed, int bits) {
        TensorEncoding one;
        one.tensor = tensor;
        one.encodings = {tidl_encoding(min, max, bits, is_signed)};
        Decision& decision = decisions_.emplace_back();
        decision.tensor = tensor;
        decision.ranges = {{min, max}};
        return one;
    }

    TemporaryFolder folder_;
    Model model_;
    EncodingSet set_;
    std::vector<Decision> decisions_;
    std::string remarks_;
};

// Conv, Relu, Conv; the input has the initializers of IR 3 among its inputs where `ir` asks for it.
OnnxModel two_convolutions(std::int64_t opset, std::int64_t ir = 8) {
    OnnxModel model;
    model.ir_version = ir;
    model.opsets = {{"", opset}};
    OnnxGraph& graph = model.graph;
    graph.input("x", {1, 1, 2, 2});
    if (ir < 4) {
        graph.input("w1", {1, 1, 1, 1});
        graph.input("w2", {1, 1, 1, 1});
    }
    graph.initializer("w1", {1, 1, 1, 1}, std::vector<float>{3.0F});
    graph.initializer("w2", {1, 1, 1, 1}, std::vector<float>{-2.0F});
    graph.node("Conv", {"x", "w1"}, {"a"}).node("Relu", {"a"}, {"b"}).node("Conv", {"b", "w2"}, {"y"});
    graph.value_info("b", {1, 1, 2, 2});
    graph.output("b").output("y", {1, 1, 2, 2});
    return model;
}

// The bounds of the Clip that makes a tensor.
std::optional<Range> clip_making(const Model& model, const std::string& tensor) {
    const Graph& graph = *model.graph;
    const ValueId value = graph.find(tensor);
    REQUIRE(value != no_value);
    REQUIRE(graph.values[value].producer != no_node);
    const Node& node = graph.nodes[graph.values[value].producer];
    if (node.op_type != "Clip") return std::nullopt;
    Range bounds{node.attribute("min", -std::numeric_limits<float>::max()),
                 node.attribute("max", std::numeric_limits<float>::max())};
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
        const auto numbers = numbers_of(graph.values[node.inputs[i]].initializer->view());
        (i == 1 ? bounds.min : bounds.max) = numbers.front();
    }
    return bounds;
}

std::vector<std::string> output_names(const Model& model) {
    std::vector<std::string> names;
    for (const ValueId output : model.graph->outputs) names.push_back(model.graph->values[output].name);
    return names;
}

}  // namespace

TEST_CASE(
    "Clips are put in as attributes up to opset 10 and as inputs from 11, and outputs keep names and order") {
    for (const std::int64_t opset : {7, 9, 10, 11, 12, 13, 17}) {
        for (const std::int64_t ir : {3, 8}) {
            CAPTURE(opset);
            CAPTURE(ir);
            TidlEmission emission(two_convolutions(opset, ir));
            emission.activation("b", 0, 4, false).activation("y", -8, 8, true);
            const Model model = emission.clipped();
            CHECK(output_names(model) == std::vector<std::string>{"b", "y"});
            CHECK(clip_making(model, "b") == Range{0, 4});
            CHECK(clip_making(model, "y") == Range{-8, 8});
            CHECK(model.graph->nodes.size() == 5);
            CHECK(model.graph->inputs.size() == 1);
            const Node& clip = model.graph->nodes[model.graph->values[model.graph->find("b")].producer];
            CHECK(clip.has_attribute("max") == (opset < 11));
            CHECK(model.graph->values[clip.inputs[0]].name == "b_unclipped");
            CHECK(emission.remarked("older TIDL releases read a Clip of opset 6 to 11 alone") ==
                  (opset > 11));
        }
    }
}

TEST_CASE("an inserted Clip that gains a bit is told: data that is never below zero and no Relu before it") {
    TidlEmission emission(two_convolutions(11));
    emission.activation("x", -1, 1, true).activation("b", 0, 4, false).activation("y", 0, 8, true);
    const Model model = emission.clipped();
    CHECK(clip_making(model, "y") == Range{0, 8});
    CHECK(emission.remarked("('y'): the Clip put in gains a bit"));
    CHECK(emission.remarked("('x'): an input gets no Clip"));
}

TEST_CASE("a Clip that is there is narrowed, and opened only where TIDL would not take it") {
    struct Wanted {
        Range present, wanted, result;
        bool is_signed;
        const char* remark;
    };
    const std::vector<Wanted> all = {
        {{0, 6}, {0, 4}, {0, 4}, false, ""},
        {{0, 6},
         {0, 8},
         {0, 6},
         false,
         "its Clip keeps 0 to 6: opening it to 8 would change what the model computes"},
        {{-4, 4}, {-4, 4}, {-4, 4}, true, ""},
        {{-1, 4},
         {-1, 4},
         {-4, 4},
         true,
         "its Clip, -1 to 4, becomes -4 to 4: TIDL gives a Clip whose sides differ"},
        {{1, 4},
         {1, 4},
         {0, 4},
         false,
         "its Clip, 1 to 4, becomes 0 to 4: TIDL refuses a Clip without zero inside"},
        {{-4, -1}, {-4, -1}, {-4, 4}, true, "its Clip, -4 to -1, becomes -4 to 4: TIDL refuses a Clip"}};
    for (const Wanted& one : all) {
        for (const std::int64_t opset : {9, 13}) {
            CAPTURE(one.present.min);
            CAPTURE(one.wanted.max);
            OnnxModel model;
            model.opsets = {{"", opset}};
            OnnxGraph& graph = model.graph;
            graph.input("x", {1, 4});
            graph.node("Neg", {"x"}, {"a"});
            if (opset < 11) {
                graph.node("Clip", {"a"}, {"y"}, {{"min", one.present.min}, {"max", one.present.max}});
            } else {
                graph.initializer("lo", {}, std::vector<float>{static_cast<float>(one.present.min)});
                graph.initializer("hi", {}, std::vector<float>{static_cast<float>(one.present.max)});
                graph.node("Clip", {"a", "lo", "hi"}, {"y"});
            }
            graph.output("y", {1, 4});
            TidlEmission emission(model);
            emission.activation("y", one.wanted.min, one.wanted.max, one.is_signed);
            const Model clipped = emission.clipped();
            CHECK(clip_making(clipped, "y") == one.result);
            CHECK((*one.remark == '\0' || emission.remarked(one.remark)));
            const bool moved = !(one.result == one.present);
            if (opset > 10) CHECK((clipped.graph->find("lo") == no_value) == moved);
        }
    }
}

TEST_CASE("bounds that another node needs as well stay") {
    OnnxModel model;
    model.graph.input("x", {1, 4});
    model.graph.initializer("lo", {}, std::vector<float>{0});
    model.graph.initializer("hi", {}, std::vector<float>{6});
    model.graph.node("Clip", {"x", "lo", "hi"}, {"a"}).node("Add", {"a", "hi"}, {"y"}).output("y", {1, 4});
    TidlEmission emission(model);
    emission.activation("a", 0, 4, false).activation("y", -16, 16, true);
    const Model clipped = emission.clipped();
    CHECK(clip_making(clipped, "a") == Range{0, 4});
    CHECK(clipped.graph->find("hi") != no_value);
    CHECK(clipped.graph->find("lo") == no_value);
}

TEST_CASE("weights beyond the range given are clipped, in the model itself") {
    TidlEmission emission(two_convolutions(11));
    emission.activation("b", 0, 4, false).activation("y", -8, 8, true).weight("w1", 2).weight("w2", 2);
    const Model model = emission.clipped();
    const auto numbers = [&](const char* name) {
        return numbers_of(model.graph->values[model.graph->find(name)].initializer->view());
    };
    CHECK(numbers("w1") == std::vector<double>{2});
    CHECK(numbers("w2") == std::vector<double>{-2});
    CHECK(emission.remarked("1 tensor ('w1'): weights beyond the range given are clipped"));
}

TEST_CASE("external data is written beside the model with Clips and still read") {
    OnnxModel model = two_convolutions(13);
    model.graph.initializers.erase(model.graph.initializers.begin());
    model.graph.initializer(OnnxTensor::external_file("w1", DataType::float32, {1, 1, 1, 1}, "data/w.bin"));
    TemporaryFolder folder;
    std::filesystem::create_directories(folder / "data");
    const float weight = 3;
    write_unsynced(folder / "data/w.bin",
                   std::string_view(reinterpret_cast<const char*>(&weight), sizeof weight));
    model.save(folder / "m.onnx");
    const Model read = read_onnx_file(folder / "m.onnx");
    const Target target = load_target("tidl");
    EncodingSet set;
    TensorEncoding& entry = set.activations.emplace_back();
    entry.tensor = "y";
    entry.encodings = {tidl_encoding(-8, 8, 8, true)};
    Remarks remarks;
    const auto files =
        find_format("tidl-onnx")
            .files(set, {read, constants_of(*read.graph), target, {}, {}}, "out.onnx", remarks);
    REQUIRE(files.size() == 2);
    CHECK(files[1].path == "data/w.bin");
    TemporaryFolder other;
    std::filesystem::create_directories(other / "data");
    for (const FormattedFile& file : files) write_unsynced(other / file.path, file.bytes);
    const Model again = read_onnx_file(other / "out.onnx");
    CHECK(numbers_of(again.graph->values[again.graph->find("w1")].initializer->view()) ==
          std::vector<double>{3});
    CHECK(clip_making(again, "y") == Range{-8, 8});
}

TEST_CASE("parameters made from the model are read again, complete, with biases folded") {
    OnnxModel model;
    OnnxGraph& graph = model.graph;
    graph.input("x", {1, 1, 2, 2});
    graph.initializer("w", {2, 1, 1, 1}, std::vector<float>{1, -3})
        .initializer("b", {2}, std::vector<float>{0.5, 1});
    graph.initializer("s", {2}, std::vector<float>{2, 4}).initializer("t", {2}, std::vector<float>{0.25, 0});
    graph.initializer("m", {2}, std::vector<float>{0.5, -1}).initializer("v", {2}, std::vector<float>{4, 1});
    graph.node("Conv", {"x", "w", "b"}, {"c"});
    graph.node("BatchNormalization", {"c", "s", "t", "m", "v"}, {"n"}, {{"epsilon", 0.0}});
    graph.node("Relu", {"n"}, {"y"}).output("y", {1, 2, 2, 2});
    TidlEmission emission(model);
    emission.activation("x", -1, 1, true).activation("y", 0, 8, false, 16).weight("w", 4);
    const std::string text = emission.files("tidl-prototxt").front().bytes;
    CHECK(emission.remarked("cannot be known"));
    const TidlNetParams params = parse_tidl_params(text, "p");
    CHECK(tidl_objections(params).empty());
    REQUIRE(params.layers.size() == 2);
    CHECK(params.layers[0].type == "TIDL_DataLayer");
    const TidlLayerParams& conv = params.layers[1];
    CHECK(conv.name == "y");
    CHECK(conv.type == "TIDL_ConvolutionLayer");
    CHECK(conv.bit_depth == 2);
    CHECK(conv.outputs[0].element_type->value == 2);
    CHECK(conv.outputs[0].max->value == 8);
    // Factors 2/2 and 4/1: weights 1 and -12, biases (0.5 - 0.5) * 1 + 0.25 and (1 + 1) * 4.
    CHECK(conv.weights[0].min->value == -12);
    CHECK(conv.weights[0].max->value == 1);
    CHECK(conv.bias[0].value == std::vector<double>{0.25, 8});
    // With the model, the weights of the layer have their own name.
    Remarks remarks;
    EncodingFile file = parse_encodings(text, "p.prototxt", remarks);
    CHECK(file.entries.back().encoding.tensor == "y.weights");
    add_model_facts(file, emission.graph(), remarks);
    CHECK(file.entries.back().encoding.tensor == "w");
    // Patching with the same encodings changes nothing.
    write_unsynced(emission.folder() / "p.prototxt", text);
    CHECK(emission.files("tidl-prototxt", emission.folder() / "p.prototxt").front().bytes == text);
}

TEST_CASE("16-bit lists have the names of fused outputs") {
    TidlEmission emission(two_convolutions(11));
    emission.activation("b", 0, 4, false, 16)
        .activation("y", -8, 8, true)
        .weight("w1", 4, 16)
        .weight("w2", 2);
    const std::string text = emission.files("tidl-options").front().bytes;
    CHECK(text.find("\"advanced_options:output_feature_16bit_names_list\": \"b\"\n") != std::string::npos);
    CHECK(text.find("\"advanced_options:params_16bit_names_list\": \"b\"\n") != std::string::npos);
    CHECK(text.find("tensor_bits: 8\n") != std::string::npos);
}
