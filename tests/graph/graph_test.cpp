#include "graph/graph.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace qcalib {

namespace {

Graph graph_of(const std::vector<std::string>& names) {
    Graph graph;
    for (const std::string& name : names) {
        graph.index.emplace(name, static_cast<ValueId>(graph.values.size()));
        graph.values.emplace_back().name = name;
    }
    return graph;
}

Node node_of(std::string domain, std::string op_type, std::string name, std::vector<ValueId> outputs) {
    Node node;
    node.domain = std::move(domain);
    node.op_type = std::move(op_type);
    node.name = std::move(name);
    node.outputs = std::move(outputs);
    return node;
}

}  // namespace

TEST_CASE("values are found by name") {
    const Graph graph = graph_of({"x", std::string("a\0b", 3)});
    CHECK(graph.find("x") == 0);
    CHECK(graph.find(std::string_view("a\0b", 3)) == 1);
    CHECK(graph.find("a") == no_value);
}

TEST_CASE("messages name a node by its name or else by what it makes") {
    const Graph graph = graph_of({"x", "y\n"});
    CHECK(label(graph, node_of("", "Conv", "conv1", {1})) == "Conv 'conv1'");
    CHECK(label(graph, node_of("", "Conv", "", {1})) == "Conv making 'y\\x0a'");
    CHECK(label(graph, node_of("my.domain", "Conv", "", {no_value, 0})) == "my.domain:Conv making 'x'");
    CHECK(label(graph, node_of("", "Conv", "", {})) == "Conv without name and outputs");
}

TEST_CASE("declared shapes are printed with their fixed, named and unknown dimensions") {
    CHECK(to_string(std::optional<std::vector<Dimension>>()) == "unknown shape");
    const std::vector<Dimension> shape = {{1, ""}, {std::nullopt, "H"}, {std::nullopt, ""}};
    CHECK(to_string(std::optional(shape)) == "[1,H,?]");
    CHECK(to_string(std::optional(std::vector<Dimension>())) == "[]");
}

TEST_CASE("attributes are read by type, with a default, and refused in another type") {
    Node node = node_of("", "Conv", "c", {});
    node.attributes["group"] = std::int64_t{2};
    node.attributes["pads"] = std::vector<std::int64_t>{1, 1};
    CHECK(node.has_attribute("group"));
    CHECK_FALSE(node.has_attribute("strides"));
    CHECK(node.attribute<std::int64_t>("group", 1) == 2);
    CHECK(node.attribute<std::int64_t>("other", 1) == 1);
    CHECK(node.attribute<std::vector<std::int64_t>>("pads", {}).size() == 2);
    CHECK(test::message_of<Error>([&] { node.attribute<float>("group", 1.0F); }) ==
          "Conv 'c': attribute 'group': expected another type than an integer");
    CHECK(test::message_of<Error>([&] { node.attribute<std::int64_t>("pads", 1); }) ==
          "Conv 'c': attribute 'pads': expected another type than a list of integers");
}

}  // namespace qcalib
