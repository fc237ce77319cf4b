#include "audit/audit.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "audit_fixture.h"
#include "base/files.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// The log of the public HardSwish report.
const std::string hardswish_log =
    "[INFO] Setting activation for layer: image and buffer: image\n"
    "[INFO] bw: 8, min: 0.000000, max: 1.000000, delta: 0.003922, offset: 0.000000\n"
    "[INFO] Setting activation for layer: Conv_6 and buffer: 1572\n"
    "[INFO] bw: 8, min: -17.530067, max: 12.271047, delta: 0.116867, offset: -150.000000\n"
    "[INFO] Setting activation for layer: Add_11_Hswish and buffer: 1583\n"
    "[INFO] bw: 8, min: -0.359582, max: 17.979096, delta: 0.071916, offset: -5.000000\n"
    "[INFO] Setting activation for layer: Conv_24 and buffer: 1590\n"
    "[INFO] bw: 8, min: -18.765767, max: 4.577016, delta: 0.091540, offset: -205.000000\n"
    "[INFO] Setting activation for layer: Relu_25 and buffer: 1591\n"
    "[INFO] bw: 8, min: 0.000000, max: 5.760509, delta: 0.022590, offset: 0.000000\n"
    "[INFO] Setting activation for layer: GlobalAveragePool_29 and buffer: 1595\n"
    "[INFO] bw: 8, min: 0.000000, max: 2.837885, delta: 0.011129, offset: 0.000000\n";

GivenFile hardswish_file() {
    GivenFile given;
    given.add("1572", -17.530067443847656, 12.27104663848877)
        .add("1583", -0.3967282474040985, 12.248984336853027)
        .add("1591", 0.0, 5.7605085372924805);
    return given;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

bool any_contains(const std::vector<std::string>& texts, const std::string& part) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](const std::string& text) { return contains(text, part); });
}

// What one row comes to for one entry.
AuditResult one(double given_min, double given_max, double min, double max, int bits = 8) {
    GivenFile given;
    given.add("t", given_min, given_max, bits);
    return audit_of(given, log_row("Conv_1", "t", bits, min, max));
}

}  // namespace

TEST_CASE("the HardSwish report: six findings, their statuses and causes") {
    GivenFile given = hardswish_file();
    const AuditResult result = audit_of(given, hardswish_log);
    REQUIRE(result.findings.size() == 6);
    CHECK(status_of(result, "image") == "missing");
    CHECK(status_of(result, "1572") == "applied");
    CHECK(status_of(result, "1583") == "recomputed");
    CHECK(status_of(result, "1590") == "missing");
    CHECK(status_of(result, "1591") == "applied");
    CHECK(status_of(result, "1595") == "missing");
    CHECK(contains(cause_of(result, "1583"), "fused HardSwish (layer 'Add_11_Hswish')"));
    CHECK(contains(cause_of(result, "1583"), "17.9791 is above the producer's maximum 12.27105 ('1572')"));
    CHECK(contains(cause_of(result, "1583"), "unclipped data"));
    CHECK(contains(cause_of(result, "1590"), "before Relu '1591', which has an entry"));
    CHECK(contains(cause_of(result, "image"), "input of the model"));
    CHECK(contains(find(result, "1590")->advice, "0 to 5.760509"));
    CHECK(find(result, "1583")->steps.value() == doctest::Approx(115.547).epsilon(1e-5));
    CHECK_FALSE(find(result, "1583")->close);
    CHECK(result.causes.empty());
    CHECK(result.objections());
    CHECK(any_contains(result.notes, "the file has no parameters"));
    CHECK(any_contains(result.notes, "--static_min_max"));
}

TEST_CASE("inner tensors of the fused HardSwish are unused, and told into what they went") {
    GivenFile given = hardswish_file();
    given.add("1575", 0, 6).add("1582", 0, 6);
    const AuditResult result = audit_of(given, hardswish_log);
    for (const char* tensor : {"1575", "1582"}) {
        CHECK(status_of(result, tensor) == "unused");
        CHECK(contains(cause_of(result, tensor), "fused into Hswish, layer 'Add_11_Hswish' (output '1583')"));
    }
}

TEST_CASE("an entry under the name of a layer is told the tensor's name") {
    GivenFile given = hardswish_file();
    given.add("Conv_24", -18, 5);
    const AuditResult result = audit_of(given, hardswish_log);
    CHECK(status_of(result, "Conv_24") == "unused");
    CHECK(contains(cause_of(result, "Conv_24"), "name of a node"));
    CHECK(find(result, "Conv_24")->advice == "call it '1590'");
    CHECK(status_of(result, "1590") == "missing");
}

TEST_CASE("entries under names with a converter's suffix, or misspelt, are told the right name") {
    GivenFile given;
    given.add("linear_99_fc", -1, 1).add("/conv1/Conv_outptu_0", -1, 1).add("input.1:0", 0, 1);
    const AuditResult result = audit_of(
        given, log_row("a", "linear_99", 8, 0, 2.55) + log_row("b", "/conv1/Conv_output_0", 8, 0, 2.55) +
                   log_row("c", "input.1", 8, 0, 2.55) + log_row("d", "other", 8, 0, 2.55));
    CHECK(status_of(result, "linear_99_fc") == "unused");
    CHECK(find(result, "linear_99_fc")->advice == "call it 'linear_99'");
    CHECK(find(result, "/conv1/Conv_outptu_0")->advice == "did you mean '/conv1/Conv_output_0'?");
    CHECK(find(result, "input.1:0")->advice == "call it 'input.1'");
    CHECK(status_of(result, "linear_99") == "missing");
}

TEST_CASE("a range off the grid is nudged: both ends by the same amount, at most half a step") {
    // 255 steps of 0.01; zero lies 100.4 steps above the lower end.
    const AuditResult result = one(-1.004, 1.546, -1.0, 1.55);
    CHECK(status_of(result, "t") == "nudged");
    CHECK(find(result, "t")->steps.value() == doctest::Approx(0.4).epsilon(1e-6));
    CHECK_FALSE(result.objections());
    CHECK(status_of(one(-1.004, 1.546, -1.01, 1.54), "t") == "recomputed");
    CHECK(status_of(one(-1.004, 1.546, -1.0, 1.549), "t") == "recomputed");
}

TEST_CASE("an offset halfway between two integers may have been rounded to either") {
    const double step = 1.0 / 64;
    const AuditResult away = one(-126.5 * step, 128.5 * step, -127 * step, 128 * step);
    const AuditResult even = one(-126.5 * step, 128.5 * step, -126 * step, 129 * step);
    CHECK(status_of(away, "t") == "nudged");
    CHECK(status_of(even, "t") == "nudged");
    CHECK(status_of(one(-126.5 * step, 128.5 * step, -125 * step, 130 * step), "t") == "recomputed");
}

TEST_CASE("a range that is widened to zero or to the least range was taken, but is not as given") {
    const AuditResult zero = one(0.5, 2.55, 0, 2.55);
    CHECK(status_of(zero, "t") == "recomputed");
    CHECK(contains(cause_of(zero, "t"), "taken, but widened to contain zero"));
    const AuditResult least = one(0, 0.001, 0, 0.01);
    CHECK(contains(cause_of(least, "t"), "least range, 0.01"));
    CHECK(contains(cause_of(one(0, 0.00001, 0, 0.0001), "t"), "least range, 0.0001"));
}

TEST_CASE("a range within two steps is close") {
    const AuditResult near = one(-1.0, 1.55, -1.01, 1.555);
    CHECK(status_of(near, "t") == "recomputed");
    CHECK(find(near, "t")->close);
    CHECK(contains(cause_of(near, "t"), "close: "));
    CHECK_FALSE(find(one(-1.0, 1.55, -1.03, 1.55), "t")->close);
}

TEST_CASE("another width than given is told, with the flag that decides it") {
    GivenFile given;
    given.add("t", -1.0, 1.55, 16);
    const AuditResult result = audit_of(given, log_row("Conv_1", "t", 8, -1.0, 1.55));
    CHECK(status_of(result, "t") == "recomputed");
    CHECK(contains(cause_of(result, "t"), "8 bits where 16 were given"));
    CHECK(contains(find(result, "t")->advice, "--act_bitwidth 16"));
}

TEST_CASE("impossible encodings of the result and of the file are findings of their own") {
    GivenFile given;
    given.add("t", -1.0, 1.55).add("u", 0, 1);
    AuditInput input;
    const ConverterReport report = report_of_log(
        "Setting activation for layer: a and buffer: t\nbw: 8, min: nan, max: nan, delta: nan, offset: "
        "nan\n" +
        log_row("b", "u", 8, 0, 1) + log_row("c", "bad", 8, 0, 1));
    const Target target = load_target("snpe");
    input.given = &given.file();
    input.found = &report;
    input.target = &target;
    input.faults = {{"bad", 7, "expected min <= max, found 3 and 1"}};
    const AuditResult result = audit(input);
    CHECK(result.findings.size() == 3);
    CHECK(status_of(result, "t") == "impossible");
    CHECK(contains(cause_of(result, "t"), "x.log:1: ends nan and nan are not finite"));
    CHECK(status_of(result, "u") == "applied");
    CHECK(status_of(result, "bad") == "impossible");
    CHECK(cause_of(result, "bad") == "e.json:7: expected min <= max, found 3 and 1");
    CHECK(nlohmann::json::parse(to_json(result))["summary"]["impossible"] == 2);
}

TEST_CASE("weights of 32 bits are impossible, and offsets down to -255 are not") {
    GivenFile given;
    given.add("x", -41.42, 7.71);
    const AuditResult result = audit_of(
        given,
        log_row("c", "x", 8, -215 * 49.13 / 255, 40 * 49.13 / 255) +
            "| 3 | Conv_6 | convolutional | image | 1572 | 1x2x3 | A | weight encoding: min -0.029826, "
            "max 0.029826, delta 0.000000, offset -2147483648.000000 bitwidth 32 |\n");
    CHECK(status_of(result, "Conv_6:weight") == "impossible");
    CHECK(contains(cause_of(result, "Conv_6:weight"), "a weight of 32 bits: expected 4, 8, 16"));
    CHECK(find(result, "x")->found->offset == -215);
    CHECK(status_of(result, "x") == "nudged");
}

TEST_CASE("where no row has the range given, a missing --override_params is the cause that comes first") {
    GivenFile given;
    given.add("a", -1, 1.55).add("b", 0, 3).add("c", 0, 4, 8);
    const std::string rows = log_row("Conv_1", "a", 8, -1.5, 1.8) + log_row("Relu_2", "b", 8, 0, 3.5) +
                             log_row("Relu_3", "c", 8, 0, 5.5);
    AuditResult result = audit_of(given, rows);
    REQUIRE(result.causes.size() == 1);
    CHECK(contains(result.causes[0], "none of the 3 ranges given is in the result"));
    CHECK(contains(result.causes[0],
                   "snpe-dlc-quantize --input_dlc MODEL.dlc --input_list LIST --override_params"));
    result = audit_of(given, "snpe-dlc-quantize --override_params\n" + rows);
    REQUIRE(result.causes.size() == 1);
    CHECK(contains(result.causes[0], "though --override_params was given"));
    result = audit_of(given, rows + log_row("Relu_2", "b", 8, 0, 3));
    CHECK(result.causes.empty());
}

TEST_CASE("all entries of another width: the quantizer's flag is the cause") {
    GivenFile given;
    given.add("a", -1, 1.55, 16).add("b", 0, 3, 16);
    const AuditResult result = audit_of(given, log_row("c", "a", 8, -1, 1.55) + log_row("d", "b", 8, 0, 3));
    REQUIRE(result.causes.size() == 1);
    CHECK(contains(result.causes[0], "--override_params --act_bitwidth 16"));
}

TEST_CASE("a converter that processed 0 encodings, and a log without rows, are said first") {
    GivenFile given = hardswish_file();
    AuditResult result = audit_of(given, "INFO - Processed 0 quantization encodings\n" + hardswish_log);
    REQUIRE_FALSE(result.causes.empty());
    CHECK(contains(result.causes[0], "x.log:1: the converter processed 0 encodings of 3"));

    result = audit_of(given, "INFO_CONVERSION_SUCCESS: Conversion completed successfully\n");
    REQUIRE(result.causes.size() == 1);
    CHECK(contains(result.causes[0], "no quantized tensors: only the conversion ran"));
    CHECK(result.count(Status::unused) == 3);

    result = audit_of(given, "INFO - Processed 2 quantization encodings\n" + hardswish_log);
    CHECK(result.causes.empty());
    CHECK(any_contains(result.notes, "processed 2 encodings, and the file has 3 activations"));
}

TEST_CASE("a file of few entries and float fallback are causes of a whole run") {
    GivenFile given;
    given.add("t0", 0, 1);
    std::string rows;
    for (int i = 0; i < 12; ++i) rows += log_row("Conv", fmt::format("t{}", i), 8, 0, 1);
    AuditResult result = audit_of(given, rows);
    REQUIRE(result.causes.size() == 1);
    CHECK(contains(result.causes[0], "entries for 1 of the 12 tensors"));

    result = audit_of(given,
                      "[MISSING ENC.   ] 271 of 1117 (24%) tensors were missing encodings.\n"
                      "[FP16 FALLBACK] 136 of 271 (50%) tensors were assumed to be fp16.\n"
                      "[WARN: FP FALL] conv.bias missing encoding, assumed type f16\n");
    CHECK(contains(result.causes[0], "136 of 271 tensors without an entry were left in float16"));
    CHECK(status_of(result, "conv.bias") == "missing");
}

TEST_CASE("signed storage and channels that are not shown are no differences") {
    GivenFile given;
    std::vector<Range> channels(3840, Range{-0.117441192269, 0.116523683071});
    given.add_channels("lm_head.weight", channels, 8, Section::parameter);
    const std::string rows =
        "lm_head.weight (data type: sFxp_8; tensor dimension: [3840,1024]; tensor type: STATIC)\n"
        "lm_head.weight encoding for channel_0: bitwidth 8, min -0.117441192269, max 0.116523683071, scale "
        "0.000917509315, offset 0.0\n"
        "axis-quant: axis: 0, num_elements: 3840 (above encoding is only for the first (channel_0) of 3840 "
        "channels)\n";
    AuditResult result = audit_of(given, rows);
    CHECK(status_of(result, "lm_head.weight") == "applied");
    CHECK(find(result, "lm_head.weight")->found->offset == -128);

    GivenFile fewer;
    fewer.add_channels("lm_head.weight", {channels[0], channels[1]}, 8, Section::parameter);
    result = audit_of(fewer, rows);
    CHECK(status_of(result, "lm_head.weight") == "recomputed");
    CHECK(contains(cause_of(result, "lm_head.weight"), "3840 encodings where 2 were given"));
}

TEST_CASE("parameters are looked at only where the result shows them, and biases need no entry") {
    GivenFile given;
    given.add("x", 0, 1).add("w", -1, 1, 8, Section::parameter);
    AuditResult result = audit_of(given, log_row("x", "x", 8, 0, 1));
    CHECK(result.findings.size() == 1);
    CHECK(any_contains(result.notes, "show no parameters"));

    const std::string info =
        "x encoding : bitwidth 8, min 0.0, max 1.000000000000, scale 0.003921568627, offset 0.0\n"
        "v (data type: uFxp_8; tensor dimension: [4]; tensor type: STATIC)\n"
        "v encoding : bitwidth 8, min -1.003921568627, max 0.996078431373, scale 0.007843137255, offset "
        "-128.0\n"
        "b (data type: sFxp_32; tensor dimension: [4]; tensor type: STATIC)\n"
        "b encoding : bitwidth 32, min -1.000000000000, max 1.000000000000, scale 0.000000000466, offset "
        "0.0\n";
    result = audit_of(given, info);
    CHECK(status_of(result, "x") == "applied");
    CHECK(status_of(result, "w") == "unused");
    CHECK(status_of(result, "v") == "missing");
    CHECK(status_of(result, "b") == "no finding");
}

TEST_CASE("an entry in the wrong section is told so, where it was not used") {
    GivenFile given;
    given.add("x", 0, 1, 8, Section::parameter).add("y", 0, 1, 8, Section::parameter);
    const AuditResult result = audit_of(given, log_row("a", "x", 8, 0, 3) + log_row("b", "y", 8, 0, 1));
    CHECK(status_of(result, "x") == "unused");
    CHECK(contains(cause_of(result, "x"), "wrong section: it stands under param_encodings"));
    CHECK(find(result, "x")->advice == "move it to activation_encodings");
    CHECK(status_of(result, "y") == "applied");
}

TEST_CASE("copies that a converter inserts are compared with the entry of the tensor they are of") {
    GivenFile given;
    given.add("x", 0, 1).add("/a/b.c", 0, 2);
    const AuditResult result = audit_of(given, log_row("x", "x", 8, 0, 1) + log_row("t", "x.nchw", 8, 0, 1) +
                                                   log_row("u", "_a_b_c_nfc", 8, 0, 2));
    CHECK(result.findings.size() == 3);
    CHECK(status_of(result, "x.nchw") == "applied");
    CHECK(contains(cause_of(result, "x.nchw"), "a copy of 'x'"));
    CHECK(status_of(result, "/a/b.c") == "applied");
}

TEST_CASE("without a model, the first layers with the names of their buffers are inputs") {
    GivenFile given;
    given.add("z", 0, 1);
    AuditResult result = audit_of(given, log_row("a", "a", 8, 0, 1) + log_row("b", "b", 8, 0, 1) +
                                             log_row("Conv_1", "7", 8, 0, 1) + log_row("c", "c", 8, 0, 1));
    CHECK(contains(cause_of(result, "a"), "input of the model"));
    CHECK(contains(cause_of(result, "b"), "input of the model"));
    CHECK_FALSE(contains(cause_of(result, "7"), "input of the model"));
    CHECK_FALSE(contains(cause_of(result, "c"), "input of the model"));
    result = audit_of(given, log_row("a", "a", 8, 0, 1) + log_row("b", "b", 8, 0, 1));
    CHECK(contains(cause_of(result, "a"), "input of the model"));
    CHECK_FALSE(contains(cause_of(result, "b"), "input of the model"));
}

TEST_CASE("weights in a file without sections are not looked for where the result shows no weights") {
    GivenFile given;
    given.add("x", 0, 1, 8, Section::any)
        .add("conv.weight", -1, 1, 8, Section::any)
        .add_channels("onnx::Conv_1", {{-1, 1}, {-2, 2}}, 8, Section::any);
    const AuditResult result = audit_of(given, log_row("c", "x", 8, 0, 1));
    CHECK(result.findings.size() == 1);
}

TEST_CASE("what a user should know of a file's version, widths and biases is noted") {
    GivenFile given;
    given.add("x", 0, 1).add("conv.bias", -1, 1, 32, Section::parameter);
    given.file().version = "2.0.0";
    const AuditResult result = audit_of(given, log_row("c", "x", 8, 0, 1));
    CHECK(any_contains(result.notes, "version 2.0.0 of the file selects Quantizer V2"));
    CHECK(any_contains(result.notes, "--bias_bitwidth 32"));
    GivenFile plain;
    plain.add("x", 0, 1).add("conv.weight", -1, 1, 8, Section::parameter);
    CHECK_FALSE(any_contains(audit_of(plain, log_row("c", "x", 8, 0, 1)).notes, "--bias_bitwidth"));
}

TEST_CASE("JSON has exactly the keys it is documented with") {
    GivenFile given = hardswish_file();
    const auto json = nlohmann::json::parse(to_json(audit_of(given, hardswish_log)));
    CHECK(json.size() == 2);
    CHECK(json["summary"].size() == 6);
    CHECK(json["summary"]["missing"] == 3);
    for (const auto& finding : json["findings"]) {
        CHECK(finding.size() == 7);
        for (const char* key : {"tensor", "status", "given", "found", "steps", "cause", "advice"})
            CHECK(finding.contains(key));
    }
    CHECK(json["findings"][0]["given"].is_null());
    CHECK(json["findings"][1]["given"]["max"] == 12.27104663848877);
    CHECK(json["findings"][1]["found"]["bitwidth"] == 8);
}
