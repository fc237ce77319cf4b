#include "target/needed_tensors.h"

#include <doctest/doctest.h>

#include "assignment_fixture.h"

using namespace qcalib;
using test::AssignmentFixture;
using test::names_of;
using Names = std::vector<std::string>;

namespace {

Names needed(const AssignmentFixture& fixture) {
    return needed_tensors(fixture.graph, load_target("snpe"));
}

// x -> Conv -> c -> `op_type` -> y.
AssignmentFixture convolution_into(const std::string& op_type) {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.graph.values[fixture.value("w")].initializer =
        Tensor::of<float>({1, 1, 1, 1}, std::vector<float>{1});
    fixture.node("Conv", {"x", "w"}, {"c"});
    fixture.node(op_type, {"c"}, {"y"});
    fixture.graph.outputs = {fixture.value("y")};
    return fixture;
}

}  // namespace

TEST_CASE("a convolution and the activation after it both need statistics: the DLC keeps both rows") {
    for (const std::string op_type : {"Relu", "Clip", "Sigmoid", "MaxPool", "Add"}) {
        CHECK(needed(convolution_into(op_type)) == Names{"x", "c", "y"});
    }
}

TEST_CASE("what a target fuses by a pattern needs no statistics") {
    CHECK(needed(convolution_into("BatchNormalization")) == Names{"x", "y"});
    AssignmentFixture twice = convolution_into("BatchNormalization");
    twice.node("Relu", {"y"}, {"r"});
    twice.node("Neg", {"c"}, {"z"});
    CHECK(needed(twice) == Names{"x", "c", "y", "r", "z"});
}

namespace {

// A target whose compiler fuses a convolution with what follows, as some do.
Target fusing_target() {
    Target target = load_target("snpe");
    target.fusion_patterns.clear();
    for (const char* into : {"Relu", "Clip", "BatchNormalization"}) {
        target.fusion_rules.push_back({"Conv", into, {}, {}});
    }
    target.fusion_rules.push_back({"BatchNormalization", "Relu", {"Conv"}, {}});
    return target;
}

Names needed_where_fused(const AssignmentFixture& fixture) {
    return needed_tensors(fixture.graph, fusing_target());
}

}  // namespace

TEST_CASE("a convolution that feeds only an activation the target fuses needs no statistics") {
    for (const std::string op_type : {"Relu", "Clip", "BatchNormalization"}) {
        CHECK(needed_where_fused(convolution_into(op_type)) == Names{"x", "y"});
    }
    for (const std::string op_type : {"Sigmoid", "MaxPool", "Add"}) {
        CHECK(needed_where_fused(convolution_into(op_type)) == Names{"x", "c", "y"});
    }
}

TEST_CASE("what something else reads too, and what other domains do, is not fused") {
    AssignmentFixture twice = convolution_into("Relu");
    twice.node("Neg", {"c"}, {"z"});
    CHECK(needed_where_fused(twice) == Names{"x", "c", "y", "z"});
    AssignmentFixture output = convolution_into("Relu");
    output.graph.outputs.push_back(output.value("c"));
    CHECK(needed_where_fused(output) == Names{"x", "c", "y"});
    AssignmentFixture captured = convolution_into("Relu");
    captured.node("If", {"condition"}, {"z"}).captured = {captured.value("c")};
    CHECK(needed_where_fused(captured) == Names{"x", "c", "y", "z"});
    AssignmentFixture foreign = convolution_into("Relu");
    foreign.graph.nodes[0].domain = "com.example";
    CHECK(needed_where_fused(foreign) == Names{"x", "c", "y"});
    AssignmentFixture bound;
    bound.input("x");
    bound.node("Conv", {"x", "w"}, {"c"});
    bound.node("Clip", {"x", "c"}, {"y"});
    CHECK(needed_where_fused(bound) == Names{"x", "c", "y"});
}

TEST_CASE("a batch normalisation is fused with its activation only where it follows a convolution") {
    AssignmentFixture after = convolution_into("BatchNormalization");
    after.node("Relu", {"y"}, {"r"});
    after.graph.outputs = {after.value("r")};
    CHECK(needed_where_fused(after) == Names{"x", "r"});
    AssignmentFixture alone;
    alone.input("x");
    alone.node("BatchNormalization", {"x"}, {"b"});
    alone.node("Relu", {"b"}, {"r"});
    CHECK(needed_where_fused(alone) == Names{"x", "b", "r"});
}

TEST_CASE("integers need no statistics, and values of unknown type may") {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.input("i", DataType::int64);
    fixture.node("Gather", {"x", "i"}, {"g"});
    fixture.node("Shape", {"g"}, {"s"});
    fixture.graph.values[fixture.value("s")].declared_type = DataType::int64;
    CHECK(needed(fixture) == Names{"x", "g"});
}

TEST_CASE("constants need no statistics, nor does what is made of them alone") {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.node("Constant", {}, {"k"});
    fixture.node("Neg", {"k"}, {"n"});
    fixture.node("Add", {"x", "n"}, {"y"});
    CHECK(needed(fixture) == Names{"x", "y"});
}

TEST_CASE("encodings are made without what a rule fuses, and with it where it was counted") {
    AssignmentFixture fixture = convolution_into("Relu");
    fixture.target = fusing_target();
    fixture.constant("w", {1, 1, 1, 1}, {1.0F});
    fixture.count("x", {-1, 1});
    fixture.count("y", {0, 1});
    CHECK(names_of(fixture.assign().activations) == Names{"x", "y"});
    fixture.count("c", {-1, 1});
    CHECK(names_of(fixture.assign().activations) == Names{"x", "c", "y"});
}

TEST_CASE("what a pattern fuses gets no encoding, counted or not") {
    AssignmentFixture fixture = convolution_into("BatchNormalization");
    fixture.constant("w", {1, 1, 1, 1}, {1.0F});
    fixture.count("x", {-1, 1});
    fixture.count("y", {0, 1});
    CHECK(names_of(fixture.assign().activations) == Names{"x", "y"});
    CHECK(names_of(fixture.assign().parameters) == Names{"w"});
    fixture.count("c", {-1, 1});
    CHECK(names_of(fixture.assign().activations) == Names{"x", "y"});
    REQUIRE(fixture.decisions.size() == 4);
    CHECK(fixture.decisions[1].no_encoding ==
          "target 'snpe' fuses it into Conv+BatchNormalization making 'y'");
    CHECK(fixture.remarks.empty());
}
