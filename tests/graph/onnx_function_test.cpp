#include <doctest/doctest.h>

#include "graph/model_files.h"

namespace qcalib {

using namespace test;

namespace {

OnnxFunction function(std::string name, std::vector<std::string> inputs, std::vector<std::string> outputs,
                      std::vector<OnnxNode> nodes) {
    OnnxFunction result;
    result.name = std::move(name);
    result.domain = "local";
    result.inputs = std::move(inputs);
    result.outputs = std::move(outputs);
    result.nodes = std::move(nodes);
    return result;
}

OnnxAttribute reference(std::string name, std::string to) {
    OnnxAttribute attribute(std::move(name), 0.0);
    attribute.reference = std::move(to);
    return attribute;
}

OnnxModel model_with(std::vector<OnnxFunction> functions) {
    OnnxModel model;
    model.opsets = {{"", 13}, {"local", 1}};
    model.graph.input("x", {1, 3});
    model.functions = std::move(functions);
    return model;
}

std::vector<std::string> node_names(const Graph& graph) {
    std::vector<std::string> names;
    for (const Node& node : graph.nodes) names.push_back(node.op_type + " " + node.name);
    return names;
}

}  // namespace

TEST_CASE("a model's own function that nothing calls does not matter") {
    OnnxModel model = relu_model();
    model.functions.push_back(function("F", {"a"}, {"b"}, {{"Relu", {"a"}, {"b"}}}));
    CHECK(load(model).graph->nodes.size() == 1);
}

TEST_CASE("a call of a model's own function is replaced by its nodes, each call by nodes of its own") {
    OnnxModel model = model_with(
        {function("F", {"a"}, {"b"}, {{"Exp", {"a"}, {"x"}, {}, "exp"}, {"Neg", {"x"}, {"b"}, {}, "neg"}})});
    model.graph.node("F", {"x"}, {"y"}, {}, "f1", "local")
        .node("F", {"y"}, {"z"}, {}, "", "local")
        .output("z");
    const Model loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(node_names(graph) ==
          std::vector<std::string>{"Exp f1/exp", "Neg f1/neg", "Exp z/exp", "Neg z/neg"});
    CHECK(graph.nodes[1].outputs == std::vector<ValueId>{graph.find("y")});
    CHECK(graph.nodes[2].inputs == std::vector<ValueId>{graph.find("y")});
    CHECK(graph.nodes[0].outputs == std::vector<ValueId>{graph.find("f1/x")});
    CHECK(graph.nodes[2].outputs == std::vector<ValueId>{graph.find("z/x")});
    CHECK(graph.nodes[0].opset == 13);
}

TEST_CASE("a function's nodes have the opsets that the function imports") {
    OnnxFunction one = function("F", {"a"}, {"b"}, {{"Relu", {"a"}, {"b"}}});
    one.opsets = {{"", 9}};
    OnnxModel model = model_with({one});
    model.graph.node("F", {"x"}, {"y"}, {}, "", "local").node("Relu", {"y"}, {"z"}).output("z");
    const Model loaded = load(model);
    CHECK(loaded.graph->nodes[0].opset == 9);
    CHECK(loaded.graph->nodes[1].opset == 13);
    model.functions[0].opsets = {{"", 6}};
    CHECK(error_of(model) == "function 'local:F': opset: expected 7 or newer, found 6");
    model.functions[0].opsets = {{"elsewhere", 1}};
    CHECK(
        error_of(model) ==
        "local:F making 'y': Relu making 'y': expected a domain that the function imports an opset of, found "
        "'ai.onnx'");
}

TEST_CASE("a reference to a function's attribute is what the call or else the default gives, or left out") {
    OnnxFunction inner = function("Inner", {"a"}, {"b"},
                                  {{"LeakyRelu", {"a"}, {"t"}, {reference("alpha", "slope")}},
                                   {"Elu", {"t"}, {"u"}, {reference("alpha", "height")}},
                                   {"Selu", {"u"}, {"b"}, {reference("gamma", "absent")}}});
    inner.defaults = {{"height", 0.75}, {"slope", 0.5}};
    OnnxFunction outer =
        function("Outer", {"a"}, {"b"}, {{"Inner", {"a"}, {"b"}, {reference("slope", "k")}, "in", "local"}});
    outer.opsets = {{"", 13}, {"local", 1}};
    OnnxModel model = model_with({inner, outer});
    model.graph.node("Outer", {"x"}, {"y"}, {{"k", 0.25}}, "out", "local").output("y");
    const Model loaded = load(model);
    const auto& nodes = loaded.graph->nodes;
    REQUIRE(nodes.size() == 3);
    CHECK(nodes[0].attribute<float>("alpha", 0) == 0.25F);
    CHECK(nodes[1].attribute<float>("alpha", 0) == 0.75F);
    CHECK_FALSE(nodes[2].has_attribute("gamma"));
    CHECK(loaded.graph->find("out/in/t") != no_value);
}

TEST_CASE("inputs and outputs that a call leaves out are left out in the function, too") {
    OnnxModel model = model_with({function("F", {"a", "low", "high"}, {"b", "c"},
                                           {{"Clip", {"a", "low", "high"}, {"b"}}, {"Neg", {"b"}, {"c"}}})});
    model.graph.node("F", {"x", "", "x"}, {"y"}, {}, "f", "local").output("y");
    const Model loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(graph.nodes[0].inputs == std::vector<ValueId>{graph.find("x"), no_value, graph.find("x")});
    CHECK(graph.find("f/c") != no_value);
    model.graph.nodes[0].inputs.emplace_back("x");
    CHECK(error_of(model).find(
              "local:F 'f': expected at most the 3 inputs and 2 outputs of function 'local:F', "
              "found 4 and 1") != std::string::npos);
}

TEST_CASE("a function that hands an input through makes it the call's output") {
    OnnxModel model = model_with({function("F", {"a"}, {"a", "b"}, {{"Neg", {"a"}, {"b"}}})});
    model.graph.node("F", {"x"}, {"y", "z"}, {}, "f", "local").output("y").output("z");
    const Model loaded = load(model);
    const Graph& graph = *loaded.graph;
    CHECK(node_names(graph) == std::vector<std::string>{"Neg ", "Identity f/Identity"});
    CHECK(graph.nodes[1].inputs == std::vector<ValueId>{graph.find("x")});
    CHECK(graph.nodes[1].outputs == std::vector<ValueId>{graph.find("y")});
}

TEST_CASE("a body in a function sees the function's values and nothing around the call") {
    OnnxGraph branch;
    branch.node("Neg", {"a"}, {"n"}).output("n");
    OnnxModel model = model_with(
        {function("F", {"c", "a"}, {"b"},
                  {{"If", {"c"}, {"b"}, {{"then_branch", branch}, {"else_branch", branch}}, "if"}})});
    model.graph.input("c", {}, DataType::boolean).node("F", {"c", "x"}, {"y"}, {}, "f", "local").output("y");
    const Model loaded = load(model);
    const Graph& graph = *loaded.graph;
    const Node& node = graph.nodes.back();
    CHECK(node.name == "f/if");
    CHECK(node.captured == std::vector<ValueId>{graph.find("x")});
    CHECK(graph.find("f/if/then_branch/n") != no_value);
    CHECK(graph.find("f/if/else_branch/n") != no_value);

    OnnxModel sees_too_much = model_with({function("F", {"a"}, {"b"}, {{"Add", {"a", "x"}, {"b"}}})});
    sees_too_much.graph.node("F", {"x"}, {"y"}, {}, "f", "local").output("y");
    CHECK(error_of(sees_too_much) == "Add making 'y' uses 'f/x', which nothing makes (did you mean 'x'?)");
}

TEST_CASE("functions that call themselves or each other without end are refused") {
    OnnxFunction one = function("F", {"a"}, {"b"}, {{"G", {"a"}, {"b"}, {}, "g", "local"}});
    OnnxFunction two = function("G", {"a"}, {"b"}, {{"F", {"a"}, {"b"}, {}, "f", "local"}});
    OnnxModel model = model_with({one, two});
    model.graph.node("F", {"x"}, {"y"}, {}, "call", "local").output("y");
    CHECK(error_of(model).find(
              "local:F 'call': local:G 'call/g': local:F 'call/g/f': expected functions that do "
              "not call themselves, found that 'local:F' does") != std::string::npos);
}

TEST_CASE("functions that multiply are refused before they fill the memory") {
    std::vector<OnnxFunction> functions;
    for (int depth = 0; depth < 40; ++depth) {
        const std::string next = "F" + std::to_string(depth + 1);
        functions.push_back(
            function("F" + std::to_string(depth), {"a"}, {"b"},
                     {{next, {"a"}, {"t"}, {}, "", "local"}, {next, {"t"}, {"b"}, {}, "", "local"}}));
    }
    functions.push_back(function("F40", {"a"}, {"b"}, {{"Relu", {"a"}, {"b"}}}));
    OnnxModel model = model_with(std::move(functions));
    model.graph.node("F0", {"x"}, {"y"}, {}, "call", "local").output("y");
    CHECK(error_of(model).find("expected at most 100000 calls of functions and 1000000 nodes, found more") !=
          std::string::npos);
}

}  // namespace qcalib
