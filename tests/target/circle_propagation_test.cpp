// One test for each step of Samsung ONE's quantizer; the order of the steps is a part of what comes out.
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "target/circle_assignment.h"

using namespace qcalib;

namespace {

// A graph of a .circle file, made by hand, and ranges for its activations.
class CircleScene {
  public:
    CircleScene& input(const std::string& name, Range range) {
        graph_.inputs.push_back(value(name));
        ranges_[name] = range;
        return *this;
    }
    CircleScene& constant(const std::string& name, std::vector<float> values, Shape shape = {}) {
        if (shape.empty()) shape = {static_cast<std::int64_t>(values.size())};
        graph_.values[value(name)].initializer = Tensor::of<float>(std::move(shape), values);
        return *this;
    }
    CircleScene& node(const std::string& op_type, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, Range range,
                      const std::string& fused = "NONE") {
        Node node;
        node.domain = "circle";
        node.op_type = op_type;
        node.attributes["fused_activation_function"] = fused;
        for (const std::string& name : inputs) node.inputs.push_back(name.empty() ? no_value : value(name));
        for (const std::string& name : outputs) {
            node.outputs.push_back(value(name));
            graph_.values[node.outputs.back()].producer = static_cast<NodeIndex>(graph_.nodes.size());
            ranges_[name] = range;
        }
        graph_.nodes.push_back(node);
        return *this;
    }
    CircleScene& output(const std::string& name) {
        graph_.outputs.push_back(value(name));
        return *this;
    }
    CircleScene& executable(bool on) {
        CircleRules rules = *target_.circle;
        rules.executable = on;
        target_.circle = std::make_shared<const CircleRules>(rules);
        return *this;
    }
    CircleScene& encode(const std::vector<Override>& overrides = {}, int bits = 8) {
        const OverrideTable table(overrides, "circle", false);
        const AssignmentOptions nothing;
        ResolvedOptions options{
            &table, nullptr, activation_methods(nothing, target_), weight_methods(nothing, target_), {}, {}};
        options.activations.bits = bits;
        options.per_channel_weights = true;
        const auto range = [&](ValueId id) -> std::optional<Range> {
            const auto found = ranges_.find(graph_.values[id].name);
            return found == ranges_.end() ? std::nullopt : std::optional(found->second);
        };
        encodings_.emplace(
            circle_encodings({graph_, target_, options, range, [](ValueId) { return "test"; }}, *remarks_));
        return *this;
    }

    const TensorEncoding& entry(const std::string& name) const {
        const ValueId id = graph_.find(name);
        REQUIRE(id != no_value);
        REQUIRE(encodings_->of[id].entry);
        return *encodings_->of[id].entry;
    }
    bool same(const std::string& a, const std::string& b) const {
        return entry(a).encodings == entry(b).encodings;
    }
    // Whether the tensor has the encoding of its own range.
    bool own(const std::string& name) const {
        return entry(name).encodings.front() == circle_encoding(ranges_.at(name), 8, *target_.circle);
    }
    bool remarked(const std::string& part) const {
        for (const std::string& text : remarks_->all()) {
            if (text.find(part) != std::string::npos) return true;
        }
        return false;
    }
    std::vector<double> codes(const std::string& name) const {
        const ValueId id = graph_.find(name);
        return numbers_of(
            circle_codes(*graph_.values[id].initializer, entry(name), encodings_->coding[id]).view());
    }

  private:
    ValueId value(const std::string& name) {
        const auto found = graph_.index.find(name);
        if (found != graph_.index.end()) return found->second;
        Value added;
        added.name = name;
        added.declared_type = DataType::float32;
        graph_.values.push_back(added);
        const auto id = static_cast<ValueId>(graph_.values.size() - 1);
        graph_.index.emplace(name, id);
        return id;
    }

    Graph graph_;
    std::map<std::string, Range> ranges_;
    Target target_ = load_target("circle");
    std::shared_ptr<Remarks> remarks_ = std::make_shared<Remarks>();
    std::optional<CircleEncodings> encodings_;
};

Override range_override(const std::string& name, Range range) {
    Override one;
    one.pattern = name;
    one.range = range;
    one.place = "--override";
    return one;
}

}  // namespace

TEST_CASE("inputs of a concatenation take its encoding where nothing else reads them, constants too") {
    CircleScene scene;
    scene.input("x", {-1, 3}).constant("k", {0.5F, -20}, {1, 2});
    scene.node("RELU", {"x"}, {"p"}, {0, 1}).node("RELU", {"x"}, {"q"}, {0, 2});
    scene.node("CONCATENATION", {"p", "q", "k"}, {"c"}, {-8, 9}).node("RELU", {"q"}, {"r"}, {0, 2});
    scene.output("c").output("r").encode();
    CHECK(scene.same("p", "c"));
    CHECK(scene.own("q"));
    CHECK(scene.own("c"));
    CHECK(scene.same("k", "c"));
    CHECK(scene.codes("k") == std::vector<double>{127, 0});
}

TEST_CASE("nested concatenations hand the outermost encoding down") {
    CircleScene scene;
    scene.input("x", {-1, 3}).node("RELU", {"x"}, {"p"}, {0, 1}).node("RELU", {"x"}, {"q"}, {0, 2});
    scene.node("CONCATENATION", {"p", "q"}, {"c1"}, {-4, 4}).node("RELU", {"x"}, {"r"}, {0, 3});
    scene.node("CONCATENATION", {"c1", "r"}, {"c2"}, {-8, 9}).output("c2").encode();
    for (const char* name : {"p", "q", "c1", "r"}) CHECK(scene.same(name, "c2"));
    CHECK(scene.own("c2"));
    CHECK(scene.own("x"));
}

TEST_CASE("a concatenation with a fused activation leaves its inputs and constants their own range") {
    CircleScene scene;
    scene.input("x", {-1, 3}).constant("k", {0.5F, -20}, {1, 2}).node("RELU", {"x"}, {"p"}, {0, 1});
    scene.node("CONCATENATION", {"p", "k"}, {"c"}, {0, 9}, "RELU").output("c").encode();
    CHECK(scene.own("p"));
    CHECK(scene.codes("k") == std::vector<double>{255, 0});
}

TEST_CASE("a reshape's recorded range wins over what makes its input, down to a graph input") {
    for (const char* op_type : {"RESHAPE", "TRANSPOSE"}) {
        CAPTURE(op_type);
        CircleScene scene;
        scene.input("x", {-1, 3}).node(op_type, {"x"}, {"y"}, {-8, 9}).node("RELU", {"y"}, {"r"}, {0, 5});
        scene.output("r").encode();
        CHECK(scene.same("x", "y"));
        CHECK(scene.own("y"));
        CHECK(scene.own("r"));
    }
}

TEST_CASE("a reshape of one of several outputs takes its input's encoding and does not change it") {
    CircleScene scene;
    scene.input("axis", {0, 0}).input("x", {-1, 3});
    scene.node("SPLIT", {"axis", "x"}, {"a", "b"}, {-1, 1}).node("RESHAPE", {"a"}, {"y"}, {-8, 9});
    scene.output("y").output("b").encode();
    CHECK(scene.own("x"));
    CHECK(scene.same("a", "x"));
    CHECK(scene.same("b", "x"));
    CHECK(scene.same("y", "x"));
}

TEST_CASE("a padding value goes with the output, but -FLT_MAX makes all take the data's encoding") {
    const auto padded = [](float value) {
        CircleScene scene;
        scene.input("x", {-1, 3}).input("pads", {0, 0}).constant("cv", {value});
        scene.node("RELU", {"x"}, {"a"}, {0, 3}).node("PADV2", {"a", "pads", "cv"}, {"y"}, {-8, 9});
        scene.output("y").encode();
        return scene;
    };
    const CircleScene usual = padded(-5);
    CHECK(usual.own("y"));
    CHECK(usual.same("a", "y"));
    CHECK(usual.same("cv", "y"));
    CHECK(usual.codes("cv") == std::vector<double>{45});
    const CircleScene lowest = padded(std::numeric_limits<float>::lowest());
    CHECK(lowest.own("a"));
    CHECK(lowest.same("y", "a"));
    CHECK(lowest.codes("cv") == std::vector<double>{0});
}

TEST_CASE("outputs of rearranging operators take their input's encoding") {
    for (const char* op_type : {"GATHER", "STRIDED_SLICE", "SPLIT_V", "UNPACK"}) {
        CAPTURE(op_type);
        CircleScene scene;
        scene.input("x", {-1, 3}).node("RELU", {"x"}, {"c"}, {0, 5}).node(op_type, {"c"}, {"y"}, {0, 2});
        scene.output("y").encode();
        CHECK(scene.own("c"));
        CHECK(scene.same("y", "c"));
    }
}

TEST_CASE("other operators keep the range that was recorded behind them") {
    for (const char* op_type : {"SLICE", "PAD", "MIRROR_PAD", "SQUEEZE", "EXPAND_DIMS", "RESIZE_BILINEAR",
                                "RESIZE_NEAREST_NEIGHBOR", "RELU", "TILE", "MEAN", "REDUCE_MAX"}) {
        CAPTURE(op_type);
        CircleScene scene;
        scene.input("x", {-1, 3}).node("RELU", {"x"}, {"c"}, {0, 5}).node(op_type, {"c"}, {"y"}, {0, 2});
        scene.output("y").encode();
        CHECK(scene.own("c"));
        CHECK(scene.own("y"));
    }
}

TEST_CASE("fixed outputs come after what goes to the inputs and before what goes to the outputs") {
    CircleScene scene;
    scene.input("x", {-1, 3}).node("LOGISTIC", {"x"}, {"s"}, {0.25, 0.75});
    scene.node("RESHAPE", {"s"}, {"y"}, {0.25, 0.75}).output("y").encode();
    CHECK(scene.entry("s").encodings.front().scale == 1.0 / 256);
    CHECK(scene.same("y", "s"));
    CircleScene tanh;
    tanh.input("x", {-1, 3})
        .input("z", {-1, 3})
        .node("ADD", {"x", "z"}, {"y"}, {-1, 1}, "TANH")
        .output("y")
        .encode();
    CHECK(tanh.entry("y").encodings.front() == circle_encoding_of(2.0 / 256, 128, 8));
    CircleScene floor;
    floor.input("x", {-20, 100})
        .node("FLOOR", {"x"}, {"y"}, {-20, 100})
        .node("FLOOR", {"x"}, {"z"}, {-1000, 5000});
    floor.output("y").output("z").encode();
    CHECK(floor.entry("y").encodings.front() == circle_encoding_of(1, 43, 8));
    CHECK(floor.entry("z").encodings.front() == circle_encoding_of(24, 43, 8));
}

TEST_CASE("pooling takes its input's encoding so that luci-interpreter runs it, and says so") {
    for (const char* op_type : {"MAX_POOL_2D", "AVERAGE_POOL_2D"}) {
        CAPTURE(op_type);
        const auto pooled = [&](bool executable) {
            CircleScene scene;
            scene.input("x", {-1, 3})
                .node("RELU", {"x"}, {"c"}, {0, 5.9})
                .node(op_type, {"c"}, {"y"}, {0, 6});
            scene.node("SQUEEZE", {"y"}, {"z"}, {0, 6}).output("z").executable(executable).encode();
            return scene;
        };
        const CircleScene runs = pooled(true);
        CHECK(runs.same("y", "c"));
        CHECK(runs.own("z"));
        CHECK(runs.remarked("'y': takes the encoding of 'c'"));
        const CircleScene exact = pooled(false);
        CHECK(exact.own("y"));
        CHECK_FALSE(exact.remarked("luci-interpreter"));
    }
}

TEST_CASE("what pooling carries on goes through the reshape behind it") {
    CircleScene scene;
    scene.input("x", {-1, 3}).node("RELU", {"x"}, {"c"}, {0, 5.9}).node("MAX_POOL_2D", {"c"}, {"p"}, {0, 6});
    scene.node("RESHAPE", {"p"}, {"y"}, {0, 7}).output("y").encode();
    CHECK(scene.own("c"));
    CHECK(scene.same("p", "c"));
    CHECK(scene.same("y", "c"));
}

TEST_CASE("a pack of tensors that others read too cannot be made equal, which is remarked") {
    CircleScene scene;
    scene.input("x", {-1, 1}).input("z", {-100, 100}).node("PACK", {"x", "z"}, {"y"}, {-100, 100});
    scene.node("RELU", {"x"}, {"r"}, {0, 1}).node("RELU", {"z"}, {"s"}, {0, 100});
    scene.output("y").output("r").output("s").encode();
    CHECK(scene.remarked("its inputs have different encodings, which luci-interpreter does not run"));
    CircleScene alone;
    alone.input("x", {-1, 1}).input("z", {-100, 100}).node("PACK", {"x", "z"}, {"y"}, {-100, 100});
    alone.output("y").encode();
    CHECK(alone.same("x", "y"));
    CHECK(alone.same("z", "y"));
}

TEST_CASE("overrides come before the steps: they are kept by all and handed on") {
    CircleScene scene;
    scene.input("x", {-1, 3}).node("RELU", {"x"}, {"c"}, {0, 5}).node("RESHAPE", {"c"}, {"y"}, {0, 6});
    scene.output("y").encode({range_override("c", {0, 2})});
    CHECK(scene.entry("c").encodings.front().scale == doctest::Approx(2.0 / 255));
    CHECK(scene.same("y", "c"));
    CHECK(scene.remarked("'c': keeps its own encoding"));
    CircleScene parts;
    parts.input("axis", {0, 0}).input("x", {-1, 3}).node("SPLIT", {"axis", "x"}, {"a", "b"}, {-1, 3});
    parts.output("a").output("b").encode({range_override("a", {-2, 2})});
    CHECK_FALSE(parts.same("a", "x"));
    CHECK(parts.same("b", "x"));
}

TEST_CASE("operands have their own range, and one without a rule is named") {
    CircleScene scene;
    scene.input("x", {-1, 3}).constant("k", {-0.5F, 0.25F, 1, 2}).node("ADD", {"x", "k"}, {"y"}, {-2, 6});
    scene.node("SQUARED_DIFFERENCE", {"y", "k2"}, {"z"}, {0, 9}).constant("k2", {1, 2}).output("z").encode();
    CHECK(scene.codes("k") == std::vector<double>{0, 77, 153, 255});
    CHECK(scene.remarked("'k2': circle-quantizer has no rule for a constant of SQUARED_DIFFERENCE"));
    CHECK_FALSE(scene.remarked("'k':"));
}

TEST_CASE("biases take the final scale of their input, and those beyond int32 widen the weight's") {
    CircleScene scene;
    scene.input("x", {-1, 3})
        .constant("w", {0.5F, -0.5F, 1e-7F, 1e-7F}, {2, 1, 1, 2})
        .constant("b", {0.1F, 0.5F});
    scene.node("LOGISTIC", {"x"}, {"s"}, {0, 0.5}).node("CONV_2D", {"s", "w", "b"}, {"y"}, {-1, 1});
    scene.output("y").encode();
    const auto& bias = scene.entry("b").encodings;
    CHECK(static_cast<float>(bias[0].scale) ==
          (1.0F / 256) * static_cast<float>(scene.entry("w").encodings[0].scale));
    CHECK(bias[0].bits == 32);
    CHECK_FALSE(scene.remarked("widened"));

    CircleScene wide;
    wide.input("x", {0, 1e-4}).constant("w", {1e-6F, -1e-6F}, {1, 1, 1, 2}).constant("b", {1});
    wide.node("CONV_2D", {"x", "w", "b"}, {"y"}, {-1, 1}).output("y").encode();
    CHECK(wide.remarked("'w': the scale of channel 0 is widened"));
    const double code = wide.codes("b").front();
    CHECK(code > 2147483647 / 1.001);
    CHECK(code < 2147483647);
    CHECK(wide.entry("w").encodings.front().scale == doctest::Approx(1.0001 / 2147483647 / 1e-5));
}

TEST_CASE("a bias that two layers share needs one scale") {
    CircleScene scene;
    scene.input("x", {-1, 3})
        .input("z", {-1, 9})
        .constant("w", {0.5F, -0.5F}, {1, 1, 1, 2})
        .constant("b", {0.1F});
    scene.node("CONV_2D", {"x", "w", "b"}, {"y"}, {-1, 1}).node("CONV_2D", {"z", "w", "b"}, {"v"}, {-1, 1});
    scene.output("y").output("v");
    CHECK_THROWS_WITH_AS(scene.encode(), doctest::Contains("'b': expected one scale for a bias"), Error);
}

TEST_CASE("int16 has symmetric weights and int64 biases") {
    CircleScene scene;
    scene.input("x", {-1, 1})
        .constant("w", {-0.5F, 0.25F, 0.1F, 0.3F}, {2, 1, 1, 2})
        .constant("b", {0.1F, -0.2F});
    scene.node("CONV_2D", {"x", "w", "b"}, {"y"}, {-1, 1}).output("y").encode({}, 16);
    CHECK(scene.codes("w") == std::vector<double>{-32767, 16384, 10922, 32767});
    CHECK(scene.codes("b") == std::vector<double>{214735264, -715784192});
    CHECK(scene.entry("b").encodings.front().bits == 64);
}

TEST_CASE("a dead channel and a weight of float's greatest value are no trouble or refused by name") {
    CircleScene scene;
    scene.input("x", {-1, 1}).constant("w", {0, 0, 0.1F, 0.3F}, {2, 1, 1, 2});
    scene.node("CONV_2D", {"x", "w"}, {"y"}, {-1, 1}).output("y").encode();
    CHECK(static_cast<float>(scene.entry("w").encodings[0].scale) == 1e-5F);
    CHECK(scene.codes("w") == std::vector<double>{0, 0, 85, 255});
    CircleScene broken;
    broken.input("x", {-1, 1}).constant("w", {std::numeric_limits<float>::max(), 0}, {1, 1, 1, 2});
    broken.node("CONV_2D", {"x", "w"}, {"y"}, {-1, 1}).output("y");
    CHECK_THROWS_WITH_AS(broken.encode(), doctest::Contains("'w': expected finite weights"), Error);
}

TEST_CASE("a concatenation that leaves an input few codes is remarked") {
    CircleScene scene;
    scene.input("x", {-1, 3})
        .node("RELU", {"x"}, {"boxes"}, {0, 416})
        .node("RELU", {"x"}, {"scores"}, {0, 1});
    scene.node("CONCATENATION", {"boxes", "scores"}, {"y"}, {0, 416}).output("y").encode();
    CHECK(scene.remarked("leaves 'scores' about 0.615 of its 256 codes"));
    CircleScene near;
    near.input("x", {-1, 3}).node("RELU", {"x"}, {"a"}, {0, 4}).node("RELU", {"x"}, {"b"}, {0, 1});
    near.node("CONCATENATION", {"a", "b"}, {"y"}, {0, 4}).output("y").encode();
    CHECK_FALSE(near.remarked("codes"));
}

TEST_CASE("masks in a constant have no part in its range") {
    CircleScene scene;
    scene.input("x", {-1, 3}).constant("mask", {0, std::numeric_limits<float>::lowest(), 1});
    scene.node("ADD", {"x", "mask"}, {"y"}, {-1, 4}).output("y").encode();
    CHECK(scene.codes("mask") == std::vector<double>{0, 0, 255});
    CHECK(scene.remarked("'mask': left out of its range: 1 masks"));
}

TEST_CASE("a product of two activations has two activations' encodings") {
    CircleScene scene;
    scene.input("q", {-1, 3}).input("k", {-2, 2}).node("FULLY_CONNECTED", {"q", "k", ""}, {"y"}, {-5, 5});
    scene.output("y").encode();
    for (const char* name : {"q", "k", "y"}) CHECK(scene.own(name));
}
