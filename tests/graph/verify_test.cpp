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
    GraphBuilder& capture(const std::string& name) {
        graph.captures.emplace_back(value(name), name);
        return *this;
    }
    // Gives the last node a subgraph that reads `captured` of this graph.
    GraphBuilder& body(const GraphBuilder& inner, const std::vector<std::string>& captured) {
        std::vector<ValueId> ids;
        for (const std::string& name : captured) ids.push_back(value(name));
        graph.nodes.back().captured = ids;
        graph.nodes.back().attributes["body"] = std::make_shared<const Graph>(inner.graph);
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

TEST_CASE("faults of a subgraph are found with the node and attribute it belongs to") {
    GraphBuilder inner;
    inner.capture("x").capture("nowhere").node("i", {"x", "lost"}, {"r"}).output("r");
    GraphBuilder outer;
    outer.input("x").node("loop", {}, {"y"}).body(inner, {"x"}).output("y");
    CHECK(verify(outer.graph) ==
          Names{"Op 'loop', body: 'nowhere' is taken from an outer graph that has no such value",
                "Op 'loop', body: Op 'i' uses 'lost', which nothing makes"});
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

TEST_CASE("a node comes after the makers of what its subgraph reads") {
    GraphBuilder inner;
    inner.capture("t").node("i", {"t"}, {"r"}).output("r");
    GraphBuilder outer;
    outer.input("x").node("loop", {"x"}, {"y"}).body(inner, {"t"}).node("maker", {"x"}, {"t"}).output("y");
    REQUIRE(sort_nodes(outer.graph));
    CHECK(outer.names() == Names{"maker", "loop"});
    CHECK(verify(outer.graph).empty());
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
