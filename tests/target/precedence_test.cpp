// Overrides, bases, fixed and shared encodings: what holds for a tensor.
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

// x -> Conv(w, b) -> c -> Relu -> r -> Mul(s) -> y -> Reshape -> z.
AssignmentFixture small_network(const std::string& target = "snpe") {
    AssignmentFixture fixture;
    fixture.target = load_target(target);
    fixture.input("x");
    fixture.constant("w", {2, 1, 1, 1}, {-0.5F, 1.0F});
    fixture.constant("b", {2}, {0.1F, 0.2F});
    fixture.constant("s", {}, {4.0F});
    fixture.node("Conv", {"x", "w", "b"}, {"c"});
    fixture.node("Relu", {"c"}, {"r"});
    fixture.node("Mul", {"r", "s"}, {"y"});
    fixture.node("Reshape", {"y", "shape"}, {"z"});
    fixture.constant("shape", Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{2}));
    fixture.graph.outputs = {fixture.value("z")};
    fixture.count("x", {-1, 2});
    fixture.count("c", {-1, 3});
    fixture.count("r", {0, 3});
    fixture.count("y", {0, 12});
    fixture.count("z", {0, 12});
    return fixture;
}

AssignmentOptions with(const std::vector<std::string>& flags) {
    AssignmentOptions options;
    for (const std::string& flag : flags) {
        for (const Override& one : parse_override(flag)) options.overrides.push_back(one);
    }
    return options;
}

AssignmentOptions based(std::vector<TensorEncoding> activations,
                        std::vector<TensorEncoding> parameters = {}) {
    AssignmentOptions options;
    options.base.emplace();
    options.base->label = "base.json";
    options.base->set = {std::move(activations), std::move(parameters)};
    return options;
}

Encoding only(const EncodingSet& set, const std::string& name) {
    const TensorEncoding* entry = find_entry(set.activations, name);
    if (entry == nullptr) entry = find_entry(set.parameters, name);
    REQUIRE(entry != nullptr);
    REQUIRE(entry->encodings.size() == 1);
    return entry->encodings.front();
}

std::string origin(const EncodingSet& set, const std::string& name) {
    const TensorEncoding* entry = find_entry(set.activations, name);
    if (entry == nullptr) entry = find_entry(set.parameters, name);
    return entry == nullptr ? "none" : entry->origin;
}

const Decision& decision(const AssignmentFixture& fixture, const std::string& name) {
    const auto found = std::find_if(fixture.decisions.begin(), fixture.decisions.end(),
                                    [&](const Decision& one) { return one.tensor == name; });
    REQUIRE(found != fixture.decisions.end());
    return *found;
}

}  // namespace

TEST_CASE("an override's range is encoded by the target's rules") {
    AssignmentFixture fixture = small_network();
    const EncodingSet set = fixture.assign(with({"c: {range: [-2, 4]}"}));
    CHECK(only(set, "c") == encode_asymmetric({-2, 4}, 8, 0.01));
    CHECK(origin(set, "c") == "override");
    CHECK(origin(set, "r") == "minmax");
    CHECK(decision(fixture, "c").overrides == Names{"--override 'c'"});
    CHECK(fixture.remarks.empty());
}

TEST_CASE("an override's step gives the range; what it clips is remarked with its share") {
    AssignmentFixture fixture = small_network();
    CHECK(only(fixture.assign(with({"y: {step: 0.125}"})), "y").max == 32 - 0.125);
    CHECK(fixture.remarks.empty());
    const Encoding clipping = only(fixture.assign(with({"y: {step: 0.03125}"})), "y");
    CHECK(clipping.scale == 0.03125);
    CHECK(clipping.max == 255 * 0.03125);
    CHECK(fixture.remarks ==
          Names{"'y': step 0.03125 of --override 'y': its range 0 to 7.96875 clips 50.00 % of the "
                "data, which reach from 0 to 12"});
}

TEST_CASE("a step for a power-of-two target has to be one; the nearest two are offered") {
    AssignmentFixture fixture = small_network();
    fixture.target.power_of_two = true;
    CHECK(only(fixture.assign(with({"y: {step: 0.125}"})), "y").scale == 0.125);
    CHECK(
        fixture.error(with({"y: {step: 0.1}"})) ==
        "--override 'y': step: expected a power of two, which target 'snpe' asks for, found 0.1 for 'y': the "
        "nearest are 0.0625 and 0.125");
}

TEST_CASE("bits and symmetry are overridden for activations, weights and operands") {
    AssignmentFixture fixture = small_network();
    const EncodingSet set = fixture.assign(
        with({"c: {bits: 16}", "w: {bits: 4, symmetric: true}", "s: {bits: 16}", "r: {symmetric: true}"}));
    CHECK(only(set, "c") == encode_asymmetric({-1, 3}, 16, 0.01));
    CHECK(only(set, "w") == encode_symmetric({-0.5, 1}, 4, 0.01));
    CHECK(only(set, "s") == encode_asymmetric({4, 4}, 16, 0.01));
    CHECK(only(set, "r") == encode_symmetric({0, 3}, 8, 0.01));
    CHECK(origin(set, "w") == "override");
    CHECK(fixture.error(with({"c: {bits: 4}"})) ==
          "--override 'c': bits: expected one of 8, 16, which target 'snpe' takes for 'c', found 4");
}

TEST_CASE("a range or step makes a weight per tensor even where channels are asked for") {
    AssignmentFixture fixture = small_network();
    AssignmentOptions options = with({"w: {range: [-2, 2]}"});
    options.per_channel_weights = true;
    CHECK(only(fixture.assign(options), "w") == encode_asymmetric({-2, 2}, 8, 0.01));
    options = with({"w: {symmetric: false}"});
    options.per_channel_weights = true;
    CHECK(fixture.error(options).find(
              "--override 'w': symmetric: expected true for 'w', whose channels target") == 0);
    options = with({"w: {bits: 4}"});
    options.per_channel_weights = true;
    CHECK(find_entry(fixture.assign(options).parameters, "w")->encodings ==
          std::vector<Encoding>{encode_symmetric({-0.5, -0.5}, 4, 0.01), encode_symmetric({1, 1}, 4, 0.01)});
}

TEST_CASE("skip leaves a tensor out, copy takes another one's encoding, also through other copies") {
    AssignmentFixture fixture = small_network();
    const EncodingSet set =
        fixture.assign(with({"x: {skip: true}", "r: {copy: c}", "c: {copy: y}", "y: {bits: 16}"}));
    CHECK(find_entry(set.activations, "x") == nullptr);
    CHECK(decision(fixture, "x").no_encoding == "skipped by --override 'x'");
    CHECK(only(set, "c") == only(set, "y"));
    CHECK(only(set, "r") == only(set, "y"));
    CHECK(origin(set, "r") == "override");
    CHECK(decision(fixture, "r").method == "copy of 'c'");
}

TEST_CASE("copies that lead back, of what gets no encoding or does not fit are errors") {
    AssignmentFixture fixture = small_network();
    CHECK(fixture.error(with({"c: {copy: r}", "r: {copy: c}"})) ==
          "--override 'c': copy: expected tensors that do not lead back to themselves, found 'c' -> 'r' -> "
          "'c'");
    CHECK(fixture.error(with({"c: {copy: c}"})).find("found 'c' -> 'c'") != std::string::npos);
    CHECK(fixture.error(with({"y: {copy: z}"})).find("found 'y' -> 'z' -> 'y'") != std::string::npos);
    CHECK(fixture.error(with({"c: {copy: b}"}))
              .find("--override 'c': copy: expected a tensor that gets an encoding, "
                    "found 'b': target 'snpe' encodes no input 2 of Conv") == 0);
    CHECK(fixture.error(with({"c: {copy: shape}"})) ==
          "--override 'c': copy: expected a tensor that gets an encoding, found 'shape'");
    AssignmentOptions options = with({"c: {copy: w}"});
    options.per_channel_weights = true;
    CHECK(fixture.error(options) ==
          "--override 'c': copy: expected channels that fit 'c', found 'w' with 2 of them");
    options = with({"c: {copy: w}"});
    options.weight_bits = 4;
    CHECK(fixture.error(options).find("copy: expected one of 8, 16 bits") != std::string::npos);
}

TEST_CASE("a glob matches activations, weights and operands") {
    AssignmentFixture fixture = small_network();
    const EncodingSet set = fixture.assign(with({"?: {bits: 16}"}));
    for (const char* name : {"x", "c", "r", "y", "z", "w", "s"}) CHECK(only(set, name).bits == 16);
    CHECK(fixture.remarks.empty());
}

TEST_CASE("overrides that changed nothing are remarked") {
    AssignmentFixture fixture = small_network();
    const auto remarks = [&](const std::vector<std::string>& flags) {
        fixture.assign(with(flags));
        return fixture.remarks;
    };
    CHECK(remarks({"c: {bits: 8}"}) == Names{"--override 'c' changed nothing for target "
                                             "'snpe': 'c' has the same encoding without it"});
    CHECK(remarks({"shape: {bits: 8}"}) ==
          Names{"--override 'shape' changed nothing for target 'snpe': 'shape' holds no "
                "floating-point numbers, or "
                "meets no activation"});
    CHECK(remarks({"b: {bits: 8}"})
              .at(0)
              .find("--override 'b' changed nothing for target 'snpe': 'b': target 'snpe' "
                    "encodes no input 2 of Conv") == 0);
    CHECK(remarks({"x: {range: [0, 1]}", "x: {range: [0, 2]}"}) ==
          Names{"--override 'x' changed nothing for target 'snpe': for 'x' stronger overrides "
                "hold"});
    CHECK(remarks({"r: {range: [0, 3]}"}).size() == 1);
    CHECK(remarks({"c: {copy: r}", "r: {copy: y}"}).empty());
    CHECK(remarks({"x: {skip: false}"}).size() == 1);
    CHECK(remarks({"x: {skip: true}", "x: {skip: false}"}).size() == 1);
}

TEST_CASE("an override of what nothing matches is an error that offers the nearest name") {
    AssignmentFixture fixture = small_network();
    fixture.node("Neg", {"z"}, {"long_name"});
    fixture.count("long_name", {0, 1});
    CHECK(fixture.error(with({"long_nam: {bits: 16}"})) ==
          "--override: no tensor of the model matches 'long_nam' (did you mean 'long_name'?)");
}

TEST_CASE("a tensor that was not counted can be given a range, a copy or nothing") {
    AssignmentFixture fixture = small_network();
    fixture.forget("c");
    CHECK(fixture.error(with({"c: {bits: 16}"})).find("1 not counted: 'c'") != std::string::npos);
    CHECK(only(fixture.assign(with({"c: {range: [-2, 4]}"})), "c") == encode_asymmetric({-2, 4}, 8, 0.01));
    CHECK(only(fixture.assign(with({"c: {copy: y}"})), "c").max == 12);
    CHECK(find_entry(fixture.assign(with({"c: {skip: true}"})).activations, "c") == nullptr);
    AssignmentOptions options = based({{"c", {encode_asymmetric({-5, 5}, 8, 0.01)}, {}, ""}});
    CHECK(only(fixture.assign(options), "c") == encode_asymmetric({-5, 5}, 8, 0.01));
}

TEST_CASE("what moves data takes its source's encoding, overrides and base of the source among it") {
    AssignmentFixture fixture = small_network();
    EncodingSet set = fixture.assign();
    CHECK(only(set, "z") == only(set, "y"));
    CHECK(origin(set, "z") == "shared");
    set = fixture.assign(with({"y: {step: 0.125}"}));
    CHECK(only(set, "z").scale == 0.125);
    set = fixture.assign(with({"z: {bits: 16}"}));
    CHECK(only(set, "z").bits == 16);
    CHECK(only(set, "y").bits == 8);
    CHECK(fixture.remarks ==
          Names{"'z': --override 'z' gives it an encoding of its own, though target 'snpe' takes "
                "that of 'y' for Reshape"});
}

TEST_CASE("a base is kept bit by bit, and what it lacks is filled in: the value before a Relu") {
    AssignmentFixture fixture = small_network();
    Encoding given;
    given.min = 0;
    given.max = 5.7605085372924805;
    given.scale = given.max / 255;
    const EncodingSet set = fixture.assign(based({{"r", {given}, {}, "base.json:3"}}));
    CHECK(only(set, "r") == given);
    CHECK(origin(set, "r") == "base");
    CHECK(decision(fixture, "r").notes == Names{"from base.json:3"});
    CHECK(only(set, "c") == encode_asymmetric({-1, 3}, 8, 0.01));
    CHECK(origin(set, "c") == "minmax");
    CHECK(origin(set, "w") == "weights");
    CHECK(fixture.remarks.empty());
}

TEST_CASE("an override goes before the base; its bits keep the base's range") {
    AssignmentFixture fixture = small_network();
    AssignmentOptions options = based({{"r", {encode_asymmetric({0, 5}, 8, 0.01)}, {}, ""}});
    for (const Override& one : parse_override("r: {bits: 16}")) options.overrides.push_back(one);
    CHECK(only(fixture.assign(options), "r") == encode_asymmetric({0, 5}, 16, 0.01));
    CHECK(decision(fixture, "r").method == "base");
    options.overrides = parse_override("r: {range: [0, 1]}");
    CHECK(only(fixture.assign(options), "r") == encode_asymmetric({0, 1}, 8, 0.01));
    options.overrides = parse_override("r: {skip: true}");
    CHECK(find_entry(fixture.assign(options).activations, "r") == nullptr);
    CHECK(fixture.remarks == Names{"base.json: the entry of 'r' is left out: skipped by --override 'r'"});
}

TEST_CASE("a base's entries for what the model lacks are remarked with the nearest name") {
    AssignmentFixture fixture = small_network();
    fixture.node("Neg", {"z"}, {"long_name"});
    fixture.count("long_name", {0, 1});
    const Encoding any = encode_asymmetric({0, 5}, 8, 0.01);
    fixture.assign(based({{"long_nam", {any}, {}, ""}, {"w_fc", {any}, {}, ""}, {"shape", {any}, {}, ""}}));
    CHECK(fixture.remarks ==
          Names{"base.json: 'long_nam' is no tensor of the model and is left out (did you mean "
                "'long_name'?)",
                "base.json: 'w_fc' is no tensor of the model and is left out (did you mean "
                "'w'? '_fc' is what a "
                "converter adds)",
                "base.json: the entry of 'shape' is left out: it gets no encoding"});
}

TEST_CASE("a base's encoding that the target cannot have is coded anew and said") {
    AssignmentFixture fixture = small_network();
    const auto coded = [&](const Encoding& encoding) {
        return only(fixture.assign(based({{"r", {encoding}, {}, ""}})), "r");
    };
    CHECK(coded(encode_asymmetric({0, 5}, 4, 0.01)) == encode_asymmetric({0, 5}, 8, 0.01));
    CHECK(fixture.remarks ==
          Names{"'r': the base's encoding is coded anew: target 'snpe' takes 8, 16 bits, not 4"});
    CHECK(coded(encode_asymmetric({0, 0.001}, 8, 0.0001)).max == 0.01);
    CHECK(fixture.remarks.at(0).find("narrower than the least range, 0.01") != std::string::npos);
    fixture.target.power_of_two = true;
    CHECK(coded(encode_asymmetric({0, 5}, 8, 0.01)).scale == 0x1p-5);
}

TEST_CASE("a base's channels are kept for weights they fit, and refused for others") {
    AssignmentFixture fixture = small_network();
    const std::vector<Encoding> two{encode_symmetric({-2, 2}, 8, 0.01), encode_symmetric({-3, 3}, 8, 0.01)};
    EncodingSet set = fixture.assign(based({}, {{"w", two, 0, ""}}));
    CHECK(find_entry(set.parameters, "w")->encodings == two);
    CHECK(find_entry(set.parameters, "w")->axis == 0);
    std::vector<Encoding> three = two;
    three.push_back(two[0]);
    set = fixture.assign(based({{"c", two, 0, ""}}, {{"w", three, 0, ""}}));
    CHECK(only(set, "w") == encode_asymmetric({-0.5, 1}, 8, 0.01));
    CHECK(only(set, "c") == encode_asymmetric({-1, 3}, 8, 0.01));
    CHECK(fixture.remarks ==
          Names{"'c': the base's 2 encodings are none of an activation: encoded anew",
                "'w': the base's 3 channels along axis 0 do not fit the shape [2,1,1,1]: encoded "
                "anew"});
    const std::vector<Encoding> asymmetric{encode_asymmetric({0, 2}, 8, 0.01),
                                           encode_asymmetric({0, 3}, 8, 0.01)};
    set = fixture.assign(based({}, {{"w", asymmetric, 0, ""}}));
    CHECK(find_entry(set.parameters, "w")->encodings[1] == encode_symmetric({0, 3}, 8, 0.01));
}

TEST_CASE(
    "a base's entry of a bias is kept, and one with a width alone leaves the range to the "
    "method") {
    AssignmentFixture fixture = small_network();
    Encoding bias = encode_symmetric({-1, 1}, 32, 1e-12);
    TensorEncoding width{"c", {}, {}, ""};
    width.bits = 16;
    const EncodingSet set = fixture.assign(based({width}, {{"b", {bias}, {}, ""}}));
    CHECK(only(set, "b") == bias);
    CHECK(only(set, "c") == encode_asymmetric({-1, 3}, 16, 0.01));
}

TEST_CASE("qnn fixes the encodings of Softmax, Sigmoid and Tanh by their widths") {
    AssignmentFixture fixture;
    fixture.target = load_target("qnn");
    fixture.input("x");
    fixture.node("Softmax", {"x"}, {"p"});
    fixture.node("Tanh", {"p"}, {"t"});
    fixture.node("Sigmoid", {"t"}, {"g"});
    for (const char* name : {"x", "t", "g"}) fixture.count(name, {0, 0.5F});
    fixture.count("p", {0, 0.0045F});
    EncodingSet set = fixture.assign();
    CHECK(only(set, "p").max == 0.99609375);
    CHECK(only(set, "p").scale == 1.0 / 256);
    CHECK(origin(set, "p") == "fixed");
    CHECK(origin(set, "t") == "minmax");
    CHECK(fixture.remarks ==
          Names{"'p': its greatest value 0.0045 is 1.15 codes of the encoding that target 'qnn' "
                "fixes for Softmax: nearly all of it becomes 0 in 8 bits"});
    AssignmentOptions options;
    options.activation_bits = 16;
    set = fixture.assign(options);
    CHECK(only(set, "p").scale == 1.0 / 65536);
    CHECK(only(set, "t").min == -1);
    CHECK(only(set, "t").offset == -32768);
    CHECK(fixture.remarks.empty());
    set = fixture.assign(based({{"g", {encode_asymmetric({0, 0.9}, 8, 0.01)}, {}, ""}}));
    CHECK(only(set, "g").scale == 1.0 / 256);
    CHECK(fixture.remarks.back().find(
              "'g': the base's range 0 to 0.9 gives way to the encoding that target 'qnn' "
              "fixes for Sigmoid") == 0);
    set = fixture.assign(with({"g: {range: [0, 0.9]}"}));
    CHECK(only(set, "g").max == 0.9);
    CHECK(fixture.remarks.back().find(
              "'g': --override 'g' asks for another encoding than target 'qnn' fixes") == 0);
}

TEST_CASE("qnn gives a Concat and all its inputs the union of their ranges; snpe each its own") {
    const auto concat = [](const std::string& target) {
        AssignmentFixture fixture;
        fixture.target = load_target(target);
        fixture.input("x");
        fixture.input("v");
        fixture.node("Neg", {"x"}, {"a"});
        fixture.node("Relu", {"v"}, {"b"});
        fixture.node("Reshape", {"a", "shape"}, {"f"});
        fixture.constant("shape", Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{2}));
        fixture.node("Concat", {"f", "b"}, {"y"});
        fixture.count("x", {-4, 10});
        fixture.count("v", {1, 10});
        fixture.count("a", {-10, 4});
        fixture.count("f", {-10, 4});
        fixture.count("b", {1, 10});
        fixture.count("y", {-10, 10});
        return fixture;
    };
    AssignmentFixture qnn = concat("qnn");
    EncodingSet set = qnn.assign();
    const Encoding all = encode_asymmetric({-10, 10}, 8, 0.0001);
    for (const char* name : {"a", "f", "b", "y"}) CHECK(only(set, name) == all);
    CHECK(only(set, "x") == encode_asymmetric({-4, 10}, 8, 0.0001));
    CHECK(origin(set, "a") == "shared");
    CHECK(qnn.remarks == Names{"'b': its range starts at -10.04, but it is the output of a "
                               "Relu, which has no values "
                               "below 0: it shares the encoding of others"});
    set = qnn.assign(with({"b: {range: [0, 20]}"}));
    CHECK(only(set, "b") == encode_asymmetric({0, 20}, 8, 0.0001));
    CHECK(only(set, "y") == encode_asymmetric({-10, 20}, 8, 0.0001));
    AssignmentFixture snpe = concat("snpe");
    set = snpe.assign();
    CHECK(only(set, "a") == encode_asymmetric({-10, 4}, 8, 0.01));
    CHECK(only(set, "b") == encode_asymmetric({1, 10}, 8, 0.01));
}

TEST_CASE("the least range may be named as the target's rules name it") {
    AssignmentFixture fixture = small_network();
    fixture.forget("x");
    fixture.count("x", {0, 0.001F});
    AssignmentOptions options;
    CHECK(only(fixture.assign(options), "x").max == 0.01);
    options.least_range_name = "current";
    CHECK(only(fixture.assign(options), "x").max == static_cast<double>(0.001F));
    options.least_range_name = "curent";
    CHECK(fixture.error(options) ==
          "--least-range: expected a number above 0 or one of classic, current, which "
          "target 'snpe' names, found 'curent' (did you mean 'current'?)");
}

TEST_CASE("a MatMul with one operand skipped and a HardSwish that ends at 1 are remarked") {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.input("v");
    fixture.node("MatMul", {"x", "v"}, {"m"});
    fixture.node("HardSwish", {"m"}, {"y"});
    fixture.count("x", {0, 1});
    fixture.count("v", {0, 1});
    fixture.count("m", {-5, 8});
    fixture.count("y", {-0.375F, 8});
    fixture.assign(with({"v: {skip: true}", "y: {range: [0, 1]}"}));
    CHECK(fixture.remarks == Names{"MatMul 'n0': operand 'x' has an encoding and 'v' has none: "
                                   "Qualcomm's backends take no product of "
                                   "integers and floats",
                                   "'y': its range ends at 1 though that of its input 'm' ends "
                                   "at 8.004, where a HardSwish is the input "
                                   "itself: these look like the ranges of a HardSigmoid"});
}

TEST_CASE("biases get entries where they are asked for: 32 bits at the scale of input times weight") {
    AssignmentFixture fixture = small_network();
    AssignmentOptions options;
    options.bias_bits = 32;
    EncodingSet set = fixture.assign(options);
    CHECK(names_of(set.parameters) == Names{"w", "b", "s"});
    const Encoding bias = only(set, "b");
    CHECK(bias.scale == only(set, "x").scale * only(set, "w").scale);
    CHECK(bias.bits == 32);
    CHECK(bias.offset == -2147483648);
    CHECK(bias.symmetric);
    CHECK(decision(fixture, "b").kind == Decision::Kind::bias);
    options.per_channel_weights = true;
    set = fixture.assign(options);
    const TensorEncoding& weight = *find_entry(set.parameters, "w");
    const TensorEncoding& channels = *find_entry(set.parameters, "b");
    REQUIRE(channels.encodings.size() == 2);
    CHECK(channels.axis == 0);
    CHECK(channels.encodings[1].scale == only(set, "x").scale * weight.encodings[1].scale);
    options = {};
    options.bias_bits = 8;
    CHECK(only(fixture.assign(options), "b") ==
          encode_asymmetric({static_cast<double>(0.1F), static_cast<double>(0.2F)}, 8, 0.01));
    options.bias_bits = 16;
    CHECK(fixture.error(options) ==
          "--bias-bits: expected one of 8, 32, which target 'snpe' takes, found 16");
    options.bias_bits = 32;
    options.overrides = parse_override("b: {skip: true}");
    CHECK(find_entry(fixture.assign(options).parameters, "b") == nullptr);
    CHECK(fixture.remarks.empty());
    options.overrides = parse_override("x: {skip: true}");
    CHECK(find_entry(fixture.assign(options).parameters, "b") == nullptr);
    CHECK(fixture.remarks ==
          Names{"'b': no encoding for this bias: the input or the weight of Conv 'n0' has none"});
}

TEST_CASE("the bias that a MatMul is fused with gets its entry too") {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.constant("w", {1, 2}, {1, 2});
    fixture.constant("b", {2}, {1, 3});
    fixture.node("MatMul", {"x", "w"}, {"m"});
    fixture.node("Add", {"m", "b"}, {"y"});
    fixture.count("x", {-1, 1});
    fixture.count("y", {-1, 1});
    CHECK(names_of(fixture.assign().parameters) == Names{"w"});
    AssignmentOptions options;
    options.bias_bits = 32;
    const EncodingSet set = fixture.assign(options);
    CHECK(only(set, "b").scale == only(set, "x").scale * only(set, "w").scale);
}
