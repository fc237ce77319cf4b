#include "graph/onnx_file.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/digest.h"
#include "graph/model_files.h"

namespace qcalib {

namespace {

using namespace test;  // NOLINT: the builder's vocabulary

const std::string two_conv = QCALIB_SOURCE_DIR "/tests/cases/two_conv/net.onnx";

std::string sha256(std::string_view bytes) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(bytes.data(), bytes.size())));
    return to_hex(hash.finish());
}

}  // namespace

TEST_CASE("the two-convolution model is read with its nodes, weights and shapes") {
    const Model model = read_onnx_file(two_conv);
    const Graph& graph = *model.graph;
    CHECK(model.path == two_conv);
    CHECK(model.ir_version == 7);
    CHECK(model.producer == "pytorch 1.13.0");
    CHECK(model.opsets == std::map<std::string, std::int64_t>{{"", 13}});
    CHECK(model.hash == sha256(read_text_file(two_conv)));
    CHECK(model.remarks.empty());
    REQUIRE(graph.inputs.size() == 1);
    CHECK(graph.values[graph.inputs[0]].name == "image");
    CHECK(to_string(graph.values[graph.inputs[0]].declared_shape) == "[1,3,20,20]");
    CHECK(graph.values[graph.inputs[0]].declared_type == DataType::float32);
    CHECK(graph.outputs.size() == 1);
    REQUIRE(graph.nodes.size() == 4);
    const Node& conv = graph.nodes[1];
    CHECK(label(graph, conv) == "Conv '/conv/Conv'");
    CHECK(conv.opset == 13);
    CHECK(conv.attribute<std::vector<std::int64_t>>("kernel_shape", {}) == std::vector<std::int64_t>{1, 1});
    const Tensor& weight = *graph.values[conv.inputs[1]].initializer;
    CHECK(weight.mapped());
    CHECK(weight.shape() == Shape{128, 3, 1, 1});
}

TEST_CASE("values keep their declared types and shapes") {
    OnnxModel model = relu_model();
    model.graph.node("Exp", {"y"}, {"z"})
        .value_info("z", {"N", 4}, DataType::float16)
        .value_info("gone", {1});
    model.graph.output("z").output("y", {});
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(to_string(value(graph, "x").declared_shape) == "[1,3,H,?]");
    CHECK(value(graph, "z").declared_type == DataType::float16);
    CHECK(to_string(value(graph, "z").declared_shape) == "[N,4]");
    CHECK(to_string(value(graph, "y").declared_shape) == "[]");
    CHECK(graph.find("gone") == no_value);
    CHECK(value(graph, "z").producer == 1);
}

TEST_CASE("initializers that are also inputs are no inputs") {
    OnnxModel model;
    model.ir_version = 3;
    model.opsets = {{"", 7}};
    model.graph.input("x", {2}).input("w", {2}).initializer("w", {2}, std::vector<float>{1, 2});
    model.graph.node("Add", {"x", "w"}, {"y"}).output("y");
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    REQUIRE(graph.inputs.size() == 1);
    CHECK(graph.values[graph.inputs[0]].name == "x");
    CHECK(value(graph, "w").initializer.has_value());
    CHECK(graph.nodes[0].opset == 7);
}

TEST_CASE("nodes in any order are put into an order that can be run") {
    OnnxModel model;
    model.graph.node("Relu", {"b"}, {"c"}).node("Relu", {"a"}, {"b"}).node("Relu", {"x"}, {"a"});
    model.graph.input("x", {1}).output("c");
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(graph.values[graph.nodes[0].outputs[0]].name == "a");
    CHECK(graph.values[graph.nodes[2].outputs[0]].name == "c");
}

TEST_CASE("names of any bytes are kept and a node needs none") {
    const std::string odd("\xff\xfe\0\x80 \xc3", 6);
    OnnxModel model;
    model.graph.name = odd;
    model.graph.input(odd, {1}).node("Relu", {odd}, {odd + "y"}).output(odd + "y");
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(graph.name == odd);
    CHECK(graph.find(odd) != no_value);
    CHECK(graph.nodes[0].name.empty());
    CHECK(label(graph, graph.nodes[0]) == "Relu making '\\xff\\xfe\\x00\\x80 \\xc3y'");
}

TEST_CASE("inputs and outputs that a node leaves out are no values") {
    OnnxModel model;
    model.graph.input("x", {1, 1, 4, 4}).input("scales", {4});
    model.graph.node("Resize", {"x", "", "scales"}, {"y"})
        .node("Dropout", {"y"}, {"", "mask"})
        .output("mask");
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    REQUIRE(graph.nodes[0].inputs.size() == 3);
    CHECK(graph.nodes[0].inputs[1] == no_value);
    CHECK(graph.nodes[1].outputs[0] == no_value);
    CHECK(graph.find("") == no_value);
}

TEST_CASE("attributes of every kind are read") {
    OnnxModel model = relu_model();
    model.graph.nodes[0].attributes = {
        {"int", 7},
        {"float", 0.5},
        {"string", std::string("a\0b", 3)},
        {"ints", OnnxInts{1, -2}},
        {"floats", OnnxFloats{1.5F}},
        {"strings", OnnxStrings{"a", "b"}},
        {"none", OnnxInts{}},
        {"tensor", OnnxTensor::of<float>("", {2}, {1, 2})},
    };
    const auto loaded = load(model);
    const Node& node = loaded.graph->nodes[0];
    CHECK(node.attribute<std::int64_t>("int", 0) == 7);
    CHECK(node.attribute<float>("float", 0) == 0.5F);
    CHECK(node.attribute<std::string>("string", "") == std::string("a\0b", 3));
    CHECK(node.attribute<std::vector<std::int64_t>>("ints", {}) == std::vector<std::int64_t>{1, -2});
    CHECK(node.attribute<std::vector<float>>("floats", {}) == std::vector<float>{1.5F});
    CHECK(node.attribute<std::vector<std::string>>("strings", {}) == std::vector<std::string>{"a", "b"});
    CHECK(node.attribute<std::vector<std::int64_t>>("none", {1}).empty());
    CHECK(numbers_of(node.attribute<Tensor>("tensor", {}).view()) == std::vector<double>{1, 2});
    CHECK(node.attributes.size() == 8);
}

TEST_CASE("a node knows the version of the domain it comes from") {
    OnnxModel model = relu_model();
    model.opsets = {{"ai.onnx", 11}, {"com.example", 3}};
    model.graph.node("Magic", {"y"}, {"z"}, {}, "m", "com.example")
        .node("Exp", {"z"}, {"e"}, {}, "", "ai.onnx");
    const Model loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(loaded.opsets == std::map<std::string, std::int64_t>{{"", 11}, {"com.example", 3}});
    CHECK(graph.nodes[0].opset == 11);
    CHECK(graph.nodes[1].opset == 3);
    CHECK(graph.nodes[1].domain == "com.example");
    CHECK(graph.nodes[2].domain.empty());
    CHECK(graph.nodes[2].opset == 11);
}

TEST_CASE("a subgraph's outer values are captured through every graph in between") {
    OnnxGraph innermost;
    innermost.node("Add", {"x", "m"}, {"sum"}).output("sum");
    OnnxGraph middle;
    middle.node("Relu", {"t"}, {"m"})
        .node("If", {"c"}, {"r"}, {{"then_branch", innermost}})
        .output("r")
        .output("m");
    OnnxModel model;
    // The If comes before the maker of 't', which only its subgraphs read.
    model.graph.input("x", {1}).input("c", {}, DataType::boolean);
    model.graph.node("If", {"c"}, {"y", "q"}, {{"then_branch", middle}}, "if").node("Exp", {"x"}, {"t"});
    model.graph.output("y");
    model.graph.value_info("t", {5}, DataType::float16);
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;

    const Node& outer_if = graph.nodes[1];
    CHECK(outer_if.name == "if");
    std::vector<std::string> captured;
    for (const ValueId id : outer_if.captured) captured.push_back(graph.values[id].name);
    CHECK(captured == std::vector<std::string>{"t", "c", "x"});

    const Graph& then_graph = *outer_if.attribute<std::shared_ptr<const Graph>>("then_branch", nullptr);
    std::vector<std::string> names;
    for (const auto& [id, name] : then_graph.captures) {
        names.push_back(name);
        CHECK(then_graph.values[id].name == name);
    }
    CHECK(names == std::vector<std::string>{"t", "c", "x"});
    CHECK(value(then_graph, "t").declared_type == DataType::float16);
    CHECK(to_string(value(then_graph, "t").declared_shape) == "[5]");

    const Node& inner_if = then_graph.nodes[1];
    CHECK(inner_if.captured == std::vector<ValueId>{then_graph.find("x"), then_graph.find("m")});
    const Graph& inner_graph = *inner_if.attribute<std::shared_ptr<const Graph>>("then_branch", nullptr);
    REQUIRE(inner_graph.captures.size() == 2);
    CHECK(inner_graph.captures[0].second == "x");
    CHECK(inner_graph.captures[1].second == "m");
    CHECK(graph.captures.empty());
}

TEST_CASE("a subgraph's own value hides the outer one of the same name") {
    OnnxGraph body;
    body.input("x", {1})
        .initializer("w", {1}, std::vector<float>{3})
        .node("Add", {"x", "w"}, {"y"})
        .output("y");
    OnnxModel model;
    model.graph.input("x", {1}).initializer("w", {1}, std::vector<float>{4});
    model.graph.node("Loop", {"", "", "x"}, {"z"}, {{"body", body}}).output("z");
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(graph.nodes[0].captured.empty());
    const Graph& inner = *graph.nodes[0].attribute<std::shared_ptr<const Graph>>("body", nullptr);
    CHECK(inner.captures.empty());
    CHECK(numbers_of(value(inner, "w").initializer->view()) == std::vector<double>{3});
    CHECK(inner.inputs.size() == 1);
}

TEST_CASE("a subgraph's output may be a value of the outer graph") {
    OnnxGraph branch;
    branch.output("x");
    OnnxModel model;
    model.graph.input("x", {1}).input("c", {}, DataType::boolean);
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", branch}, {"else_branch", branch}}).output("y");
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(graph.nodes[0].captured == std::vector<ValueId>{graph.find("x")});
}

TEST_CASE("a model's own function that nothing calls does not matter") {
    OnnxModel model = relu_model();
    model.functions.push_back({"F", "local", {"a"}, {"b"}, {{"Relu", {"a"}, {"b"}}}});
    CHECK(load(model).graph->nodes.size() == 1);
}

}  // namespace qcalib
