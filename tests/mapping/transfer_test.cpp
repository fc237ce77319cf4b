#include "mapping/transfer.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "map_scene.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

const std::vector<OverrideTarget> circle_target{{"circle", false}};

// Conv, Relu in NCHW; the converted model computes the Relu's output with an operator that is fused, names it
// after the nodes, keeps OHWI weights and adds Transposes.
MapScene transfer_scene() {
    MapScene scene;
    const std::vector<float> weights = uneven(24, 0.5F, 1);
    OnnxGraph& net = scene.onnx.graph;
    net.input("x", {1, 3, 4, 5});
    net.initializer("w", {2, 3, 2, 2}, weights);
    net.node("Conv", {"x", "w"}, {"c"}, {}, "conv");
    net.node("Relu", {"c"}, {"r"}, {}, "act");
    net.node("Identity", {"r"}, {"r2"}, {}, "copy");
    net.output("r2");
    OnnxGraph& circle = scene.circle.graph;
    circle.input("x", {1, 4, 5, 3});
    circle.initializer("w_ohwi", {2, 2, 2, 3}, permuted_values(weights, {2, 3, 2, 2}, {0, 2, 3, 1}));
    circle.initializer("zero", {1}, std::vector<float>{0});
    circle.node("Transpose", {"x"}, {"x_nchw"}, {{"perm", OnnxInts{0, 3, 1, 2}}});
    circle.node("Transpose", {"w_ohwi"}, {"w_oihw"}, {{"perm", OnnxInts{0, 3, 1, 2}}});
    circle.node("Conv", {"x_nchw", "w_oihw"}, {"inner"});
    circle.node("Max", {"inner", "zero"}, {"out_nchw"});
    circle.node("Transpose", {"out_nchw"}, {"conv;act"}, {{"perm", OnnxInts{0, 2, 3, 1}}});
    circle.output("conv;act");
    return scene;
}

std::vector<Override> overrides_of(const std::vector<std::string>& texts) {
    std::vector<Override> all;
    for (const std::string& text : texts) {
        for (const Override& one : parse_override(text)) all.push_back(one);
    }
    return all;
}

std::string carried_text(const TensorMapping& mapping, const std::vector<std::string>& texts,
                         Remarks& remarks) {
    std::string text;
    for (const Override& one : carry_overrides(mapping, overrides_of(texts), circle_target, remarks)) {
        text += one.pattern + (one.target ? "@" + *one.target : "");
        if (one.range) text += fmt::format(" range {} {}", one.range->min, one.range->max);
        if (one.step) text += fmt::format(" step {}", *one.step);
        if (one.bits) text += fmt::format(" bits {}", *one.bits);
        if (one.copy) text += " copy " + *one.copy;
        text += "; ";
    }
    return text;
}

std::string carried_text(const TensorMapping& mapping, const std::vector<std::string>& texts) {
    Remarks remarks;
    return carried_text(mapping, texts, remarks);
}

TensorEncoding per_channel_encoding(const std::string& tensor, int axis, std::size_t channels) {
    TensorEncoding encoding;
    encoding.tensor = tensor;
    encoding.axis = axis;
    for (std::size_t i = 0; i < channels; ++i) {
        Encoding one;
        one.scale = 0.5 + static_cast<double>(i);
        encoding.encodings.push_back(one);
    }
    return encoding;
}

}  // namespace

TEST_CASE("An override by an ONNX name becomes one for each Circle tensor that it is") {
    MapScene scene = transfer_scene();
    const TensorMapping mapping = scene.map();
    const std::string carried = carried_text(mapping, {"r: {range: [0, 2]}"});
    CHECK(carried.find("conv;act@circle range 0 2; ") != std::string::npos);
    CHECK(carried_text(mapping, {"w: {bits: 4}"}).find("w_ohwi@circle bits 4; ") != std::string::npos);
    // Names of the Circle model stay.
    CHECK(carried_text(mapping, {"out_nchw: {step: 0.25}"}) == "out_nchw step 0.25; ");
    CHECK(carried_text(mapping, {"x: {range: [-1, 1]}"}) == "x range -1 1; ");
}

TEST_CASE("The order of precedence holds for what is carried: the exact name before the pattern") {
    MapScene scene = transfer_scene();
    const TensorMapping mapping = scene.map();
    const std::string carried =
        carried_text(mapping, {"r: {range: [0, 2]}", "r?: {range: [0, 9]}", "?2: {bits: 16}"});
    CHECK(carried.find("range 0 2") != std::string::npos);
}

TEST_CASE("An override for a tensor that was fused away is refused with the tensor in its place") {
    // Twice the weights, and half of what comes out: no tensor has the convolution's values.
    MapScene scene = transfer_scene();
    OnnxGraph& circle = scene.circle.graph;
    std::vector<float> twice = permuted_values(uneven(24, 0.5F, 1), {2, 3, 2, 2}, {0, 2, 3, 1});
    for (float& value : twice) value *= 2;
    circle.initializers[0] = OnnxTensor::of("w_ohwi", {2, 2, 2, 3}, twice);
    circle.initializer("half", {1}, std::vector<float>{0.5F});
    circle.nodes[3].outputs = {"doubled"};
    circle.nodes.back() = {"Mul", {"doubled", "half"}, {"halved"}};
    circle.node("Transpose", {"halved"}, {"conv;act"}, {{"perm", OnnxInts{0, 2, 3, 1}}});
    const TensorMapping mapping = scene.map();
    CHECK(message_of<Error>([&] { carried_text(mapping, {"c: {bits: 8}"}); }) ==
          "--override 'c': no tensor of net.circle is 'c' of net.onnx: fused: no tensor of its own in what "
          "makes "
          "'conv;act'");
    Remarks remarks;
    CHECK(carried_text(mapping, {"r*: {bits: 16}"}, remarks).find("conv;act@circle bits 16; ") !=
          std::string::npos);
}

TEST_CASE("Two ONNX tensors with different settings that are one Circle tensor are a conflict") {
    MapScene scene = transfer_scene();
    // The converter left one tensor of r and r2.
    OnnxGraph& circle = scene.circle.graph;
    circle.nodes.pop_back();
    circle.nodes.back().outputs = {"out"};
    circle.outputs = {};
    circle.output("out");
    const TensorMapping mapping = scene.map();
    const std::string message = message_of<Error>([&] {
        carried_text(mapping, {"r: {range: [0, 2]}", "r2: {range: [0, 3]}"});
    });
    CHECK(message.find("are one tensor of net.circle, 'out', and cannot have different settings") !=
          std::string::npos);
    CHECK(carried_text(mapping, {"r: {range: [0, 2]}", "r2: {range: [0, 2]}"}) == "out@circle range 0 2; ");
}

TEST_CASE("Encodings get the Circle tensor's name, and their channels its axis") {
    MapScene scene = transfer_scene();
    const TensorMapping mapping = scene.map();
    EncodingSet given;
    given.parameters = {per_channel_encoding("w", 1, 3)};
    given.activations = {per_channel_encoding("r", -3, 2), per_channel_encoding("other", 0, 1)};
    Remarks remarks;
    const EncodingSet carried = carry_encodings(mapping, given, "given.json", remarks);
    bool found = false;
    for (const TensorEncoding& one : carried.parameters) {
        if (one.tensor != "w_ohwi") continue;
        found = true;
        CHECK(one.axis == 3);
        CHECK(one.encodings.size() == 3);
    }
    CHECK(found);
    found = false;
    for (const TensorEncoding& one : carried.activations)
        found = found || (one.tensor == "conv;act" && one.axis == 3);
    CHECK(found);
    CHECK(carried.activations.back().tensor == "other");
}

TEST_CASE("An encoding of a tensor without a partner is left out with the reason") {
    MapScene scene = transfer_scene();
    scene.onnx.graph.node("Neg", {"c"}, {"unused"}, {}, "side");
    scene.onnx.graph.output("unused");
    const TensorMapping mapping = scene.map();
    EncodingSet given;
    given.activations = {per_channel_encoding("unused", 0, 1)};
    Remarks remarks;
    CHECK(carry_encodings(mapping, given, "given.json", remarks).activations.empty());
    CHECK(remarks.all() ==
          std::vector<std::string>{"given.json: the entry of 'unused' is left out: leads to no "
                                   "tensor that has a partner"});
}
