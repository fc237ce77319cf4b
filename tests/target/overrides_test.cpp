#include "target/overrides.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

using namespace qcalib;

namespace {

std::string flag_error(const std::string& text) {
    return test::message_of<Error>([&] { parse_override(text); });
}

Override one(const std::string& text) {
    const std::vector<Override> overrides = parse_override(text);
    REQUIRE(overrides.size() == 1);
    return overrides.front();
}

std::vector<Override> pipeline(const std::string& text) {
    YamlFaults faults("p.yaml");
    std::vector<Override> overrides = parse_overrides(parse_yaml(text, "p.yaml"), "p.yaml", faults);
    faults.throw_if_any();
    return overrides;
}

std::string pipeline_error(const std::string& text) {
    return test::message_of<Error>([&] { pipeline(text); });
}

// The table of flags, then of a pipeline.
OverrideTable table(const std::vector<std::string>& flags, const std::string& yaml = "",
                    const std::string& target = "snpe") {
    std::vector<Override> overrides;
    if (!yaml.empty()) overrides = pipeline(yaml);
    for (const std::string& flag : flags) {
        for (const Override& parsed : parse_override(flag)) overrides.push_back(parsed);
    }
    return {overrides, target, false};
}

}  // namespace

TEST_CASE("a flag gives a name and its settings") {
    const Override step = one("/conv/Conv_output_0: {step: 0.125}");
    CHECK(step.pattern == "/conv/Conv_output_0");
    CHECK(step.step == 0.125);
    CHECK(step.source == Override::Source::command_line);
    CHECK_FALSE(step.target.has_value());
    const Override range = one("1590:{range: [-1, 2.5], bits: 16, symmetric: true}");
    CHECK(range.pattern == "1590");
    CHECK(range.range == Range{-1, 2.5});
    CHECK(range.bits == 16);
    CHECK(range.symmetric == true);
    CHECK(one("x: {skip: true}").skip == true);
    CHECK(one("y: {copy: 1583}").copy == "1583");
}

TEST_CASE("a flag's name may be a glob, have colons, blanks and braces, or be quoted") {
    CHECK(one("*conv*: {bits: 8}").pattern == "*conv*");
    CHECK(one("input.1:0: {bits: 8}").pattern == "input.1:0");
    CHECK(one("a {b}: {bits: 8}").pattern == "a {b}");
    CHECK(one("'a: b': {bits: 8}").pattern == "a: b");
    CHECK(one("\"t\\x41\": {bits: 8}").pattern == "tA");
    CHECK(one("&#%!: {bits: 8}").pattern == "&#%!");
}

TEST_CASE("a flag that is no override is an error that shows what one looks like") {
    for (const char* text : {"", "x", "x: 3", "{step: 1}", ": {step: 1}", "x {step: 1}"}) {
        CHECK(
            flag_error(text).find("--override: expected 'NAME: {step: 0.125}', with keys range, step, bits, "
                                  "symmetric, skip, copy, target, found '") == 0);
    }
    CHECK(flag_error("x: {step: 1").find("--override 'x: {step: 1':1:") == 0);
    CHECK(flag_error("x: {}").find(
              "override: expected one of range, step, bits, symmetric, skip, copy, target, found "
              "an empty map") != std::string::npos);
    CHECK(flag_error("'a'b': {bits: 8}").find("--override") == 0);
}

TEST_CASE("faults of a flag name the column, what was expected and the nearest key") {
    CHECK(flag_error("conv: {stp: 1}") ==
          "--override 'conv: {stp: 1}':1:8: override: unknown key 'stp': expected one of range, step, bits, "
          "symmetric, skip, copy, target (did you mean 'step'?)");
    CHECK(flag_error("x: {step: 0}") ==
          "--override 'x: {step: 0}':1:11: step: expected a number above 0, found '0'");
    CHECK(
        flag_error("x: {bits: 33, step: inf}") ==
        "--override 'x: {bits: 33, step: inf}':1:11: bits: expected a whole number from 2 to 32, found '33'\n"
        "--override 'x: {bits: 33, step: inf}':1:21: step: expected a number above 0, found 'inf'");
    CHECK(flag_error("x: {step: 1e-40}").find("step: expected a number from 1e-30 to 1e+30, found 1e-40") !=
          std::string::npos);
    CHECK(flag_error("x: {range: [2, 1]}")
              .find("range: expected two numbers [min, max], the first below the second") !=
          std::string::npos);
    CHECK(flag_error("x: {range: [1]}").find("found [1]") != std::string::npos);
    CHECK(flag_error("x: {range: [0, 1e39]}").find("both float32") != std::string::npos);
    CHECK(flag_error("x: {symmetric: yes}").find("symmetric: expected true or false, found 'yes'") !=
          std::string::npos);
}

TEST_CASE("settings that contradict each other are errors") {
    CHECK(flag_error("x: {range: [0, 1], step: 1}")
              .find(":1:26: step: expected one of range, step and copy, found range beside it") !=
          std::string::npos);
    CHECK(flag_error("x: {step: 1, copy: y}")
              .find("copy: expected one of range, step and copy, found step beside it") != std::string::npos);
    CHECK(flag_error("x: {skip: true, step: 1}").find("skip: expected nothing beside it, found step") !=
          std::string::npos);
    CHECK(flag_error("x: {skip: true, bits: 8}").find("skip: expected nothing beside it, found bits") !=
          std::string::npos);
    CHECK(flag_error("x: {copy: y, bits: 8}")
              .find("copy: expected nothing beside it, since it gives the whole") != std::string::npos);
}

TEST_CASE("scale is refused with the reason, and taken under a target, as the target means it") {
    CHECK(flag_error("x: {scale: 8}") ==
          "--override 'x: {scale: 8}':1:12: scale: expected `step`, the real value of one code, or scale "
          "under a "
          "target, as target: {tidl: {scale: 8}}: the word has opposite meanings in the field");
    const std::vector<Override> overrides =
        parse_override("x: {bits: 8, target: {tidl: {scale: 8}, snpe: {step: 2}}}");
    REQUIRE(overrides.size() == 3);
    CHECK_FALSE(overrides[0].target.has_value());
    CHECK(overrides[1].target == "tidl");
    CHECK(overrides[1].scale == 8);
    CHECK(OverrideTable(overrides, "tidl", true).of("x").step == 0.125);
    CHECK(OverrideTable(overrides, "tidl", false).of("x").step == 8);
    CHECK(OverrideTable(overrides, "snpe", false).of("x").step == 2);
    CHECK_FALSE(OverrideTable(overrides, "qnn", false).of("x").step.has_value());
    CHECK(OverrideTable(overrides, "qnn", false).of("x").bits == 8);
    CHECK(flag_error("x: {target: {tidl: {scale: 8, step: 1}}}")
              .find("scale: expected one of range, step, scale and copy, found step beside it") !=
          std::string::npos);
    CHECK(flag_error("x: {target: {tidl: 8}}")
              .find("override for a target: expected a map with range, step, scale") != std::string::npos);
    CHECK(flag_error("x: {target: tidl}").find("target: expected a map of maps, found 'tidl'") !=
          std::string::npos);
}

TEST_CASE("a pipeline's overrides are a map, or a list of maps; each remembers its place") {
    const std::vector<Override> map = pipeline("conv1: {step: 0.5}\n'blk*':\n  bits: 16\n");
    REQUIRE(map.size() == 2);
    CHECK(map[0].place == "p.yaml:1:1");
    CHECK(map[1].pattern == "blk*");
    CHECK(map[1].place == "p.yaml:2:1");
    CHECK(map[1].source == Override::Source::pipeline);
    const std::vector<Override> list = pipeline("- x: {bits: 8}\n- x: {bits: 16}\n  y: {skip: true}\n");
    REQUIRE(list.size() == 3);
    CHECK(list[1].bits == 16);
    CHECK(list[2].place == "p.yaml:3:3");
}

TEST_CASE("all faults of a pipeline's overrides are reported at once") {
    CHECK(pipeline_error("x: {stp: 1}\ny: 3\nx: {bits: 8}\n") ==
          "p.yaml:1:5: override: unknown key 'stp': expected one of range, step, bits, symmetric, skip, "
          "copy, target "
          "(did you mean 'step'?)\n"
          "p.yaml:2:4: override: expected a map with range, step, bits, symmetric, skip, copy, target, found "
          "'3'\n"
          "p.yaml:3:1: overrides: 'x' is given twice; make it a list of maps where the order matters");
    CHECK(pipeline_error("just text").find("p.yaml:1:1: overrides: expected a map from names or globs") == 0);
    CHECK(pipeline_error("- 3").find("p.yaml:1:3: overrides: expected a map from names or globs") == 0);
    CHECK(pipeline_error("[a, b]: {bits: 8}").find("overrides: expected the name of a tensor or a glob") !=
          std::string::npos);
}

TEST_CASE("the command line goes before a pipeline, a name before globs, the later before the earlier") {
    CHECK(table({"*: {bits: 8}"}, "x: {bits: 16}").of("x").bits == 8);
    CHECK(table({"x: {bits: 16}", "*: {bits: 8}"}).of("x").bits == 16);
    CHECK(table({"x*: {bits: 16}", "*: {bits: 8}"}).of("x").bits == 8);
    CHECK(table({"x: {bits: 16}", "x: {bits: 8}"}).of("x").bits == 8);
    CHECK(table({"x: {target: {snpe: {bits: 16}}}", "x: {bits: 8}"}).of("x").bits == 16);
    CHECK(table({"x: {bits: 16}"}).of("y").empty());
}

TEST_CASE("a weaker override adds what a stronger one leaves open") {
    const OverrideTable both = table({"*: {bits: 16, step: 1}", "x: {range: [0, 1]}"});
    CHECK(both.of("x").range == Range{0, 1});
    CHECK_FALSE(both.of("x").step.has_value());
    CHECK(both.of("x").bits == 16);
    CHECK(both.of("x").from == std::vector<std::size_t>{1, 0});
    CHECK(both.of("y").step == 1);
    CHECK(both.of("x", 1).step == 1);
}

TEST_CASE("skip and copy say all: what is stronger takes their place, what is weaker adds nothing") {
    const OverrideTable stronger = table({"*: {skip: true}", "x: {bits: 16}"});
    CHECK_FALSE(stronger.of("x").skip);
    CHECK(stronger.of("x").bits == 16);
    CHECK(stronger.of("y").skip);
    const OverrideTable weaker = table({"*: {bits: 16}", "x: {copy: y}"});
    CHECK(weaker.of("x").copy == "y");
    CHECK_FALSE(weaker.of("x").bits.has_value());
    CHECK(weaker.of("x").from == std::vector<std::size_t>{1});
    const OverrideTable undone = table({"*: {skip: true}", "x: {skip: false}"});
    CHECK_FALSE(undone.of("x").skip);
    CHECK(undone.of("x").from == std::vector<std::size_t>{1});
}

TEST_CASE("a glob makes no tensor a copy of itself") {
    const OverrideTable copies = table({"*: {copy: x}"});
    CHECK(copies.of("y").copy == "x");
    CHECK(copies.of("x").empty());
    CHECK(table({"x: {copy: x}"}).of("x").copy == "x");
}

TEST_CASE("names that are no tensors are errors that offer the nearest") {
    const std::vector<std::string> names = {"conv1", "conv2", "relu"};
    const auto error = [&](const std::string& flag) {
        return test::message_of<Error>([&] { table({flag}).check_names(names); });
    };
    CHECK(error("con1: {bits: 8}") ==
          "--override: no tensor of the model matches 'con1' (did you mean 'conv1'?)");
    CHECK(error("pool*: {bits: 8}") == "--override: no tensor of the model matches 'pool*'");
    CHECK(error("relu: {copy: conv3}")
              .find("--override: 'relu': copy: expected a tensor of the model, found 'conv3' "
                    "(did you mean 'conv") == 0);
    CHECK(error("conv?: {copy: relu}").empty());
}
