// Encodings for TIDL: signs by the graph, ranges of Clips, overrides, 16 bits, what is remarked.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "assignment_fixture.h"
#include "target/needed_tensors.h"

using namespace qcalib;
using test::AssignmentFixture;
using test::find_entry;
using test::names_of;

namespace {

void tidl_clip(AssignmentFixture& net, const std::string& from, const std::string& to, float min, float max) {
    Node& node = net.node("Clip", {from}, {to});
    node.opset = 6;
    node.attributes["min"] = min;
    node.attributes["max"] = max;
}

// x -> Conv(w) -> c1 -> Relu -> r -> Conv(w) -> c2 -> Add(r) -> a -> Clip(-4, 4) -> y.
AssignmentFixture tidl_chain(const std::string& target = "tidl") {
    AssignmentFixture net;
    net.target = load_target(target);
    net.input("x");
    net.constant("w", {1, 1, 1, 1}, {0.5F});
    net.node("Conv", {"x", "w"}, {"c1"});
    net.node("Relu", {"c1"}, {"r"});
    net.node("Conv", {"r", "w"}, {"c2"});
    net.node("Add", {"c2", "r"}, {"a"});
    tidl_clip(net, "a", "y", -4, 4);
    net.graph.outputs = {net.value("y")};
    net.count("x", {0, 0.9F});
    net.count("c1", {-1, 3});
    net.count("r", {0, 3});
    net.count("c2", {0, 1.5F});
    net.count("a", {0, 4.5F});
    net.count("y", {0, 4});
    return net;
}

Encoding tidl_entry(const EncodingSet& set, const std::string& name) {
    const TensorEncoding* entry = find_entry(set.activations, name);
    if (entry == nullptr) entry = find_entry(set.parameters, name);
    REQUIRE(entry != nullptr);
    REQUIRE(entry->encodings.size() == 1);
    return entry->encodings.front();
}

AssignmentOptions tidl_options_with(const std::vector<std::string>& flags) {
    AssignmentOptions options;
    for (const std::string& flag : flags) {
        for (const Override& one : parse_override(flag)) options.overrides.push_back(one);
    }
    return options;
}

bool is_remarked(const AssignmentFixture& net, const std::string& part) {
    for (const std::string& remark : net.remarks) {
        if (remark.find(part) != std::string::npos) return true;
    }
    return false;
}

std::string notes_of(const AssignmentFixture& net, const std::string& tensor) {
    for (const Decision& decision : net.decisions) {
        if (decision.tensor == tensor) return fmt::format("{}", fmt::join(decision.notes, "\n"));
    }
    return "";
}

}  // namespace

TEST_CASE("TIDL's tensors are the outputs of its layers, unsigned behind a Relu and signed elsewhere") {
    AssignmentFixture net = tidl_chain();
    const EncodingSet set = net.assign();
    CHECK(names_of(set.activations) == std::vector<std::string>{"x", "r", "c2", "y"});
    CHECK(1 / tidl_entry(set, "x").scale == 128);  // signed, though no value is negative; up to 1
    CHECK(tidl_entry(set, "x").offset == -128);
    CHECK(1 / tidl_entry(set, "r").scale == 64);
    CHECK(tidl_entry(set, "r").offset == 0);
    CHECK(1 / tidl_entry(set, "c2").scale == 64);  // +-2
    CHECK(tidl_entry(set, "c2").offset == -128);
    CHECK(1 / tidl_entry(set, "y").scale == 32);  // the Clip's bounds
    CHECK(1 / tidl_entry(set, "w").scale == 256);
    CHECK(notes_of(net, "r").find("TIDL's scale 64 (code = round(value * 64)), unsigned 8 bit (u8)") !=
          std::string::npos);
    CHECK(notes_of(net, "x").find("TIDL's scale 128 (code = round(value * 128)), signed 8 bit (s8)") !=
          std::string::npos);
    const auto swallowed = std::find_if(net.decisions.begin(), net.decisions.end(),
                                        [](const Decision& one) { return one.tensor == "c1"; });
    REQUIRE(swallowed != net.decisions.end());
    CHECK(swallowed->no_encoding ==
          "target 'tidl' has no such tensor: it lies inside the TIDL_ConvolutionLayer of Conv 'n0', Relu "
          "'n1', whose output is 'r'");
}

TEST_CASE("layers without a Clip are listed by TIDL's own rule and completed from the data") {
    AssignmentFixture net = tidl_chain();
    net.assign();
    CHECK(
        is_remarked(net,
                    "2 of 3 layers have no Clip: 'r' (TIDL_ConvolutionLayer), 'c2' (TIDL_ConvolutionLayer): "
                    "TIDL would collect statistics"));
}

TEST_CASE("without powers of two a network's input still has one") {
    AssignmentFixture net = tidl_chain("tidl-np2");
    const EncodingSet set = net.assign();
    CHECK(1 / tidl_entry(set, "x").scale == 128);
    CHECK(1 / tidl_entry(set, "r").scale == doctest::Approx(256 / 3.0));
    CHECK(1 / tidl_entry(set, "c2").scale == doctest::Approx(128 / 1.5));
    CHECK(1 / tidl_entry(set, "w").scale == 256);
    // The convolution's sums have scale 128 * 256; divided by 2^9 they are the finest that holds 3.
    CHECK(notes_of(net, "r").find("TIDL comes to scale 64, 0.42 bits coarser: it is that of its sums, 32768, "
                                  "divided by a power of two") != std::string::npos);
    CHECK(is_remarked(net, "TIDL's own scale is coarser than the range for 2 of 4 layers: "));
}

TEST_CASE("asymmetric activations keep the input symmetric, and weights have channels") {
    AssignmentFixture net = tidl_chain("tidl-asym");
    const EncodingSet set = net.assign();
    CHECK(tidl_entry(set, "x").symmetric);
    CHECK(!tidl_entry(set, "c2").symmetric);
    CHECK(tidl_entry(set, "c2").scale == doctest::Approx(1.5 / 255));
    const TensorEncoding* weight = find_entry(set.parameters, "w");
    REQUIRE(weight != nullptr);
    CHECK(weight->axis == 0);
    CHECK(1 / weight->encodings.front().scale == 256);
}

TEST_CASE(
    "the range is the mean over frames of the per-frame extremes for a layer, the extremes for an input") {
    const Target target = load_target("tidl");
    CHECK(target.default_method == "mean");
    CHECK(target.scale_is_multiplier);
}

TEST_CASE("a fixed step gives TIDL's range: 0 to 32 unsigned, -16 to 16 signed") {
    AssignmentFixture net = tidl_chain();
    EncodingSet set = net.assign(tidl_options_with({"r: {step: 0.125}", "c2: {target: {tidl: {scale: 8}}}"}));
    CHECK(tidl_entry(set, "r").scale == 0.125);
    CHECK(tidl_entry(set, "r").offset == 0);
    CHECK(tidl_entry(set, "r").max == 32 - 0.125);
    CHECK(tidl_entry(set, "c2").scale == 0.125);
    CHECK(tidl_entry(set, "c2").min == -16);
    CHECK(tidl_entry(set, "c2").max == 16 - 0.125);
    CHECK(notes_of(net, "r").find("TIDL's scale 8 (") != std::string::npos);
    set = net.assign(tidl_options_with({"r: {step: 0.0078125}"}));  // 0 to 2, and the data reach 3
    CHECK(is_remarked(
        net, "'r': step 0.0078125 of --override 'r': its range 0 to 1.992188 clips 50.00 % of the data"));
    CHECK(net.error(tidl_options_with({"r: {step: 0.1}"})).find("the nearest are 0.0625 and 0.125") !=
          std::string::npos);
}

TEST_CASE("an override for a tensor inside a layer is taken for its output, and said") {
    AssignmentFixture net = tidl_chain();
    const EncodingSet set = net.assign(tidl_options_with({"c1: {bits: 16}"}));
    CHECK(tidl_entry(set, "r").bits == 16);
    CHECK(1 / tidl_entry(set, "r").scale == 16384);
    CHECK(is_remarked(net,
                      "--override 'c1': taken for 'r', under which TIDL knows the output of "
                      "TIDL_ConvolutionLayer of Conv 'n0', Relu 'n1'"));
    CHECK(is_remarked(net, "16 bits for 1 of 4 tensors, but the model's Clips were trained for 8"));
}

TEST_CASE("a range below zero of an unsigned tensor is cut, asymmetric codes are refused") {
    AssignmentFixture net = tidl_chain();
    const EncodingSet set = net.assign(tidl_options_with({"r: {range: [-1, 4]}"}));
    CHECK(1 / tidl_entry(set, "r").scale == 64);
    CHECK(tidl_entry(set, "r").offset == 0);
    CHECK(is_remarked(net, "'r': range -1 to 4 of --override 'r': target 'tidl' has unsigned codes for it"));
    CHECK(
        net.error(tidl_options_with({"r: {symmetric: false}"}))
            .starts_with("--override 'r': symmetric: expected true, since target 'tidl' has symmetric codes "
                         "alone"));
    AssignmentOptions options;
    options.symmetric_activations = false;
    CHECK(net.error(options).starts_with("--symmetric-activations no: target 'tidl'"));
}

TEST_CASE("16 bits of a tensor that meets others in a Concat are those of all, and of whose codes it is") {
    AssignmentFixture net;
    net.target = load_target("tidl");
    net.input("x");
    net.constant("w", {1, 1, 1, 1}, {0.5F});
    net.node("Conv", {"x", "w"}, {"a"});
    net.node("Conv", {"x", "w"}, {"b"});
    net.node("MaxPool", {"b"}, {"p"});
    net.node("Concat", {"a", "p"}, {"y"});
    net.node("Conv", {"y", "w"}, {"z"});
    net.graph.outputs = {net.value("z")};
    for (const char* name : {"x", "a", "b", "p", "y", "z"}) net.count(name, {-1, 1});
    const EncodingSet set = net.assign(tidl_options_with({"p: {bits: 16}"}));
    for (const char* name : {"a", "b", "p", "y"}) CHECK(tidl_entry(set, name).bits == 16);
    CHECK(tidl_entry(set, "z").bits == 8);
    CHECK(tidl_entry(set, "x").bits == 8);
    CHECK(is_remarked(
        net, "--override 'p': taken for 'b', whose codes TIDL_PoolingLayer of MaxPool 'n2' hands on"));
    CHECK(is_remarked(net, "'y', 'a': 16 bits, as all that meets in TIDL_ConcatLayer of Concat 'n3'"));
}

TEST_CASE("inputs of a Concat whose values need a far finer step are named with what they get") {
    AssignmentFixture net;
    net.target = load_target("tidl");
    net.input("x");
    net.constant("w", {1, 1, 1, 1}, {0.5F});
    net.node("Conv", {"x", "w"}, {"boxes"});
    net.node("Conv", {"x", "w"}, {"scores"});
    net.node("Concat", {"boxes", "scores"}, {"y"});
    net.graph.outputs = {net.value("y")};
    net.count("x", {0, 1});
    net.count("boxes", {0, 640});
    net.count("scores", {0, 1});
    net.count("y", {0, 640});
    net.assign();
    CHECK(is_remarked(net, "'scores' needs a step of 0.00781 and reaches 0 codes of 8"));
    CHECK(is_remarked(net, "give it 16 bits (--override 'y: {bits: 16}')"));
}

TEST_CASE("what keeps a trained model from being what the device computes is named with advice") {
    AssignmentFixture net;
    net.target = load_target("tidl");
    net.input("x");
    net.constant("w", {2, 1, 1, 1}, {0.1F, 0.2F});
    tidl_clip(net, "x", "q", 0, 1);
    net.node("Conv", {"q", "w"}, {"c"});
    tidl_clip(net, "c", "d", 0, 3);
    net.node("Conv", {"d", "w"}, {"e"});
    tidl_clip(net, "e", "f", 0, 64);
    net.node("Conv", {"f", "w"}, {"g"});
    tidl_clip(net, "g", "h", 0, 64);
    net.node("Conv", {"h", "w"}, {"i"});
    tidl_clip(net, "i", "y", -4, -1);
    net.graph.outputs = {net.value("y")};
    net.count("x", {0, 0.9F});
    for (const char* name : {"q", "c", "d", "e", "f"}) net.count(name, {0, 0.5F});
    for (const char* name : {"g", "h", "i"}) net.count(name, {0, 50});
    net.count("y", {-4, -1});
    net.assign();
    CHECK(
        is_remarked(net,
                    "'q': a Clip on the network's input becomes a layer of its own, a batch norm whose "
                    "weight 1 is stored as 127/128 in 8 bits: all values behind it come out 0.78 % low, and "
                    "the input has scale 128, signed, where the Clip has 256"));
    CHECK(is_remarked(net, "ranges of the model that are no powers of two: 'd' 0 to 3 (becomes 4)"));
    CHECK(is_remarked(
        net,
        "2 layers have the one range 0 to 64, though 'h' reaches 50 and 'f' only 0.5, which costs "
        "it 7 bits"));
    CHECK(is_remarked(net, "TIDL refuses a Clip from -4 to -1"));
    CHECK(is_remarked(net, "weights off their grids: 1, most of all 'w', by up to 0.40 of a step"));
}

TEST_CASE("a base with codes that TIDL has not is coded anew, one of its own is kept") {
    AssignmentFixture net = tidl_chain("tidl-np2");
    AssignmentOptions options;
    options.base.emplace();
    options.base->label = "base.json";
    const Encoding asymmetric = encode_asymmetric({-1, 3}, 8, 0.01);
    Encoding own;  // signed, up to 3
    own.scale = 3.0 / 128;
    own.offset = -128;
    own.min = -3;
    own.max = own.scale * 127;
    own.symmetric = true;
    options.base->set.activations = {
        {"r", {own}, {}, "log"}, {"c2", {asymmetric}, {}, "log"}, {"y", {own}, {}, "log"}};
    const EncodingSet set = net.assign(options);
    CHECK(tidl_entry(set, "r").offset == 0);  // behind a Relu
    CHECK(tidl_entry(set, "r").scale == doctest::Approx(3.0 / 256));
    CHECK(tidl_entry(set, "c2").offset == -128);
    CHECK(tidl_entry(set, "c2").scale == doctest::Approx(asymmetric.max / 128));
    CHECK(tidl_entry(set, "y") == own);
    CHECK(is_remarked(net,
                      "'r': the base's encoding is coded anew: target 'tidl-np2' has unsigned codes for it"));
    CHECK(is_remarked(
        net, "'c2': the base's encoding is coded anew: target 'tidl-np2' has signed, symmetric codes"));
    CHECK(!is_remarked(net, "layers have no Clip"));  // the base has them all
}

TEST_CASE("what lies inside a layer needs no statistics, nor does what ends in a Clip") {
    AssignmentFixture net = tidl_chain();
    CHECK(needed_tensors(net.graph, net.target) == std::vector<std::string>{"x", "r", "c2", "y"});
    net.forget("c1");
    net.forget("a");
    net.forget("y");
    const EncodingSet set = net.assign();
    CHECK(1 / tidl_entry(set, "y").scale == 32);
    net.forget("c2");
    CHECK(net.error().find("1 not counted: 'c2'") != std::string::npos);
}

TEST_CASE("weights are those with the batch normalization behind them taken in") {
    AssignmentFixture net;
    net.target = load_target("tidl");
    net.input("x");
    net.constant("w", {2, 1, 1, 1}, {1, 1});
    net.constant("gamma", {2}, {0.5F, 6});
    net.constant("zero", {2}, {0, 0});
    net.constant("variance", {2}, {1, 4});
    net.node("Conv", {"x", "w"}, {"c"});
    Node& norm = net.node("BatchNormalization", {"c", "gamma", "zero", "zero", "variance"}, {"y"});
    norm.attributes["epsilon"] = 0.0F;
    net.graph.outputs = {net.value("y")};
    net.count("x", {0, 1});
    net.count("c", {0, 1});
    net.count("y", {0, 3});
    const EncodingSet set = net.assign();
    CHECK(1 / tidl_entry(set, "w").scale == 32);  // 6 / sqrt(4) = 3, up to 4
    CHECK(notes_of(net, "w") == "with the batch normalization behind it taken in");
}
