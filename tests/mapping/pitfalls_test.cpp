#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.h"
#include "map_scene.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// Both models have the same nodes; the second renames them.
MapScene same_nodes(const std::vector<OnnxNode>& nodes, const OnnxDimensions& shape) {
    MapScene scene;
    for (OnnxModel* model : {&scene.onnx, &scene.circle}) {
        const std::string prefix = model == &scene.onnx ? "" : "k/";
        model->graph.input("x", shape);
        for (const OnnxNode& node : nodes) {
            OnnxNode renamed = node;
            for (std::string& name : renamed.inputs) name = name == "x" ? name : prefix + name;
            for (std::string& name : renamed.outputs) name = prefix + name;
            model->graph.nodes.push_back(renamed);
        }
        model->graph.output(prefix + nodes.back().outputs.front());
    }
    return scene;
}

void add_initializer(MapScene& scene, const std::string& name, const Shape& shape,
                     const std::vector<float>& values) {
    scene.onnx.graph.initializer(name, shape, values);
    scene.circle.graph.initializer("k/" + name, shape, values);
}

std::string onnx_name(const TensorMapping& mapping, const std::string& circle) {
    const TensorPair* pair = mapping.of_circle(mapping.circle->find(circle));
    return pair == nullptr ? "-" : mapping.onnx->values[pair->onnx].name;
}

}  // namespace

TEST_CASE("Tensors of zeros are told apart by their place, not by their values") {
    // Both branches are all zeros behind the Relu, whatever the input.
    MapScene scene = same_nodes({{"Abs", {"x"}, {"a"}},
                                 {"Neg", {"a"}, {"n"}},
                                 {"Relu", {"n"}, {"z1"}},
                                 {"Exp", {"x"}, {"e"}},
                                 {"Neg", {"e"}, {"m"}},
                                 {"Relu", {"m"}, {"z2"}},
                                 {"Concat", {"z1", "e", "z2"}, {"y"}, {{"axis", 1}}}},
                                {1, 3, 4});
    const TensorMapping mapping = scene.map();
    CHECK(partner_of(mapping, "k/z1") == "z1 (same, structure)");
    CHECK(partner_of(mapping, "k/z2") == "z2 (same, structure)");
    CHECK(partner_of(mapping, "k/y") == "y (same, value)");
}

TEST_CASE("Constants of one number are paired by the operators that read them") {
    MapScene scene = same_nodes({{"Mul", {"x", "ones"}, {"a"}},
                                 {"Sin", {"a"}, {"s"}},
                                 {"Mul", {"s", "more_ones"}, {"b"}},
                                 {"Add", {"b", "zeros"}, {"c"}},
                                 {"Conv", {"c", "w", "bias"}, {"y"}}},
                                {1, 2, 3, 3});
    add_initializer(scene, "ones", {2, 1, 1}, {1, 1});
    add_initializer(scene, "more_ones", {2, 1, 1}, {1, 1});
    add_initializer(scene, "zeros", {2, 1, 1}, {0, 0});
    add_initializer(scene, "w", {2, 2, 1, 1}, uneven(4));
    add_initializer(scene, "bias", {2}, {0, 0});
    const TensorMapping mapping = scene.map();
    for (const char* name : {"ones", "more_ones", "zeros", "bias"})
        CHECK(onnx_name(mapping, std::string("k/") + name) == name);
    CHECK(onnx_name(mapping, "k/w") == "w");
    CHECK(mapping.circle_alone.empty());
    CHECK(mapping.onnx_alone.empty());
}

TEST_CASE("Saturated and one-hot activations are paired by their place") {
    MapScene scene = same_nodes({{"Mul", {"x", "large"}, {"a"}},
                                 {"Abs", {"a"}, {"p"}},
                                 {"Sigmoid", {"p"}, {"s1"}},
                                 {"Exp", {"x"}, {"e"}},
                                 {"Mul", {"e", "large"}, {"q"}},
                                 {"Sigmoid", {"q"}, {"s2"}},
                                 {"Mul", {"s1", "e"}, {"m1"}},
                                 {"Mul", {"s2", "x"}, {"m2"}},
                                 {"Add", {"m1", "m2"}, {"y"}}},
                                {1, 5});
    add_initializer(scene, "large", {1}, {1e6F});
    const TensorMapping mapping = scene.map();
    CHECK(onnx_name(mapping, "k/s1") == "s1");
    CHECK(onnx_name(mapping, "k/s2") == "s2");
}

TEST_CASE("Equal height, width and channels: the values say which axes are which") {
    MapScene scene;
    const std::vector<float> weights = uneven(16 * 9, 0.3F);
    scene.onnx.graph.input("x", {1, 4, 4, 4});
    scene.onnx.graph.initializer("w", {4, 4, 3, 3}, weights);
    scene.onnx.graph.node("Conv", {"x", "w"}, {"c"}, {{"pads", OnnxInts{1, 1, 1, 1}}});
    scene.onnx.graph.node("Relu", {"c"}, {"y"});
    scene.onnx.graph.output("y");
    scene.circle.graph.input("x", {1, 4, 4, 4});
    scene.circle.graph.initializer("k/w", {4, 3, 3, 4}, permuted_values(weights, {4, 4, 3, 3}, {0, 2, 3, 1}));
    scene.circle.graph.node("Transpose", {"x"}, {"t"}, {{"perm", OnnxInts{0, 3, 1, 2}}});
    scene.circle.graph.node("Transpose", {"k/w"}, {"wt"}, {{"perm", OnnxInts{0, 3, 1, 2}}});
    scene.circle.graph.node("Conv", {"t", "wt"}, {"k/c"}, {{"pads", OnnxInts{1, 1, 1, 1}}});
    scene.circle.graph.node("Relu", {"k/c"}, {"r"});
    scene.circle.graph.node("Transpose", {"r"}, {"k/y"}, {{"perm", OnnxInts{0, 2, 3, 1}}});
    scene.circle.graph.output("k/y");
    const TensorMapping mapping = scene.map();
    CHECK(partner_of(mapping, "x") == "x (0,2,3,1, input)");
    CHECK(partner_of(mapping, "k/y") == "y (0,2,3,1, value)");
    CHECK(partner_of(mapping, "k/c") == "c (same, value)");
    REQUIRE(mapping.remarks.size() == 1);
    CHECK(mapping.remarks[0] ==
          "input 'x' [1,4,4,4]: its shape leaves open which axes are which; by the tensors' "
          "values the ONNX model takes it as 0,3,1,2");
}

TEST_CASE("Inputs of equal shape are bound by name, or refused where no name tells") {
    const auto scene_with = [](const std::string& first, const std::string& second) {
        MapScene scene;
        scene.onnx.graph.input("left", {1, 4}).input("right", {1, 4});
        scene.onnx.graph.node("Sub", {"left", "right"}, {"y"});
        scene.onnx.graph.output("y");
        scene.circle.graph.input(first, {1, 4}).input(second, {1, 4});
        scene.circle.graph.node("Neg", {first}, {"n"});
        scene.circle.graph.node("Add", {"n", second}, {"k/y"});
        scene.circle.graph.output("k/y");
        return scene;
    };
    MapScene swapped = scene_with("serving_default_right:0", "serving_default_left:0");
    const TensorMapping mapping = swapped.map();
    CHECK(onnx_name(mapping, "serving_default_right:0") == "right");
    CHECK(partner_of(mapping, "k/y") == "y (same, value)");
    MapScene unnamed = scene_with("in_0", "in_1");
    CHECK(message_of<Error>([&] { unnamed.map(); }) ==
          "net.circle: several inputs of net.onnx may be input 'in_0' [1,4]: 'left' [1,4], 'right' [1,4]; no "
          "name "
          "tells which, and their order may differ: give --bind in_0=NAME");
    unnamed.request.bind = {{"in_0", "right"}};
    CHECK(partner_of(unnamed.map(), "k/y") == "y (same, value)");
    unnamed.request.bind = {{"in_0", "rihgt"}};
    CHECK(message_of<Error>([&] { unnamed.map(); }) ==
          "--bind: net.onnx has no input 'rihgt' (did you mean 'right'?); its inputs are left, right");
}

TEST_CASE("Outputs in another order are found by their values and remarked on") {
    MapScene scene;
    scene.onnx.graph.input("x", {1, 4}).input("y", {1, 4});
    scene.onnx.graph.node("Add", {"x", "y"}, {"sum"});
    scene.onnx.graph.node("Sub", {"x", "y"}, {"difference"});
    scene.onnx.graph.output("sum").output("difference");
    scene.circle.graph.input("x", {1, 4}).input("y", {1, 4});
    scene.circle.graph.node("Sub", {"x", "y"}, {"out_0"});
    scene.circle.graph.node("Add", {"x", "y"}, {"out_1"});
    scene.circle.graph.output("out_0").output("out_1");
    const TensorMapping mapping = scene.map();
    CHECK(onnx_name(mapping, "out_0") == "difference");
    CHECK(onnx_name(mapping, "out_1") == "sum");
    REQUIRE(mapping.remarks.size() == 2);
    CHECK(mapping.remarks[0] ==
          "outputs are in another order: output 0 'out_0' of net.circle is output 1 "
          "'difference' of net.onnx");
}

TEST_CASE("Where the conversion changed the numbers is named, and what follows is paired all the same") {
    MapScene scene = same_nodes({{"Conv", {"x", "w"}, {"c"}},
                                 {"Relu", {"c"}, {"r"}},
                                 {"Conv", {"r", "v"}, {"d"}},
                                 {"Tanh", {"d"}, {"t"}},
                                 {"Mul", {"t", "u"}, {"y"}}},
                                {1, 3, 5, 5});
    const std::vector<float> changed = uneven(16, 0.4F, 5);
    scene.onnx.graph.initializer("w", {4, 3, 1, 1}, uneven(12, 0.4F, 4));
    scene.circle.graph.initializer("k/w", {4, 3, 1, 1}, uneven(12, 0.4F, 4));
    scene.onnx.graph.initializer("v", {4, 4, 1, 1}, changed);
    std::vector<float> rounded = changed;
    for (float& value : rounded) value = std::round(value * 16) / 16;
    scene.circle.graph.initializer("k/v", {4, 4, 1, 1}, rounded);
    add_initializer(scene, "u", {4, 1, 1}, uneven(4, 1, 7));
    const TensorMapping mapping = scene.map();
    CHECK(partner_of(mapping, "k/r") == "r (same, value)");
    CHECK(partner_of(mapping, "k/d") == "d (same, near)");
    CHECK(partner_of(mapping, "k/t") == "t (same, near)");
    CHECK(partner_of(mapping, "k/y") == "y (same, near)");
    REQUIRE(mapping.first_change);
    const TensorPair& first = mapping.pairs[*mapping.first_change];
    CHECK(mapping.circle->values[first.circle].name == "k/d");
    CHECK(first.difference > 0.001);
    CHECK(partner_of(mapping, "k/v") == "v (same, near)");
    CHECK(partner_of(mapping, "k/w") == "w (same, constant)");
}

TEST_CASE("Filters of depthwise and grouped convolutions, transposed matrices and reciprocals are found") {
    MapScene scene;
    const std::vector<float> depthwise = uneven(27, 0.5F, 1);
    const std::vector<float> grouped = uneven(24, 0.5F, 2);
    const std::vector<float> matrix = uneven(32, 0.5F, 3);
    OnnxGraph& net = scene.onnx.graph;
    net.input("x", {1, 3, 4, 4});
    net.initializer("dw", {3, 1, 3, 3}, depthwise).initializer("fc", {8, 4}, matrix);
    net.initializer("gw", {8, 3, 1, 1}, grouped).initializer("divisor", {1}, std::vector<float>{3});
    net.node("Conv", {"x", "dw"}, {"a"}, {{"group", 3}});
    net.node("Concat", {"a", "a"}, {"a2"}, {{"axis", 1}});
    net.node("Conv", {"a2", "gw"}, {"g"}, {{"group", 2}});
    net.node("GlobalAveragePool", {"g"}, {"p"});
    net.node("Flatten", {"p"}, {"f"});
    net.node("MatMul", {"f", "fc"}, {"m"});
    net.node("Div", {"m", "divisor"}, {"y"});
    net.output("y");
    OnnxGraph& circle = scene.circle.graph;
    circle.input("x", {1, 3, 4, 4});
    circle.initializer("k/dw", {1, 3, 3, 3}, permuted_values(depthwise, {3, 1, 3, 3}, {1, 2, 3, 0}));
    circle.initializer("k/fc", {4, 8}, permuted_values(matrix, {8, 4}, {1, 0}));
    circle.initializer("g0", {4, 3, 1, 1}, std::vector<float>(grouped.begin(), grouped.begin() + 12));
    circle.initializer("g1", {4, 3, 1, 1}, std::vector<float>(grouped.begin() + 12, grouped.end()));
    circle.initializer("factor", {1}, std::vector<float>{1.0F / 3});
    circle.node("Transpose", {"k/dw"}, {"dw_oihw"}, {{"perm", OnnxInts{3, 0, 1, 2}}});
    circle.node("Conv", {"x", "dw_oihw"}, {"k/a"}, {{"group", 3}});
    circle.node("Conv", {"k/a", "g0"}, {"h0"});
    circle.node("Conv", {"k/a", "g1"}, {"h1"});
    circle.node("Concat", {"h0", "h1"}, {"k/g"}, {{"axis", 1}});
    circle.node("ReduceMean", {"k/g"}, {"k/p"}, {{"axes", OnnxInts{2, 3}}, {"keepdims", 0}});
    circle.node("Gemm", {"k/p", "k/fc"}, {"k/m"}, {{"transB", 1}});
    circle.node("Mul", {"k/m", "factor"}, {"k/y"});
    circle.output("k/y");
    const TensorMapping mapping = scene.map();
    CHECK(partner_of(mapping, "k/dw") == "dw (1,2,3,0, constant)");
    CHECK(partner_of(mapping, "k/fc") == "fc (1,0, constant)");
    CHECK(partner_of(mapping, "g0") == "gw (same, derived)");
    CHECK(mapping.of_circle(mapping.circle->find("g1"))->how == "group 2 of 2 of Conv making 'g'");
    CHECK(partner_of(mapping, "k/g") == "g (same, value)");
    CHECK(onnx_name(mapping, "k/m") == "m");
    CHECK(onnx_name(mapping, "k/y") == "y");
    CHECK(mapping.of_circle(mapping.circle->find("factor"))->how == "1 / it, for Div making 'y'");
    CHECK(reason_of(mapping.circle_alone, *mapping.circle, "h0") ==
          "inside what the converter made of Conv making 'g'");
}

TEST_CASE("Whatever memory is given, the pairs are the same") {
    const std::vector<OnnxNode> nodes{{"Sin", {"x"}, {"a"}},
                                      {"Cos", {"x"}, {"b"}},
                                      {"Add", {"a", "b"}, {"c"}},
                                      {"Transpose", {"c"}, {"y"}, {{"perm", OnnxInts{0, 2, 1}}}}};
    MapScene large = same_nodes(nodes, {1, 6, 5});
    MapScene small = same_nodes(nodes, {1, 6, 5});
    small.request.memory = 1;
    const TensorMapping one = large.map();
    const TensorMapping other = small.map();
    REQUIRE(one.pairs.size() == other.pairs.size());
    CHECK(one.pairs.size() == 5);
    for (std::size_t i = 0; i < one.pairs.size(); ++i) {
        CHECK(one.pairs[i].onnx == other.pairs[i].onnx);
        CHECK(one.pairs[i].axes == other.pairs[i].axes);
        CHECK(one.pairs[i].difference == other.pairs[i].difference);
    }
}

TEST_CASE("A model that cannot be run is refused with its operators") {
    MapScene scene = same_nodes({{"Sin", {"x"}, {"y"}}}, {1, 2});
    scene.circle.graph.nodes[0].op_type = "Sinn";
    CHECK(message_of<Error>([&] {
              scene.map();
          }).starts_with("net.circle: cannot be run, an operator is not supported:"));
}

TEST_CASE("Real samples take part beside random ones, and must have the shapes that are run") {
    MapScene scene = same_nodes({{"Sin", {"x"}, {"y"}}}, {1, 3});
    scene.request.samples = {{Tensor::of<float>({1, 3}, std::vector<float>{1, 2, 3})}};
    CHECK(scene.map().samples == 4);
    scene.request.samples = {{Tensor::of<float>({1, 2}, std::vector<float>{1, 2})}};
    CHECK(message_of<Error>([&] { scene.map(); }) == "input 'x': expected data of shape [1,3], found [1,2]");
}
