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

TEST_CASE("what a body reads from outside is captured by every node around it") {
    OnnxGraph innermost;
    innermost.node("Add", {"x", "m"}, {"sum"}).output("sum");
    OnnxGraph middle;
    middle.node("Relu", {"t"}, {"m"})
        .node("If", {"c"}, {"r"}, {{"then_branch", innermost}})
        .output("r")
        .output("m");
    OnnxModel model;
    // The If comes before the maker of 't', which only its bodies read.
    model.graph.input("x", {1}).input("c", {}, DataType::boolean);
    model.graph.node("If", {"c"}, {"y", "q"}, {{"then_branch", middle}}, "if").node("Exp", {"x"}, {"t"});
    model.graph.output("y");
    model.graph.value_info("t", {5}, DataType::float16);
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;

    std::vector<std::string> operators;
    for (const Node& node : graph.nodes) operators.push_back(node.op_type);
    CHECK(operators == std::vector<std::string>{"Exp", "Relu", "Add", "If", "If"});
    CHECK(graph.outermost_nodes() == std::vector<NodeIndex>{0, 4});
    const Node& outer_if = graph.nodes[4];
    const Node& inner_if = graph.nodes[3];
    CHECK(outer_if.name == "if");
    CHECK(outer_if.captured == std::vector<ValueId>{graph.find("t"), graph.find("c"), graph.find("x")});
    CHECK(inner_if.captured == std::vector<ValueId>{graph.find("x"), graph.find("m")});
    REQUIRE(outer_if.body("then_branch") != nullptr);
    CHECK(outer_if.body("else_branch") == nullptr);
    const Body& body = *outer_if.body("then_branch");
    CHECK(body.nodes == std::vector<NodeIndex>{1, 3});
    CHECK(body.inputs.empty());
    CHECK(body.outputs == std::vector<ValueId>{graph.find("r"), graph.find("m")});
    CHECK(graph.nodes[2].owner == 3);
    CHECK(graph.nodes[1].owner == 4);
    CHECK(graph.nodes[0].owner == no_node);
    CHECK(value(graph, "sum").producer == 2);
}

TEST_CASE("a body's own value hides the outer one of the same name") {
    OnnxGraph body;
    body.input("x", {1})
        .initializer("w", {1}, std::vector<float>{3})
        .node("Add", {"x", "w"}, {"y"})
        .output("y");
    OnnxModel model;
    model.graph.input("x", {1}).initializer("w", {1}, std::vector<float>{4});
    model.graph.node("Loop", {"", "", "x"}, {"z"}, {{"body", body}}, "loop").output("z");
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    const Node& loop = graph.nodes.back();
    CHECK(loop.captured.empty());
    CHECK(numbers_of(value(graph, "w").initializer->view()) == std::vector<double>{4});
    CHECK(numbers_of(value(graph, "loop/body/w").initializer->view()) == std::vector<double>{3});
    CHECK(loop.body("body")->inputs == std::vector<ValueId>{graph.find("loop/body/x")});
    CHECK(loop.body("body")->outputs == std::vector<ValueId>{graph.find("y")});
}

TEST_CASE("names that both branches use are told apart by the node and the branch") {
    OnnxGraph then_branch;
    then_branch.node("Relu", {"x"}, {"r"}).output("r");
    OnnxGraph else_branch;
    else_branch.node("Exp", {"x"}, {"r"}).node("Neg", {"r"}, {"n"}).output("n");
    OnnxModel model;
    model.graph.input("x", {1}).input("c", {}, DataType::boolean);
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", then_branch}, {"else_branch", else_branch}})
        .output("y");
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(value(graph, "y/then_branch/r").producer != value(graph, "y/else_branch/r").producer);
    CHECK(graph.find("r") == no_value);
    CHECK(graph.find("n") != no_value);
    for (ValueId id = 0; id < graph.values.size(); ++id) CHECK(graph.find(graph.values[id].name) == id);
}

TEST_CASE("a body's output may be a value of the outer graph") {
    OnnxGraph branch;
    branch.output("x");
    OnnxModel model;
    model.graph.input("x", {1}).input("c", {}, DataType::boolean);
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", branch}, {"else_branch", branch}}).output("y");
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(graph.nodes[0].captured == std::vector<ValueId>{graph.find("x")});
    CHECK(value(graph, "y").declared_type == DataType::float32);
}

TEST_CASE("an initializer from outside is a constant and not captured") {
    OnnxGraph branch;
    branch.initializer("own", {1}, std::vector<float>{1}).node("Add", {"w", "own"}, {"r"}).output("r");
    OnnxModel model;
    model.graph.input("c", {}, DataType::boolean).initializer("w", {1}, std::vector<float>{4});
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", branch}}).output("y");
    const auto loaded = load(model);
    CHECK(loaded.graph->nodes.back().captured.empty());
}

TEST_CASE("types that the file does not say follow from the operators") {
    OnnxGraph body;
    body.input("i", {}, DataType::undefined)
        .input("go", {}, DataType::undefined)
        .input("s", {}, DataType::undefined);
    body.node("Identity", {"go"}, {"again"}).node("Add", {"s", "s"}, {"t"}).node("Shape", {"t"}, {"size"});
    for (const char* name : {"again", "t", "size"}) body.output(name, {}, DataType::undefined);
    OnnxModel model;
    model.graph.input("x", {2}, DataType::int32).input("f", {2});
    model.graph.node("Loop", {"", "", "x"}, {"last", "sizes"}, {{"body", body}});
    model.graph.node("Greater", {"f", "f"}, {"g"}).node("Where", {"g", "f", "f"}, {"w"});
    model.graph.node("Cast", {"w"}, {"c"}, {{"to", 6}}).node("MaxPool", {"f"}, {"p", "where"});
    model.graph.node("Magic", {"f"}, {"m"}, {}, "", "com.example").output("m");
    model.opsets.emplace_back("com.example", 1);
    const auto loaded = load(model);
    const Graph& graph = *loaded.graph;
    const auto type = [&](std::string_view name) { return value(graph, name).declared_type; };
    CHECK(type("i") == DataType::int64);
    CHECK(type("again") == DataType::boolean);
    CHECK(type("t") == DataType::int32);
    CHECK(type("last") == DataType::int32);
    CHECK(type("sizes") == DataType::int64);
    CHECK(type("g") == DataType::boolean);
    CHECK(type("w") == DataType::float32);
    CHECK(type("c") == DataType::int32);
    CHECK(type("p") == DataType::float32);
    CHECK(type("where") == DataType::int64);
    CHECK(type("m") == DataType::float32);  // a graph output of the test's builder
}

}  // namespace qcalib
