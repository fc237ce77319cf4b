// The layers that TIDL makes of a model.
#include "target/tidl_layers.h"

#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "assignment_fixture.h"

using namespace qcalib;
using test::AssignmentFixture;

namespace {

constexpr double open_end = std::numeric_limits<double>::infinity();

// x of the shape [1, 2, 4, 4] and the weight w of a 1x1 convolution.
AssignmentFixture tidl_net() {
    AssignmentFixture net;
    net.input("x");
    net.graph.values[net.value("x")].declared_shape = {{1, ""}, {2, ""}, {4, ""}, {4, ""}};
    net.constant("w", {2, 2, 1, 1}, {1, 0, 0, 1});
    return net;
}

void layer_clip(AssignmentFixture& net, const std::string& from, const std::string& to, float min,
                float max) {
    Node& node = net.node("Clip", {from}, {to});
    node.opset = 6;
    node.attributes["min"] = min;
    node.attributes["max"] = max;
}

TidlLayers layers_of(AssignmentFixture& net, const std::string& output) {
    net.graph.outputs = {net.value(output)};
    return {net.graph, [&net](ValueId value) -> const Tensor* {
                const auto found = net.constants.find(value);
                return found == net.constants.end() ? nullptr : &found->second;
            }};
}

std::vector<std::string> types_of(const TidlLayers& layers) {
    std::vector<std::string> types;
    for (const TidlLayer& layer : layers.all()) types.emplace_back(layer.type);
    return types;
}
using Types = std::vector<std::string>;

}  // namespace

TEST_CASE("a convolution takes in its batch normalization and Relu, and is called by what Relu makes") {
    AssignmentFixture net = tidl_net();
    for (const char* name : {"scale", "shift", "mean", "variance"}) net.constant(name, {2}, {1, 1});
    net.node("Conv", {"x", "w"}, {"c"});
    net.node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, {"b"});
    net.node("Relu", {"b"}, {"r"});
    net.node("Conv", {"r", "w"}, {"y"});
    const TidlLayers layers = layers_of(net, "y");
    CHECK(types_of(layers) == Types{"TIDL_DataLayer", "TIDL_ConvolutionLayer", "TIDL_ConvolutionLayer"});
    const TidlLayer& first = layers.at(1);
    CHECK(first.nodes == std::vector<NodeIndex>{0, 1, 2});
    CHECK(first.output() == net.value("r"));
    CHECK(first.norm == 1);
    CHECK(first.weight == net.value("w"));
    CHECK(first.activation.kind == TidlActivation::Kind::relu);
    CHECK(first.is_unsigned);
    CHECK(first.lacks_range());
    CHECK(layers.around(net.value("c")) == 1);
    CHECK(!layers.making(net.value("c")));
    CHECK(layers.making(net.value("r")) == 1);
    CHECK(layers.at(2).inputs == std::vector<std::size_t>{1});
    CHECK(!layers.at(2).is_unsigned);
    CHECK(layers.readers(1) == std::vector<std::size_t>{2});
    CHECK(!layers.at(0).is_unsigned);
    CHECK(!layers.at(0).lacks_range());
}

TEST_CASE("Clips in a row become one that lets through what all do") {
    AssignmentFixture net = tidl_net();
    net.node("Conv", {"x", "w"}, {"c"});
    layer_clip(net, "c", "d", -4, 8);
    layer_clip(net, "d", "e", -8, 2);
    net.node("Relu", {"e"}, {"y"});
    const TidlLayers layers = layers_of(net, "y");
    REQUIRE(layers.all().size() == 2);
    CHECK(layers.at(1).activation == TidlActivation{TidlActivation::Kind::clip, {0, 2}});
    CHECK(layers.at(1).is_unsigned);
    CHECK(!layers.at(1).lacks_range());
}

TEST_CASE("a Clip without a layer to go into becomes a batch norm of its own") {
    AssignmentFixture net = tidl_net();
    layer_clip(net, "x", "a", 0, 1);
    net.node("Conv", {"a", "w"}, {"c"});
    layer_clip(net, "c", "d", -4, 4);
    net.node("Relu", {"c"}, {"e"});
    net.node("Add", {"d", "e"}, {"y"});
    const TidlLayers layers = layers_of(net, "y");
    CHECK(types_of(layers) == Types{"TIDL_DataLayer", "TIDL_BatchNormLayer", "TIDL_ConvolutionLayer",
                                    "TIDL_BatchNormLayer", "TIDL_BatchNormLayer", "TIDL_EltWiseLayer"});
    CHECK(layers.at(1).stands_alone);
    CHECK(layers.at(1).is_unsigned);
    CHECK(!layers.at(3).is_unsigned);  // Clip from -4
    CHECK(layers.at(4).is_unsigned);   // Relu
    CHECK(layers.at(5).inputs == std::vector<std::size_t>{3, 4});
}

TEST_CASE("TIDL takes Clips from 0 or less to more than 0 alone") {
    CHECK(tidl_takes_clip({0, 1}));
    CHECK(tidl_takes_clip({-1, 4}));
    CHECK(tidl_takes_clip({-open_end, 4}));
    CHECK(!tidl_takes_clip({-4, -1}));
    CHECK(!tidl_takes_clip({-4, 0}));
    CHECK(!tidl_takes_clip({1, 4}));
    AssignmentFixture net = tidl_net();
    net.node("Conv", {"x", "w"}, {"c"});
    layer_clip(net, "c", "y", 1, 4);
    const TidlLayers layers = layers_of(net, "y");
    CHECK(types_of(layers) == Types{"TIDL_DataLayer", "TIDL_ConvolutionLayer", ""});
    CHECK(layers.at(2).refused == std::vector<NodeIndex>{1});
}

TEST_CASE("bounds are read of attributes, inputs, Relu, and pairs of Min and Max") {
    AssignmentFixture net = tidl_net();
    net.constant("low", {}, {-4});
    net.constant("high", {}, {4});
    Node& by_inputs = net.node("Clip", {"x", "low", "high"}, {"a"});
    by_inputs.opset = 13;
    Node& half_open = net.node("Clip", {"x", "", "high"}, {"b"});
    half_open.opset = 13;
    net.node("Min", {"x", "high"}, {"c"});
    net.node("Max", {"low", "c"}, {"d"});
    net.node("Relu", {"x"}, {"e"});
    net.node("Max", {"x", "e"}, {"f"});
    const ConstantLookup constant = [&](ValueId value) -> const Tensor* {
        const auto found = net.constants.find(value);
        return found == net.constants.end() ? nullptr : &found->second;
    };
    const auto bounds = [&](std::size_t node) { return clip_bounds(net.graph.nodes[node], constant); };
    CHECK(bounds(0) == Range{-4, 4});
    CHECK(bounds(1) == Range{-open_end, 4});
    CHECK(bounds(2) == Range{-open_end, 4});
    CHECK(bounds(3) == Range{-4, open_end});
    CHECK(bounds(4) == Range{0, open_end});
    CHECK(!bounds(5));  // the greater of two activations
    const TidlLayers layers = layers_of(net, "d");
    const std::size_t pair = *layers.making(net.value("d"));
    CHECK(layers.at(pair).activation == TidlActivation{TidlActivation::Kind::clip, {-4, 4}});
    CHECK(layers.at(pair).nodes == std::vector<NodeIndex>{2, 3});
}

TEST_CASE("layers that move codes have the scale and sign of their input") {
    AssignmentFixture net = tidl_net();
    net.constant("shape", Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{-1}));
    net.node("Conv", {"x", "w"}, {"c"});
    net.node("Relu", {"c"}, {"r"});
    net.node("MaxPool", {"r"}, {"p"});
    net.node("Reshape", {"p", "shape"}, {"y"});
    net.node("Sigmoid", {"y"}, {"s"});
    const TidlLayers layers = layers_of(net, "s");
    const std::size_t conv = *layers.making(net.value("r"));
    const std::size_t reshape = *layers.making(net.value("y"));
    CHECK(layers.at(reshape).passes_scale);
    CHECK(layers.at(reshape).is_unsigned);
    CHECK(layers.scale_of(reshape) == conv);
    CHECK(layers.at(reshape).lacks_range());                        // by the letter of TIDL's rule
    CHECK(!layers.at(*layers.making(net.value("s"))).is_unsigned);  // though no value is negative
}

TEST_CASE("constants with one number a channel make a batch norm, others are layers of data") {
    AssignmentFixture net = tidl_net();
    net.constant("channels", {1, 2, 1, 1}, {1, 2});
    net.constant("pixels", {1, 1, 1, 4}, {1, 2, 3, 4});
    net.constant("one", {}, {3});
    net.node("Mul", {"x", "channels"}, {"a"});
    net.graph.values[net.value("a")].declared_shape = net.graph.values[net.value("x")].declared_shape;
    net.node("Add", {"a", "pixels"}, {"b"});
    net.node("Mul", {"b", "one"}, {"y"});
    const TidlLayers layers = layers_of(net, "y");
    CHECK(types_of(layers) == Types{"TIDL_DataLayer", "TIDL_BatchNormLayer", "TIDL_ConstDataLayer",
                                    "TIDL_EltWiseLayer", "TIDL_BatchNormLayer"});
    CHECK(layers.at(3).inputs == std::vector<std::size_t>{1, 2});
}

TEST_CASE("a product and the bias added to it are one inner product; Identity and Dropout are no layers") {
    AssignmentFixture net = tidl_net();
    net.constant("m", {4, 4}, std::vector<float>(16, 1));
    net.constant("bias", {4}, {1, 2, 3, 4});
    net.node("Identity", {"x"}, {"i"});
    net.node("MatMul", {"i", "m"}, {"p"});
    net.node("Add", {"bias", "p"}, {"q"});
    net.node("Dropout", {"q"}, {"d"});
    net.node("Relu", {"d"}, {"y"});
    const TidlLayers layers = layers_of(net, "y");
    CHECK(types_of(layers) == Types{"TIDL_DataLayer", "TIDL_InnerProductLayer"});
    CHECK(layers.at(1).bias == net.value("bias"));
    CHECK(layers.at(1).output() == net.value("y"));
    CHECK(layers.at(1).inputs == std::vector<std::size_t>{0});
}

TEST_CASE("what the graph gives out, or several nodes read, stays a tensor of its own") {
    AssignmentFixture net = tidl_net();
    net.node("Conv", {"x", "w"}, {"c"});
    net.node("Relu", {"c"}, {"r"});
    net.graph.outputs = {net.value("r"), net.value("c")};
    const TidlLayers layers(net.graph, [](ValueId) { return nullptr; });
    CHECK(layers.making(net.value("c")) != layers.making(net.value("r")));
}

TEST_CASE("odd graphs make layers, never a crash") {
    AssignmentFixture net = tidl_net();
    net.node("Identity", {"", "x"}, {"a"});
    net.node("Dropout", {"", "x"}, {"b"});
    net.node("Add", {"x", ""}, {"c"});
    net.node("Mul", {"w", ""}, {"d"});
    net.node("Conv", {"x"}, {"e"});
    net.node("Dropout", {"x", "e"}, {"f"});  // e is the ratio
    net.node("BatchNormalization", {"x", "w"}, {"g"});
    net.node("Clip", {"x", "w"}, {"h"});  // no single number
    net.node("Relu", {}, {"i"});
    net.node("Concat", {"x", "x"}, {""});
    net.node("Max", {"x"}, {"j"});
    net.node("Softmax", {"j"}, {});
    const TidlLayers layers = layers_of(net, "j");
    CHECK(layers.making(net.value("e")));
    CHECK(layers.at(*layers.making(net.value("e"))).nodes.size() == 1);
    CHECK(!layers.making(net.value("i")));
    CHECK(!layers.making(no_value));
    for (const TidlLayer& layer : layers.all()) CHECK(!layer.outputs.empty());
}
