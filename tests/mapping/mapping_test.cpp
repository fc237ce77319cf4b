#include <doctest/doctest.h>

#include "graph/model_file.h"
#include "map_scene.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

const Shape filter_shape{4, 3, 3, 3};

// Conv, BatchNormalization, Relu, Conv, Add in NCHW; and what a converter to NHWC would make of it: weights
// with the normalization folded in, a Transpose at either end.
MapScene converted_scene() {
    MapScene scene;
    const std::vector<float> w1 = uneven(108, 0.3F, 1);
    const std::vector<float> b1 = uneven(4, 0.2F, 2);
    const std::vector<float> gamma = uneven(4, 0.4F, 3);
    const std::vector<float> beta = uneven(4, 0.4F, 4);
    const std::vector<float> mean = uneven(4, 0.4F, 5);
    const std::vector<float> variance{0.5F, 1.25F, 2, 0.75F};
    const std::vector<float> w2 = uneven(36, 0.3F, 6);
    OnnxGraph& net = scene.onnx.graph;
    net.input("image", {1, 3, 6, 5});
    net.initializer("conv1.weight", filter_shape, w1).initializer("conv1.bias", {4}, b1);
    net.initializer("bn.weight", {4}, gamma).initializer("bn.bias", {4}, beta);
    net.initializer("bn.mean", {4}, mean).initializer("bn.var", {4}, variance);
    net.initializer("conv2.weight", {9, 4, 1, 1}, w2);
    net.node("Conv", {"image", "conv1.weight", "conv1.bias"}, {"c1"}, {{"pads", OnnxInts{1, 1, 1, 1}}},
             "conv1");
    net.node("BatchNormalization", {"c1", "bn.weight", "bn.bias", "bn.mean", "bn.var"}, {"n1"}, {}, "bn");
    net.node("Relu", {"n1"}, {"r1"}, {}, "relu");
    net.node("Identity", {"r1"}, {"r1_copy"}, {}, "copy");
    net.node("Conv", {"r1_copy", "conv2.weight"}, {"c2"}, {}, "conv2");
    net.output("c2");

    // The converter's graph computes with folded weights; its layers see NHWC between Transposes of their
    // own.
    std::vector<float> folded = w1;
    std::vector<float> bias(4);
    for (std::size_t c = 0; c < 4; ++c) {
        const double scale = gamma[c] / std::sqrt(static_cast<double>(variance[c]) + 1e-5);
        for (std::size_t i = 0; i < 27; ++i) folded[c * 27 + i] = static_cast<float>(w1[c * 27 + i] * scale);
        bias[c] = static_cast<float>((b1[c] - mean[c]) * scale + beta[c]);
    }
    OnnxGraph& circle = scene.circle.graph;
    circle.input("serving_default_image:0", {1, 6, 5, 3});
    circle.initializer("filter", {4, 3, 3, 3}, permuted_values(folded, filter_shape, {0, 2, 3, 1}));
    circle.initializer("bias", {4}, bias);
    circle.initializer("no_bias", {9}, std::vector<float>(9, 0));
    circle.initializer("filter2", {9, 1, 1, 4}, permuted_values(w2, {9, 4, 1, 1}, {0, 2, 3, 1}));
    circle.node("Transpose", {"serving_default_image:0"}, {"nchw"}, {{"perm", OnnxInts{0, 3, 1, 2}}});
    circle.node("Pad", {"nchw", "pads"}, {"padded"});
    circle.initializer("pads", {8}, std::vector<std::int64_t>{0, 0, 1, 1, 0, 0, 1, 1});
    circle.node("Transpose", {"filter"}, {"filter_oihw"}, {{"perm", OnnxInts{0, 3, 1, 2}}});
    circle.node("Conv", {"padded", "filter_oihw", "bias"}, {"conv1;bn"});
    circle.node("Relu", {"conv1;bn"}, {"conv1;bn;relu"});
    circle.node("Transpose", {"conv1;bn;relu"}, {"r1_nhwc"}, {{"perm", OnnxInts{0, 2, 3, 1}}});
    circle.node("Transpose", {"r1_nhwc"}, {"r1_nchw"}, {{"perm", OnnxInts{0, 3, 1, 2}}});
    circle.node("Transpose", {"filter2"}, {"filter2_oihw"}, {{"perm", OnnxInts{0, 3, 1, 2}}});
    circle.node("Conv", {"r1_nchw", "filter2_oihw", "no_bias"}, {"out_nchw"});
    circle.node("Transpose", {"out_nchw"}, {"out"}, {{"perm", OnnxInts{0, 2, 3, 1}}});
    circle.output("out");
    return scene;
}

}  // namespace

TEST_CASE("Activations, inputs and constants are paired across layouts, folding and renaming") {
    MapScene scene = converted_scene();
    const TensorMapping mapping = scene.map();
    CHECK(partner_of(mapping, "serving_default_image:0") == "image (0,2,3,1, input)");
    CHECK(partner_of(mapping, "nchw") == "image (same, value)");
    CHECK(partner_of(mapping, "conv1;bn") == "n1 (same, value)");
    CHECK(partner_of(mapping, "conv1;bn;relu") == "r1 (same, value)");
    CHECK(partner_of(mapping, "out") == "c2 (0,2,3,1, value)");
    CHECK(partner_of(mapping, "filter") == "conv1.weight (0,2,3,1, derived)");
    CHECK(partner_of(mapping, "bias") == "conv1.bias (same, derived)");
    CHECK(partner_of(mapping, "filter2") == "conv2.weight (0,2,3,1, constant)");
    CHECK(mapping.of_circle(mapping.circle->find("filter"))->how == "BatchNormalization 'bn' folded in");
    CHECK_FALSE(mapping.first_change);
    for (const TensorPair& pair : mapping.pairs) CHECK(pair.agrees);
}

TEST_CASE("What has no partner has a reason on either side") {
    MapScene scene = converted_scene();
    const TensorMapping mapping = scene.map();
    const Graph& circle = *mapping.circle;
    CHECK(reason_of(mapping.circle_alone, circle, "padded") ==
          "the padding of Conv 'conv1', an operator of its own here");
    CHECK(reason_of(mapping.circle_alone, circle, "no_bias") ==
          "a bias of zeros the converter added to Conv 'conv2'");
    CHECK(mapping.circle_alone.size() == 2);
    const Graph& onnx = *mapping.onnx;
    CHECK(reason_of(mapping.onnx_alone, onnx, "c1") ==
          "fused: no tensor of its own in what makes 'conv1;bn'");
    CHECK(reason_of(mapping.onnx_alone, onnx, "bn.mean") == "folded into the operator that makes 'conv1;bn'");
}

TEST_CASE("Tensors with the same values are one class: each is found, whichever is named") {
    MapScene scene = converted_scene();
    const TensorMapping mapping = scene.map();
    const std::vector<const TensorPair*> copies = mapping.of_onnx(mapping.onnx->find("r1_copy"));
    REQUIRE_FALSE(copies.empty());
    const std::vector<const TensorPair*> all = mapping.of_onnx(mapping.onnx->find("r1"));
    REQUIRE_FALSE(all.empty());
    CHECK(partner_of(mapping, "r1_nhwc").find("0,2,3,1") != std::string::npos);
}

TEST_CASE("A .tflite file is mapped to the ONNX model it was made from") {
    const std::filesystem::path folder =
        std::filesystem::path(QCALIB_SOURCE_DIR) / "tests/cases/mapped_names";
    MappingRequest request;
    request.circle = read_model(folder / "net.tflite").graph;
    request.onnx = read_model(folder / "net.onnx").graph;
    request.circle_label = "net.tflite";
    request.onnx_label = "net.onnx";
    const TensorMapping mapping = map_tensors(request);
    CHECK(partner_of(mapping, "serving_default_image:0") == "image (0,2,3,1, input)");
    CHECK(partner_of(mapping, "conv/filter") == "conv.weight (0,2,3,1, constant)");
    CHECK(partner_of(mapping, "conv/bias") == "conv.bias (same, constant)");
    CHECK(partner_of(mapping, "conv;act") == "features (0,2,3,1, value)");
    CHECK(partner_of(mapping, "pool") == "pooled (0,2,3,1, value)");
    CHECK(partner_of(mapping, "StatefulPartitionedCall:0") == "gated (0,2,3,1, value)");
    CHECK(mapping.circle_alone.empty());
    CHECK(reason_of(mapping.onnx_alone, *mapping.onnx, "conv_out") ==
          "fused: no tensor of its own in what makes 'conv;act'");
    CHECK_FALSE(mapping.first_change);
}
