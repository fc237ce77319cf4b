#include "target/target.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "support/temporary_folder.h"

using namespace qcalib;

TEST_CASE("every file of configs/targets is built in under its own name, as it is on disk") {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(QCALIB_SOURCE_DIR "/configs/targets")) {
        if (entry.path().extension() == ".yaml") files.push_back(entry.path().stem().string());
    }
    std::sort(files.begin(), files.end());
    CHECK(builtin_target_names() == files);
    for (const std::string& name : files) {
        const Target built_in = load_target(name);
        const Target on_disk =
            load_target(name, std::string(QCALIB_SOURCE_DIR "/configs/targets/") + name + ".yaml");
        CHECK(built_in.name == name);
        CHECK(built_in.summary == on_disk.summary);
        CHECK(built_in.weight_rules.size() == on_disk.weight_rules.size());
        CHECK(built_in.skip_rules.size() == on_disk.skip_rules.size());
    }
}

TEST_CASE("the snpe target has the defaults of Qualcomm's TF quantizer") {
    const Target snpe = load_target("snpe");
    CHECK(snpe.default_method == "minmax");
    CHECK(snpe.default_formats == std::vector<std::string>{"snpe"});
    CHECK(snpe.least_range == 0.01);
    CHECK(snpe.rounding == Rounding::half_away);
    CHECK(snpe.activations.bits == 8);
    CHECK_FALSE(snpe.activations.symmetric);
    CHECK(snpe.weights.bits == 8);
    CHECK_FALSE(snpe.weights.symmetric);
    CHECK_FALSE(snpe.weights.per_channel);
    CHECK(snpe.weights.per_channel_symmetric);
    CHECK(snpe.weight_rule("Conv", 1)->channel_axis == 0);
    CHECK(snpe.weight_rule("ConvTranspose", 1)->channel_axis == 1);
    CHECK(snpe.weight_rule("ConvTranspose", 1)->per_channel == WeightRule::PerChannel::ungrouped);
    CHECK(snpe.weight_rule("Gemm", 1)->transposed_by == "transB");
    CHECK(snpe.weight_rule("MatMul", 0) != nullptr);
    CHECK(snpe.weight_rule("MatMul", 1) != nullptr);
    for (const char* op_type : {"Conv", "ConvTranspose", "Gemm"})
        CHECK(snpe.skip_rule(op_type, 2) != nullptr);
    for (std::size_t input = 1; input <= 4; ++input)
        CHECK(snpe.skip_rule("BatchNormalization", input) != nullptr);
    CHECK(snpe.skip_rule("Mul", 1) == nullptr);
}

TEST_CASE("an unknown target is an error that lists the targets and offers the nearest") {
    try {
        load_target("snep");
        FAIL("no error");
    } catch (const Error& error) {
        const std::string message = error.what();
        CHECK(message.find("target 'snep': expected one of ") == 0);
        CHECK(message.find("snpe") != std::string::npos);
        CHECK(message.find("(did you mean 'snpe'?)") != std::string::npos);
    }
}

TEST_CASE("a replacement is read from its file and must hold the target asked for") {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "mine.yaml";
    std::string text = read_text_file(QCALIB_SOURCE_DIR "/configs/targets/snpe.yaml");
    text.replace(text.find("least_range: 0.01 "), 18, "least_range: 0.0001 ");
    write_file(file, text);
    CHECK(load_target("snpe", file).least_range == 0.0001);
    CHECK_THROWS_WITH_AS(
        load_target("tidl", file),
        doctest::Contains(
            (file.string() + ": expected the rules of target 'tidl', found those of 'snpe'").c_str()),
        Error);
    CHECK_THROWS_WITH_AS(load_target("snpe", folder.path() / "none.yaml"), doctest::Contains("none.yaml"),
                         Error);
    write_file(file, "name: snpe\n");
    CHECK_THROWS_WITH_AS(
        load_target("snpe", file),
        doctest::Contains((file.string() + ":1:1: target: key 'summary' is missing").c_str()), Error);
}

TEST_CASE("every rule of every built-in target says its source") {
    for (const std::string& name : builtin_target_names()) {
        const Target target = load_target(name);
        CAPTURE(name);
        for (const WeightRule& rule : target.weight_rules) CHECK(rule.evidence.source.size() > 10);
        for (const SkipRule& rule : target.skip_rules) CHECK(rule.evidence.source.size() > 10);
        for (const FusionRule& rule : target.fusion_rules) CHECK(rule.evidence.source.size() > 10);
    }
    std::set<std::string_view> names;
    for (const Confidence confidence :
         {Confidence::verified, Confidence::documented, Confidence::reported, Confidence::assumed}) {
        CHECK(names.insert(name_of(confidence)).second);
    }
}
