#include "target/circle_assignment.h"

#include <doctest/doctest.h>

#include "target/assignment_fixture.h"
#include "target/circle_arithmetic.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// x -> CONV_2D(w, b) -> c -> MAX_POOL_2D -> p, counted.
AssignmentFixture pooled_convolution() {
    AssignmentFixture fixture;
    fixture.target = load_target("circle");
    const auto constant = [&](const std::string& name, Shape shape, const std::vector<float>& values) {
        Value& value = fixture.graph.values[fixture.value(name)];
        value.declared_type = DataType::float32;
        value.initializer = Tensor::of<float>(std::move(shape), values);
        fixture.constants[fixture.value(name)] = *value.initializer;
        fixture.count(name, values);
    };
    fixture.input("x");
    constant("w", {2, 1, 1, 1}, {-0.5F, 0.25F});
    constant("b", {2}, {0.1F, -0.2F});
    fixture.node("CONV_2D", {"x", "w", "b"}, {"c"}).domain = "circle";
    fixture.node("MAX_POOL_2D", {"c"}, {"p"}).domain = "circle";
    for (const char* name : {"c", "p"})
        fixture.graph.values[fixture.value(name)].declared_type = DataType::float32;
    fixture.graph.outputs = {fixture.value("p")};
    fixture.count("x", {-1, 1});
    fixture.count("c", {-0.65F, 0.85F});
    fixture.count("p", {0.1F, 0.8F});
    return fixture;
}

Override override_of(const std::string& name) {
    Override one;
    one.pattern = name;
    one.place = "--override";
    return one;
}

bool has_remark(const AssignmentFixture& fixture, const std::string& part) {
    return std::ranges::any_of(fixture.remarks,
                               [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("every float tensor of a .circle file gets an entry and a decision, biases too") {
    AssignmentFixture fixture = pooled_convolution();
    const EncodingSet set = fixture.assign();
    CHECK(names_of(set.activations) == std::vector<std::string>{"x", "c", "p"});
    CHECK(names_of(set.parameters) == std::vector<std::string>{"w", "b"});
    CHECK(fixture.decisions.size() == 5);
    CHECK(static_cast<float>(set.activations[0].encodings[0].scale) == 0.00784313772F);
    CHECK(set.activations[2].encodings == set.activations[1].encodings);  // luci-interpreter
    CHECK(has_remark(fixture, "'p': takes the encoding of 'c'"));
    CHECK(find_entry(set.parameters, "w")->axis == 0);
    CHECK(find_entry(set.parameters, "b")->encodings.front().bits == 32);
    AssignmentOptions wide;
    wide.activation_bits = 16;
    const EncodingSet sixteen = fixture.assign(wide);
    CHECK(find_entry(sixteen.parameters, "w")->encodings.front().bits == 16);
    CHECK(find_entry(sixteen.parameters, "b")->encodings.front().bits == 64);
    AssignmentOptions layer;
    layer.per_channel_weights = false;
    CHECK(find_entry(fixture.assign(layer).parameters, "b")->encodings.size() == 1);
}

TEST_CASE("a target and a model of other operators are refused, each with what to do") {
    AssignmentFixture fixture = pooled_convolution();
    fixture.target = load_target("snpe");
    CHECK(fixture.error().find("target 'snpe': expected an ONNX model") != std::string::npos);
    AssignmentFixture onnx;
    onnx.target = load_target("circle");
    onnx.input("x");
    onnx.node("Relu", {"x"}, {"y"});
    onnx.count("x", {1});
    onnx.count("y", {1});
    const std::string text = onnx.error();
    CHECK(text.find("target 'circle': expected a .circle or .tflite model, found an ONNX one") !=
          std::string::npos);
    CHECK(text.find("one-import-onnx") != std::string::npos);
}

TEST_CASE("settings that Circle has no place for are refused by their flags") {
    AssignmentFixture fixture = pooled_convolution();
    const auto refused = [&](const std::function<void(AssignmentOptions&)>& set, const char* part) {
        AssignmentOptions options;
        set(options);
        const std::string text = fixture.error(options);
        CAPTURE(text);
        CHECK(text.find(part) != std::string::npos);
    };
    refused([](AssignmentOptions& options) { options.weight_bits = 16; }, "--weight-bits: expected 8");
    refused([](AssignmentOptions& options) { options.activation_bits = 4; },
            "--act-bits: expected one of 8, 16");
    refused(
        [](AssignmentOptions& options) {
            options.activation_bits = 16;
            options.per_channel_weights = false;
        },
        "--weights per-tensor");
    refused([](AssignmentOptions& options) { options.symmetric_activations = true; },
            "--symmetric-activations");
    refused([](AssignmentOptions& options) { options.power_of_two = true; }, "--power-of-two");
    refused([](AssignmentOptions& options) { options.least_range = 1; }, "--least-range");
    refused([](AssignmentOptions& options) { options.bias_bits = 32; }, "--bias-bits");
    refused(
        [](AssignmentOptions& options) {
            options.overrides = {override_of("c")};
            options.overrides[0].skip = true;
        },
        "skip: target 'circle' takes no tensor without an entry");
    refused(
        [](AssignmentOptions& options) {
            options.overrides = {override_of("c")};
            options.overrides[0].bits = 16;
        },
        "QUANTIZE");
    fixture.forget("c");
    CHECK(fixture.error().find("1 not counted: 'c'") != std::string::npos);
}

TEST_CASE("a step, a copy and a base are kept, and what changes nothing is remarked") {
    AssignmentFixture fixture = pooled_convolution();
    AssignmentOptions options;
    options.overrides = {override_of("x"), override_of("p"), override_of("b")};
    options.overrides[0].step = 0.01;
    options.overrides[1].copy = "x";
    options.overrides[2].range = Range{-1, 1};
    const EncodingSet set = fixture.assign(options);
    CHECK(find_entry(set.activations, "x")->encodings.front().scale == 0.01);
    CHECK(find_entry(set.activations, "p")->encodings == find_entry(set.activations, "x")->encodings);
    CHECK(static_cast<float>(find_entry(set.parameters, "b")->encodings[0].scale) ==
          0.01F * static_cast<float>(find_entry(set.parameters, "w")->encodings[0].scale));
    CHECK(has_remark(fixture, "--override 'b' changed nothing for target 'circle': the scale of a bias"));
    CHECK(has_remark(fixture, "'p': keeps its own encoding"));

    AssignmentOptions based;
    based.base.emplace();
    based.base->label = "base.json";
    based.base->set.activations = {{"c", {circle_encoding_of(0.25, 7, 8)}, {}, "base.json:3"},
                                   {"nothing", {circle_encoding_of(0.25, 7, 8)}, {}, ""}};
    const EncodingSet kept = fixture.assign(based);
    CHECK(find_entry(kept.activations, "c")->encodings.front() == circle_encoding_of(0.25, 7, 8));
    CHECK(find_entry(kept.activations, "p")->encodings.front() == circle_encoding_of(0.25, 7, 8));
    CHECK(has_remark(fixture, "'nothing'"));
}

TEST_CASE("weights as their codes stand for them are at most half a step away") {
    AssignmentFixture fixture = pooled_convolution();
    const std::map<ValueId, Tensor> replaced =
        circle_fake_quantized_weights(fixture.graph, fixture.target, AssignmentOptions{});
    REQUIRE(replaced.size() == 1);
    const ValueId weight = fixture.graph.find("w");
    const std::vector<double> values = numbers_of(replaced.at(weight).view());
    const std::vector<double> given = numbers_of(fixture.graph.values[weight].initializer->view());
    for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(values[i] == doctest::Approx(given[i]).epsilon(1e-6));  // one value a channel is exact
}
