#include "target/assignment.h"

#include <cmath>
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

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> ramp(std::size_t count, float first, float step) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = first + step * static_cast<float>(i);
    return values;
}

// x -> Conv(w, b) -> c -> Relu -> r -> Mul(s) -> y.
AssignmentFixture small_network() {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.constant("w", {2, 1, 1, 1}, {-0.5F, 1.0F});
    fixture.constant("b", {2}, {0.1F, 0.2F});
    fixture.constant("s", {}, {4.0F});
    fixture.node("Conv", {"x", "w", "b"}, {"c"});
    fixture.node("Relu", {"c"}, {"r"});
    fixture.node("Mul", {"r", "s"}, {"y"});
    fixture.graph.outputs = {fixture.value("y")};
    fixture.count("y", {0, 8});
    fixture.count("x", {-1, 2});
    fixture.count("c", {-1.282158F, 1.206396F});
    fixture.count("r", {0, 1.206396F});
    return fixture;
}

// The encoding of the only weight of a node, per channel.
std::vector<Encoding> per_channel(AssignmentFixture& fixture, std::optional<int> axis) {
    AssignmentOptions options;
    options.per_channel_weights = true;
    const EncodingSet set = fixture.assign(options);
    const TensorEncoding* entry = find_entry(set.parameters, "w");
    REQUIRE(entry != nullptr);
    CHECK(entry->axis == axis);
    return entry->encodings;
}

AssignmentFixture one_operator(const std::string& op_type, Shape shape) {
    AssignmentFixture fixture;
    fixture.input("x");
    const auto elements = static_cast<std::size_t>(element_count(shape));
    fixture.constant("w", std::move(shape), ramp(elements, 1, 1));
    fixture.node(op_type, {"x", "w"}, {"y"});
    fixture.count("x", {-1, 1});
    fixture.count("y", {-1, 1});
    return fixture;
}

}  // namespace

TEST_CASE("activations come in the order of the graph, inputs first, and parameters in order of use") {
    AssignmentFixture fixture = small_network();
    const EncodingSet set = fixture.assign();
    CHECK(names_of(set.activations) == Names{"x", "c", "r", "y"});
    CHECK(names_of(set.parameters) == Names{"w", "s"});
    CHECK(fixture.remarks.empty());
}

TEST_CASE("by default activations and weights are 8 bit, asymmetric, nudged, and say where they come from") {
    AssignmentFixture fixture = small_network();
    const EncodingSet set = fixture.assign();
    const TensorEncoding* conv = find_entry(set.activations, "c");
    REQUIRE(conv != nullptr);
    CHECK(conv->origin == "minmax");
    CHECK_FALSE(conv->axis.has_value());
    REQUIRE(conv->encodings.size() == 1);
    CHECK(conv->encodings[0].bits == 8);
    CHECK(conv->encodings[0].offset == -131);
    CHECK(std::abs(conv->encodings[0].min - -1.278434) < 1e-6);

    const TensorEncoding* weight = find_entry(set.parameters, "w");
    REQUIRE(weight != nullptr);
    CHECK(weight->origin == "weights");
    CHECK(weight->encodings == std::vector<Encoding>{encode_asymmetric({-0.5, 1.0}, 8, 0.01)});
    const TensorEncoding* factor = find_entry(set.parameters, "s");
    REQUIRE(factor != nullptr);
    CHECK(factor->origin == "constant");
    CHECK(factor->encodings == std::vector<Encoding>{encode_asymmetric({4, 4}, 8, 0.01)});
}

TEST_CASE("biases and the parameters of a batch normalisation get no encoding") {
    AssignmentFixture fixture;
    fixture.input("x");
    for (const char* name : {"scale", "bias", "mean", "variance"}) fixture.constant(name, {1}, {1});
    fixture.constant("g", {1, 1}, {1});
    fixture.constant("gb", {1}, {1});
    fixture.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"n"});
    fixture.node("Gemm", {"n", "g", "gb"}, {"y"});
    for (const char* name : {"x", "n", "y"}) fixture.count(name, {0, 1});
    CHECK(names_of(fixture.assign().parameters) == Names{"g"});
}

TEST_CASE("float settings of an operator get no encoding, its float operands do") {
    AssignmentFixture fixture;
    fixture.input("x");
    for (const char* name : {"low", "high", "scales", "roi", "fill", "slope", "other"})
        fixture.constant(name, {1}, {1});
    fixture.constant("pads", Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{0, 1}));
    fixture.node("Clip", {"x", "low", "high"}, {"a"});
    fixture.node("Resize", {"a", "roi", "scales"}, {"b"});
    fixture.node("Pad", {"b", "pads", "fill"}, {"c"});
    fixture.node("PRelu", {"c", "slope"}, {"d"});
    fixture.node("Concat", {"d", "other"}, {"e"});
    for (const char* name : {"x", "a", "b", "c", "d", "e"}) fixture.count(name, {0, 1});
    CHECK(names_of(fixture.assign().parameters) == Names{"slope", "other"});
}

TEST_CASE("the rules speak of ONNX's own operators only") {
    AssignmentFixture fixture = one_operator("Clip", {1});
    CHECK(fixture.assign().parameters.empty());
    fixture.graph.nodes[0].domain = "com.example";
    CHECK(names_of(fixture.assign().parameters) == Names{"w"});
}

TEST_CASE("constants that meet no activation and integer constants get nothing") {
    AssignmentFixture fixture = small_network();
    fixture.constant("p", {1}, {1});
    fixture.constant("q", {1}, {2});
    fixture.constant("pq", {1}, {3});  // folded
    fixture.node("Add", {"p", "q"}, {"pq"});
    fixture.constant("shape", Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{1}));
    fixture.node("Reshape", {"y", "shape"}, {"z"});
    fixture.node("Add", {"z", "pq"}, {"o"});
    fixture.count("z", {0, 1});
    fixture.count("o", {0, 1});
    const EncodingSet set = fixture.assign();
    CHECK(names_of(set.parameters) == Names{"w", "s", "pq"});
    CHECK(names_of(set.activations) == Names{"x", "c", "r", "y", "z", "o"});
}

TEST_CASE("left out inputs and outputs are no tensors") {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.constant("high", {}, {6});
    fixture.node("Clip", {"x", "", "high"}, {"y"});
    fixture.node("Split", {"y"}, {"", "z"});
    for (const char* name : {"x", "y", "z"}) fixture.count(name, {0, 1});
    CHECK(names_of(fixture.assign().activations) == Names{"x", "y", "z"});
}

TEST_CASE("per-channel weights of Conv and ConvTranspose are symmetric along their output channels") {
    AssignmentFixture conv = one_operator("Conv", {2, 3, 1, 1});
    CHECK(per_channel(conv, 0) ==
          std::vector<Encoding>{encode_symmetric({1, 3}, 8, 0.01), encode_symmetric({4, 6}, 8, 0.01)});
    CHECK(conv.remarks.empty());
    AssignmentFixture transpose = one_operator("ConvTranspose", {2, 3, 1, 1});
    CHECK(per_channel(transpose, 1) == std::vector<Encoding>{encode_symmetric({1, 4}, 8, 0.01),
                                                             encode_symmetric({2, 5}, 8, 0.01),
                                                             encode_symmetric({3, 6}, 8, 0.01)});
}

TEST_CASE("a ConvTranspose in groups stays per tensor and asymmetric, which is remarked") {
    AssignmentFixture fixture = one_operator("ConvTranspose", {2, 3, 1, 1});
    fixture.graph.nodes[0].attributes["group"] = std::int64_t{2};
    CHECK(per_channel(fixture, {}) == std::vector<Encoding>{encode_asymmetric({1, 6}, 8, 0.01)});
    CHECK(fixture.remarks ==
          Names{"'w': per tensor though per channel was asked for: ConvTranspose in groups has no "
                "axis of all output channels"});
}

TEST_CASE("snpe keeps Gemm and MatMul weights per tensor, which one remark says for all of them") {
    AssignmentFixture fixture = one_operator("MatMul", {2, 2});
    std::string last = "y";
    for (int i = 0; i < 7; ++i) {
        const std::string weight = fmt::format("v{}", i);
        const std::string made = fmt::format("m{}", i);
        fixture.constant(weight, {2, 2}, {1, 2, 3, 4});
        fixture.node("MatMul", {last, weight}, {made});
        fixture.count(made, {0, 1});
        last = made;
    }
    CHECK(per_channel(fixture, {}).size() == 1);
    CHECK(fixture.remarks ==
          Names{"'w', 'v0', 'v1', 'v2', 'v3' and 3 more: per tensor though per channel was asked "
                "for: target 'snpe' takes no channels for MatMul"});
}

TEST_CASE("a target that takes channels of Gemm and MatMul gets them along the output channels") {
    const auto allow = [](AssignmentFixture& fixture) {
        for (WeightRule& rule : fixture.target.weight_rules)
            rule.per_channel = WeightRule::PerChannel::always;
    };
    AssignmentFixture gemm = one_operator("Gemm", {2, 3});
    allow(gemm);
    CHECK(per_channel(gemm, 1).size() == 3);
    gemm.graph.nodes[0].attributes["transB"] = std::int64_t{1};
    CHECK(per_channel(gemm, 0).size() == 2);

    AssignmentFixture right = one_operator("MatMul", {5, 2, 3});
    allow(right);
    CHECK(per_channel(right, 2).size() == 3);
    AssignmentFixture vector = one_operator("MatMul", {3});
    allow(vector);
    CHECK(per_channel(vector, {}).size() == 1);
    CHECK(vector.remarks.empty());
    AssignmentFixture left = one_operator("MatMul", {2, 3});
    allow(left);
    std::swap(left.graph.nodes[0].inputs[0], left.graph.nodes[0].inputs[1]);
    CHECK(per_channel(left, 0).size() == 2);
}

TEST_CASE("the options of a run go before the target's defaults") {
    AssignmentFixture fixture = small_network();
    AssignmentOptions options;
    options.methods = {parse_method_rule("ema")};
    options.activation_bits = 16;
    options.weight_bits = 4;
    options.symmetric_weights = true;
    options.symmetric_activations = true;
    const EncodingSet set = fixture.assign(options);
    const TensorEncoding* conv = find_entry(set.activations, "c");
    CHECK(conv->origin == "ema");
    CHECK(conv->encodings[0].bits == 16);
    CHECK(conv->encodings[0].symmetric);
    CHECK(conv->encodings[0].offset == -32768);
    CHECK(find_entry(set.parameters, "w")->encodings ==
          std::vector<Encoding>{encode_symmetric({-0.5, 1}, 4, 0.01)});
    // An operand is as wide as the activation it meets.
    CHECK(find_entry(set.parameters, "s")->encodings ==
          std::vector<Encoding>{encode_asymmetric({4, 4}, 16, 0.01)});
}

TEST_CASE("asymmetric per-channel weights cannot be had, which is remarked") {
    AssignmentFixture fixture = one_operator("Conv", {2, 3, 1, 1});
    AssignmentOptions options;
    options.per_channel_weights = true;
    options.symmetric_weights = false;
    CHECK(find_entry(fixture.assign(options).parameters, "w")->encodings.at(1).symmetric);
    CHECK(fixture.remarks ==
          Names{"target 'snpe': per-channel weights are symmetric though asymmetric was asked for"});
}

TEST_CASE("a width the target does not take is an error that lists those it takes") {
    AssignmentFixture fixture = small_network();
    AssignmentOptions options;
    options.activation_bits = 7;
    CHECK(fixture.error(options) == "--act-bits: expected one of 8, 16, which target 'snpe' takes, found 7");
    options.activation_bits.reset();
    options.weight_bits = -1;
    CHECK(fixture.error(options) ==
          "--weight-bits: expected one of 4, 8, 16, which target 'snpe' takes, found -1");
}

TEST_CASE("a shared constant has one entry; where one use is a weight it is one, which is remarked") {
    AssignmentFixture fixture = small_network();
    fixture.node("Conv", {"y", "w"}, {"again"});
    fixture.count("again", {0, 1});
    CHECK(names_of(fixture.assign().parameters) == Names{"w", "s"});
    CHECK(fixture.remarks.empty());

    fixture.node("Mul", {"again", "w"}, {"product"});
    fixture.count("product", {0, 1});
    const EncodingSet set = fixture.assign();
    CHECK(find_entry(set.parameters, "w")->origin == "weights");
    CHECK(fixture.remarks ==
          Names{"'w': encoded as a weight though it has several uses: weight of Conv 'n0', operand "
                "of Mul 'n4'"});
}

TEST_CASE("a bias that is an operand elsewhere is encoded as one, which is remarked") {
    AssignmentFixture fixture = small_network();
    fixture.node("Add", {"y", "b"}, {"sum"});
    fixture.count("sum", {0, 1});
    CHECK(names_of(fixture.assign().parameters) == Names{"w", "b", "s"});
    CHECK(fixture.remarks ==
          Names{"'b': encoded as an operand though it has several uses: unencoded input of Conv "
                "'n0', operand of Add 'n3'"});
}

TEST_CASE("a weight whose users have their channels on different axes stays per tensor") {
    AssignmentFixture fixture = one_operator("Conv", {2, 2, 1, 1});
    fixture.node("ConvTranspose", {"y", "w"}, {"z"});
    fixture.count("z", {0, 1});
    CHECK(per_channel(fixture, {}).size() == 1);
    CHECK(fixture.remarks ==
          Names{"'w': per tensor though per channel was asked for: operators that share it have their "
                "channels on different axes"});
}

TEST_CASE("an activation without data gets no entry and a remark") {
    AssignmentFixture fixture = small_network();
    fixture.forget("r");
    fixture.count("r", {nan_value, -infinity});
    CHECK(names_of(fixture.assign().activations) == Names{"x", "c", "y"});
    CHECK(fixture.remarks == Names{"'r': left out of its range: 1 NaN, 1 -Inf",
                                   "'r': no encoding: no sample gave it a finite value that is no mask"});
}

TEST_CASE("NaN, infinities and masks are left out of a range and counted in one remark a tensor") {
    AssignmentFixture fixture = small_network();
    fixture.forget("r");
    fixture.count("r", {1, 2, nan_value, nan_value, infinity, 1e30F, -3e38F, -3e38F});
    fixture.constant("mask", {3}, {0, -infinity, -1e38F});
    fixture.node("Add", {"y", "mask"}, {"masked"});
    fixture.count("masked", {0, 1});
    const EncodingSet set = fixture.assign();
    CHECK(find_entry(set.activations, "r")->encodings[0].max == 2);
    CHECK(find_entry(set.parameters, "mask")->encodings[0] == encode_asymmetric({0, 0}, 8, 0.01));
    CHECK(fixture.remarks ==
          Names{"'r': left out of its range: 2 NaN, 1 +Inf, 1 positive masks, 2 negative masks",
                "'mask': left out of its range: 1 -Inf, 1 negative masks"});
}

TEST_CASE("the run's own mask bound holds for constants as well") {
    AssignmentFixture fixture = small_network();
    fixture.counter.mask_below = -100;
    fixture.constant("mask", {2}, {-1, -10000});
    fixture.node("Add", {"y", "mask"}, {"masked"});
    fixture.count("masked", {0, 1});
    CHECK(find_entry(fixture.assign().parameters, "mask")->encodings[0] ==
          encode_asymmetric({-1, -1}, 8, 0.01));
}

TEST_CASE("a weight with a NaN ends the assignment, naming the tensor") {
    AssignmentFixture fixture = small_network();
    fixture.constants[fixture.value("w")] = Tensor::of<float>({2, 1, 1, 1}, std::vector<float>{1, nan_value});
    CHECK(fixture.error().find("'w': expected finite values in a weight, found 1 of 2 elements") == 0);
}

TEST_CASE("constants without elements or ordinary values get no entry and a remark") {
    AssignmentFixture fixture = small_network();
    fixture.constant("none", {0}, {});
    fixture.constant("hidden", {1}, {-infinity});
    fixture.node("Concat", {"y", "none", "hidden"}, {"z"});
    fixture.count("z", {0, 1});
    CHECK(names_of(fixture.assign().parameters) == Names{"w", "s"});
    CHECK(fixture.remarks ==
          Names{"'none': no encoding: the constant has no elements",
                "'hidden': left out of its range: 1 -Inf",
                "'hidden': no encoding: the constant has no finite value that is no mask"});
}

TEST_CASE("double constants are encoded as floats") {
    AssignmentFixture fixture = small_network();
    fixture.constants[fixture.value("w")] = Tensor::of<double>({2, 1, 1, 1}, std::vector<double>{-0.5, 1.0});
    CHECK(find_entry(fixture.assign().parameters, "w")->encodings ==
          std::vector<Encoding>{encode_asymmetric({-0.5, 1.0}, 8, 0.01)});
}

TEST_CASE("float tensors the statistics lack are an error that names them and the flag") {
    AssignmentFixture fixture = small_network();
    fixture.forget("x");
    fixture.forget("r");
    fixture.graph.values[fixture.value("r")].declared_type = DataType::float16;
    CHECK(fixture.error() ==
          fixture.file().string() +
              ": expected every float tensor that target 'snpe' encodes, 2 not counted: 'x', 'r': "
              "calibrate with --tensors all");
}

TEST_CASE("a tensor of undeclared type is missed too where its operator hands a float on") {
    AssignmentFixture fixture = small_network();
    fixture.forget("r");
    CHECK(fixture.error().find("1 not counted: 'r'") != std::string::npos);
    fixture.forget("c");
    fixture.forget("y");
    CHECK(fixture.error().find("3 not counted: 'c', 'r', 'y'") != std::string::npos);
}

TEST_CASE("integer tensors are not missed, declared or not") {
    AssignmentFixture fixture = small_network();
    fixture.input("ids", DataType::int64);
    fixture.node("Shape", {"y"}, {"dims"});
    fixture.node("Cast", {"y"}, {"whole"});
    fixture.node("Add", {"ids", "whole"}, {"sum"});
    fixture.node("MyOp", {"y"}, {"unknown"}).domain = "com.example";
    fixture.node("TopK", {"y", "ids"}, {"top", "places"});
    fixture.count("top", {0, 1});
    CHECK(names_of(fixture.assign().activations) == Names{"x", "c", "r", "y", "top"});
}

TEST_CASE("a constant of the statistics that the model does not have is an error") {
    AssignmentFixture fixture = small_network();
    fixture.assign();
    const ConstantLookup nothing = [](ValueId) -> const Tensor* { return nullptr; };
    Remarks remarks;
    const StatisticsFile statistics(fixture.file());
    CHECK(test::message_of<Error>([&] {
              assign_encodings(fixture.graph, nothing, statistics, fixture.target, {}, remarks);
          }) == fixture.file().string() +
                    ": 'w' was counted as a constant, found none of that name in the model: expected "
                    "statistics of this model");
}

TEST_CASE("a method that needs histograms refuses statistics of extremes alone, naming the flag") {
    struct Histograms : RangeMethod {
        std::string name() const override { return "shape"; }
        std::string summary() const override { return ""; }
        std::string source() const override { return ""; }
        bool needs_histogram(const MethodParameters&) const override { return true; }
        std::optional<Range> choose(const TensorSamples& tensor, const GridRules&,
                                    const MethodParameters&) const override {
            return tensor.statistics().extremes;
        }
    };
    const Histograms method;
    AssignmentFixture fixture = small_network();
    AssignmentOptions options;
    options.methods = {{std::nullopt, MethodChoice{&method, {}}}};
    CHECK(fixture.error(options).empty());
    fixture.counter.extremes_only = true;
    CHECK(fixture.error(options) ==
          fixture.file().string() +
              ": expected histograms, which method 'shape' needs, found extremes alone: "
              "calibrate with --statistics full");
    CHECK(fixture.error().empty());
}

TEST_CASE("names of any bytes are shown safely in remarks and kept in entries") {
    AssignmentFixture fixture;
    fixture.input("in\x1b\xff");
    fixture.node("Relu", {"in\x1b\xff"}, {"{\"1\": \"a\"}"});
    fixture.count("in\x1b\xff", {nan_value, 1});
    fixture.count("{\"1\": \"a\"}", {0, 1});
    CHECK(names_of(fixture.assign().activations) == Names{"in\x1b\xff", "{\"1\": \"a\"}"});
    CHECK(fixture.remarks == Names{"'in\\x1b\\xff': left out of its range: 1 NaN"});
}
