#include "graph/verify.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace qcalib {

namespace {

// Builds graphs by names, in whatever order and with whatever faults.
struct GraphBuilder {
    Graph graph;

    ValueId value(const std::string& name) {
        if (name.empty()) return no_value;
        const auto [entry, is_new] = graph.index.emplace(name, static_cast<ValueId>(graph.values.size()));
        if (is_new) graph.values.emplace_back().name = name;
        return entry->second;
    }

    GraphBuilder& input(const std::string& name, DataType type = DataType::float32) {
        graph.inputs.push_back(value(name));
        graph.values[graph.inputs.back()].declared_type = type;
        return *this;
    }
    GraphBuilder& output(const std::string& name) {
        graph.outputs.push_back(value(name));
        return *this;
    }
    GraphBuilder& initializer(const std::string& name) {
        graph.values[value(name)].initializer = Tensor(TensorDescriptor{DataType::float32, {1}});
        return *this;
    }
    GraphBuilder& node(const std::string& name, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs) {
        Node& node = graph.nodes.emplace_back();
        node.op_type = "Op";
        node.name = name;
        for (const std::string& input : inputs) node.inputs.push_back(value(input));
        for (const std::string& output : outputs) node.outputs.push_back(value(output));
        return *this;
    }
    // Gives the last node a body of one node and says that it reads `captured` from outside.
    GraphBuilder& body(const std::string& name, const std::vector<std::string>& inputs,
                       const std::string& output, const std::vector<std::string>& captured) {
        const auto owner = static_cast<NodeIndex>(graph.nodes.size() - 1);
        node(name, inputs, {output});
        graph.nodes.back().owner = owner;
        graph.nodes[owner].bodies.push_back({"body", {}, {value(output)}, {owner + 1}});
        for (const std::string& one : captured) graph.nodes[owner].captured.push_back(value(one));
        return *this;
    }

    std::vector<std::string> names() const {
        std::vector<std::string> result;
        for (const Node& node : graph.nodes) result.push_back(node.name);
        return result;
    }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a sound graph has no findings") {
    GraphBuilder builder;
    builder.input("x")
        .initializer("w")
        .node("a", {"x", "w", ""}, {"t", ""})
        .node("b", {"t", "x"}, {"y"})
        .output("y");
    CHECK(verify(builder.graph).empty());
    GraphBuilder passed;
    passed.input("x").initializer("w").output("x").output("w");
    CHECK(verify(passed.graph).empty());
}

TEST_CASE("a value that nothing makes is found once, with the nearest value") {
    GraphBuilder builder;
    builder.input("features")
        .node("a", {"feature"}, {"y"})
        .node("b", {"feature"}, {"z"})
        .output("y")
        .output("q");
    CHECK(verify(builder.graph) ==
          Names{"Op 'a' uses 'feature', which nothing makes (did you mean 'features'?)",
                "graph output 'q' is made by nothing"});
}

TEST_CASE("a value made twice is found with both makers") {
    GraphBuilder builder;
    builder.input("x").initializer("w").node("a", {"x"}, {"y"}).node("b", {"x"}, {"y"});
    builder.node("c", {"x"}, {"x"}).node("d", {"x"}, {"w"}).output("y");
    const Names findings = verify(builder.graph);
    REQUIRE(findings.size() == 3);
    CHECK(findings[0] == "'y' is made twice: by Op 'b' and as the output of Op 'a'");
    CHECK(findings[1] == "'x' is made twice: by Op 'c' and as a graph input");
    CHECK(findings[2] == "'w' is made twice: by Op 'd' and as an initializer");
}

TEST_CASE("a node that uses its own output is found") {
    GraphBuilder builder;
    builder.input("x").node("a", {"x", "y"}, {"y"}).output("y");
    CHECK(verify(builder.graph) == Names{"Op 'a' uses its own output"});
    CHECK_FALSE(sort_nodes(builder.graph));
}

TEST_CASE("a graph input listed twice and one of strings are found") {
    GraphBuilder builder;
    builder.input("x").input("x").input("s", DataType::string).output("x");
    CHECK(verify(builder.graph) == Names{"graph input 'x' is listed twice",
                                         "graph input 's': expected a tensor of numbers, found strings"});
    CHECK(verify(builder.graph, ModelInputs::any) == Names{"graph input 'x' is listed twice"});
}

TEST_CASE("each cycle is found with its nodes and not with those behind it") {
    GraphBuilder builder;
    builder.input("x").node("a", {"x", "c"}, {"a"}).node("b", {"a"}, {"b"}).node("c", {"b"}, {"c"});
    builder.node("behind", {"c"}, {"d"}).node("e", {"f"}, {"e"}).node("f", {"e"}, {"f"});
    builder.node("far", {"d", "e"}, {"y"}).output("y");
    CHECK(verify(builder.graph) ==
          Names{"nodes in a cycle, each using what the one before makes: Op 'b', Op 'c', Op 'a'",
                "nodes in a cycle, each using what the one before makes: Op 'f', Op 'e'"});
    const Names before = builder.names();
    CHECK_FALSE(sort_nodes(builder.graph));
    CHECK(builder.names() == before);
}

TEST_CASE("faults of a body are found with the node and attribute it belongs to") {
    GraphBuilder builder;
    builder.input("x").node("loop", {}, {"y"}).body("i", {"x", "lost"}, "r", {"x", "nowhere"}).output("y");
    CHECK(verify(builder.graph) == Names{"Op 'loop' uses 'nowhere', which nothing makes",
                                         "Op 'loop', body: Op 'i' uses 'lost', which nothing makes"});
}

TEST_CASE("what a body makes is not seen outside") {
    GraphBuilder builder;
    builder.input("x").node("loop", {}, {"y"}).body("i", {"x"}, "r", {"x"}).output("y");
    CHECK(verify(builder.graph).empty());
    builder.node("user", {"r"}, {"z"}).output("z");
    CHECK(verify(builder.graph) == Names{"Op 'user' uses 'r', which nothing makes"});
}

TEST_CASE("sorting puts makers first and otherwise keeps the file's order") {
    GraphBuilder builder;
    builder.input("x")
        .node("last", {"p", "q"}, {"y"})
        .node("first", {"x"}, {"t"})
        .node("second", {"t"}, {"p"});
    builder.node("third", {"t", "t"}, {"q"}).node("apart", {"x"}, {"z"}).output("y");
    REQUIRE(sort_nodes(builder.graph));
    CHECK(builder.names() == Names{"first", "second", "third", "last", "apart"});
    for (std::uint32_t i = 0; i < builder.graph.nodes.size(); ++i) {
        for (const ValueId output : builder.graph.nodes[i].outputs)
            CHECK(builder.graph.values[output].producer == i);
    }
    CHECK(builder.graph.values[builder.value("x")].producer == std::numeric_limits<std::uint32_t>::max());
    const Names sorted = builder.names();
    REQUIRE(sort_nodes(builder.graph));
    CHECK(builder.names() == sorted);
}

TEST_CASE("a node comes after the makers of what its body reads, and the body's nodes right before it") {
    GraphBuilder builder;
    builder.input("x").node("loop", {"x"}, {"y"}).body("i", {"t"}, "r", {"t"}).node("maker", {"x"}, {"t"});
    builder.output("y");
    REQUIRE(sort_nodes(builder.graph));
    CHECK(builder.names() == Names{"maker", "i", "loop"});
    CHECK(builder.graph.outermost_nodes() == std::vector<NodeIndex>{0, 2});
    CHECK(builder.graph.nodes[1].owner == 2);
    CHECK(builder.graph.nodes[2].bodies[0].nodes == std::vector<NodeIndex>{1});
    CHECK(builder.graph.values[builder.value("r")].producer == 1);
    CHECK(verify(builder.graph).empty());
}

TEST_CASE("a graph of many nodes in reverse order is sorted") {
    constexpr int count = 20000;
    GraphBuilder builder;
    builder.input("v0");
    for (int i = count; i > 0; --i) {
        builder.node(fmt::format("{}", i), {fmt::format("v{}", i - 1)}, {fmt::format("v{}", i)});
    }
    REQUIRE(sort_nodes(builder.graph));
    CHECK(builder.graph.nodes.front().name == "1");
    CHECK(builder.graph.nodes.back().name == std::to_string(count));
    CHECK(verify(builder.graph).empty());
}

}  // namespace qcalib
