#include "target/qat_ranges.h"

#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "assignment_fixture.h"

using namespace qcalib;
using test::AssignmentFixture;
using test::find_entry;
using test::names_of;
using Names = std::vector<std::string>;

namespace {

// The graph of a model; its constants are initializers.
class Quantized : public AssignmentFixture {
  public:
    void initializer(const std::string& name, const Tensor& tensor) {
        graph.values[value(name)].declared_type = tensor.type();
        graph.values[value(name)].initializer = tensor;
    }
    void number(const std::string& name, float number) {
        initializer(name, Tensor::of<float>({}, std::vector<float>{number}));
    }
    template <typename T>
    void whole(const std::string& name, T number) {
        initializer(name, Tensor::of<T>({}, std::vector<T>{number}));
    }
};

// x -> Conv(w) -> c -> Relu -> y: the float model.
AssignmentFixture float_model() {
    AssignmentFixture model;
    model.input("x");
    model.constant("w", {2, 1, 1, 1}, {1, 2});
    model.node("Conv", {"x", "w"}, {"c"}).name = "conv";
    model.node("Relu", {"c"}, {"y"}).name = "relu";
    return model;
}

struct Read {
    BaseEncodings base;
    Names remarks;
};

Read read(const Graph& quantized, const Graph& model) {
    Remarks remarks;
    BaseEncodings base = read_qat_ranges(quantized, model, "qat.onnx", remarks);
    return {std::move(base), remarks.all()};
}

std::string error(const Graph& quantized) {
    return test::message_of<Error>([&] { read(quantized, float_model().graph); });
}

}  // namespace

TEST_CASE("a Clip with constant bounds carries the range of its output, as inputs or attributes") {
    Quantized qat;
    qat.input("x");
    qat.number("low", -0.2F);
    qat.number("high", 5.9F);
    qat.node("Conv", {"x", "w"}, {"c"});
    qat.node("Clip", {"c", "low", "high"}, {"y"});
    Node& old = qat.node("Clip", {"x"}, {"c2"});
    old.attributes["min"] = 0.0F;
    old.attributes["max"] = 4.0F;
    qat.node("Clip", {"x", "low"}, {"one_sided"});
    const Read found = read(qat.graph, qat.graph);
    CHECK(names_of(found.base.set.activations) == Names{"y", "c2"});
    CHECK(found.base.set.activations[0].encodings[0].min == -0.2F);
    CHECK(found.base.set.activations[0].encodings[0].max == 5.9F);
    CHECK(found.base.set.activations[1].encodings[0].max == 4);
    CHECK(found.base.ranges_alone.contains("y"));
    CHECK(found.remarks.empty());
}

TEST_CASE("a QuantizeLinear carries the encoding of its input, the other sign and signed codes included") {
    Quantized qat;
    qat.input("x");
    qat.number("s", 0.5F);
    qat.whole<std::uint8_t>("zu", 150);
    qat.whole<std::int8_t>("zi", 0);
    qat.node("QuantizeLinear", {"x", "s", "zu"}, {"xq"});
    qat.node("DequantizeLinear", {"xq", "s", "zu"}, {"xd"});
    qat.node("Conv", {"xd", "w"}, {"c"}).name = "conv";
    qat.node("QuantizeLinear", {"c", "s", "zi"}, {"cq"});
    qat.node("DequantizeLinear", {"cq", "s", "zi"}, {"cd"});
    qat.node("QuantizeLinear", {"cd", "s"}, {"eq"});
    const Read found = read(qat.graph, float_model().graph);
    CHECK(names_of(found.base.set.activations) == Names{"x", "c"});
    const Encoding x = found.base.set.activations[0].encodings[0];
    CHECK(x.offset == -150);
    CHECK(x.min == -75);
    CHECK(x.max == 52.5);
    CHECK_FALSE(x.symmetric);
    const Encoding c = found.base.set.activations[1].encodings[0];
    CHECK(c.offset == -128);
    CHECK(c.min == -64);
    CHECK(c.symmetric);
    CHECK(found.remarks.size() == 1);  // 'cd', a tensor the float model does not have
    CHECK(found.remarks[0].find("qat.onnx: the range of 'cd' is left out") == 0);
}

TEST_CASE("a quantized weight carries its channels' encodings, whether float or already integers") {
    Quantized qat;
    qat.input("x");
    qat.initializer("ws", Tensor::of<float>({2}, std::vector<float>{0.5F, 0.25F}));
    qat.initializer("wz", Tensor::of<std::int8_t>({2}, std::vector<std::int8_t>{0, 0}));
    qat.initializer("w_quantized", Tensor::of<std::int8_t>({2, 1, 1, 1}, std::vector<std::int8_t>{2, 8}));
    qat.node("DequantizeLinear", {"w_quantized", "ws", "wz"}, {"w_dequantized"}).attributes["axis"] =
        std::int64_t{0};
    qat.node("Conv", {"x", "w_dequantized"}, {"c"}).name = "conv";
    const Read found = read(qat.graph, float_model().graph);
    REQUIRE(names_of(found.base.set.parameters) == Names{"w"});
    const TensorEncoding& weight = found.base.set.parameters[0];
    CHECK(weight.axis == 0);
    REQUIRE(weight.encodings.size() == 2);
    CHECK(weight.encodings[1].scale == 0.25);
    CHECK(weight.encodings[1].min == -32);
    CHECK(weight.encodings[1].symmetric);
    CHECK(found.remarks.empty());
}

TEST_CASE("a tensor under another name is found by the node that makes it") {
    Quantized qat;
    qat.input("x");
    qat.number("s", 0.5F);
    qat.whole<std::uint8_t>("z", 0);
    qat.node("Conv", {"x", "w"}, {"conv_out_renamed"}).name = "conv";
    qat.node("QuantizeLinear", {"conv_out_renamed", "s", "z"}, {"q"});
    qat.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
    const Read found = read(qat.graph, float_model().graph);
    CHECK(names_of(found.base.set.activations) == Names{"c"});
}

TEST_CASE("where the model itself has the nodes, both sides of them get the encoding") {
    Quantized qat;
    qat.input("x");
    qat.number("s", 0.5F);
    qat.whole<std::uint8_t>("z", 0);
    qat.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
    qat.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
    qat.node("QuantizeLinear", {"x", "s", "z"}, {"q2"});
    CHECK(names_of(read(qat.graph, qat.graph).base.set.activations) == Names{"x", "d"});
}

TEST_CASE("two different ranges of one tensor: the first is taken, the other remarked") {
    Quantized qat;
    qat.input("x");
    qat.number("s", 0.5F);
    qat.number("t", 0.25F);
    qat.node("QuantizeLinear", {"x", "s"}, {"q"});
    qat.node("QuantizeLinear", {"x", "t"}, {"q2"});
    const Read found = read(qat.graph, float_model().graph);
    CHECK(find_entry(found.base.set.activations, "x")->encodings[0].scale == 0.5);
    CHECK(found.remarks ==
          Names{"qat.onnx: 'x' has several ranges: that of QuantizeLinear 'n1' is not taken"});
}

TEST_CASE("a fake quantizer of another domain with three inputs is taken and named") {
    Quantized qat;
    qat.input("x");
    qat.number("s", 0.5F);
    qat.number("z", 3);
    qat.node("LearnablePerTensorAffine", {"x", "s", "z"}, {"d"}).domain = "custom";
    qat.node("MyNorm", {"x", "s", "z"}, {"n"}).domain = "custom";
    const Read found = read(qat.graph, float_model().graph);
    CHECK(find_entry(found.base.set.activations, "x")->encodings[0].offset == -3);
    CHECK(found.remarks ==
          Names{"qat.onnx: taken for nodes that quantize: custom:LearnablePerTensorAffine 'n0'"});
    qat.graph.nodes[0].attributes["quant_min"] = std::int64_t{-8};
    qat.graph.nodes[0].attributes["quant_max"] = std::int64_t{7};
    const Read narrow = read(qat.graph, float_model().graph);
    CHECK(find_entry(narrow.base.set.activations, "x")->encodings[0].bits == 4);
    CHECK(find_entry(narrow.base.set.activations, "x")->encodings[0].min == -5.5);
}

TEST_CASE(
    "scales and zero points that are none are errors that name the node; a model without ranges is one") {
    for (const float scale : {0.0F, -1.0F, std::numeric_limits<float>::infinity()}) {
        Quantized qat;
        qat.input("x");
        qat.number("s", scale);
        qat.node("QuantizeLinear", {"x", "s"}, {"q"});
        CHECK(error(qat.graph).find(
                  "qat.onnx: QuantizeLinear 'n0': expected a scale above 0 and a zero point of 8 "
                  "bits, found ") == 0);
    }
    Quantized counts;
    counts.input("x");
    counts.initializer("s", Tensor::of<float>({3}, std::vector<float>{1, 2, 3}));
    counts.initializer("z", Tensor::of<std::uint8_t>({2}, std::vector<std::uint8_t>{1, 2}));
    counts.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
    CHECK(error(counts.graph) ==
          "qat.onnx: QuantizeLinear 'n0': expected as many zero points as scales, in one "
          "dimension, found [3] and [2]");
    CHECK(error(float_model().graph) ==
          "qat.onnx: expected Clip, QuantizeLinear or DequantizeLinear nodes with "
          "constant ranges, found none");
    Quantized computed;
    computed.input("x");
    computed.input("s");
    computed.node("QuantizeLinear", {"x", "s"}, {"q"});
    computed.number("t", 1);
    computed.node("QuantizeLinear", {"x", "t"}, {"q2"});
    CHECK(read(computed.graph, float_model().graph)
              .remarks.at(0)
              .find("qat.onnx: QuantizeLinear 'n0': its range is not taken: expected a constant scale") == 0);
}

TEST_CASE("a pair of Min and Max, Relu and Min, and HardTanh carry ranges") {
    Quantized qat;
    qat.input("x");
    qat.number("low", -4);
    qat.number("four", 4);
    qat.number("six", 6);
    qat.node("Min", {"x", "four"}, {"a"});
    qat.node("Max", {"low", "a"}, {"b"});
    qat.node("Relu", {"b"}, {"c"});
    qat.node("Min", {"c", "six"}, {"d"});
    Node& tanh = qat.node("HardTanh", {"d"}, {"e"});
    tanh.domain = "vendor";
    tanh.attributes["min_val"] = -2.0F;
    tanh.attributes["max_val"] = 2.0F;
    qat.node("Min", {"e", "six"}, {"f"});  // one side alone
    qat.node("HardTanh", {"f"}, {"g"});
    const Read found = read(qat.graph, qat.graph);
    CHECK(names_of(found.base.set.activations) == Names{"b", "d", "e", "g"});
    const auto range = [&](const char* name) {
        const Encoding& one = find_entry(found.base.set.activations, name)->encodings.front();
        return Range{one.min, one.max};
    };
    CHECK(range("b") == Range{-4, 4});
    CHECK(range("d") == Range{0, 6});
    CHECK(range("e") == Range{-2, 2});
    CHECK(range("g") == Range{-1, 1});
    CHECK(found.base.ranges_alone.contains("e"));
    CHECK(found.remarks.empty());
}
