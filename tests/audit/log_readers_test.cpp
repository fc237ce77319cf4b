#include <doctest/doctest.h>

#include "audit/log_reader.h"
#include "audit/printed_number.h"
#include "audit/tensor_names.h"
#include "audit_fixture.h"
#include "base/error.h"
#include "support/temporary_folder.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

const std::string heading = "[INFO] Setting activation for layer: Conv_6 and buffer: 1572\n";
const std::string row =
    "[INFO] bw: 8, min: -17.530067, max: 12.271047, delta: 0.116867, offset: -150.000000\n";

void check_row(const ConverterReport& report) {
    REQUIRE(report.tensors.size() == 1);
    CHECK(report.tensors[0].name == "1572");
    CHECK(report.tensors[0].layer == "Conv_6");
    REQUIRE(report.tensors[0].encodings.size() == 1);
    const FoundEncoding& encoding = report.tensors[0].encodings[0];
    CHECK(encoding.bits == 8);
    CHECK(encoding.min.value == -17.530067);
    CHECK(encoding.max.value == 12.271047);
    CHECK(encoding.offset->value == -150);
    CHECK(encoding.min.half_unit == doctest::Approx(5e-7).epsilon(1e-9));
}

}  // namespace

TEST_CASE("printed numbers know half a unit of their last digit") {
    const auto half_unit = [](std::string_view text) { return parse_printed_number(text)->half_unit; };
    CHECK(half_unit("-17.530067") == doctest::Approx(5e-7));
    CHECK(half_unit("100000.000000") == doctest::Approx(5e-7));
    CHECK(half_unit("12") == doctest::Approx(0.5));
    CHECK(half_unit("1.526e-05") == doctest::Approx(5e-9));
    CHECK(half_unit("2.5E+3") == doctest::Approx(50));
    CHECK(parse_printed_number("-0.000000")->value == 0);
    CHECK_FALSE(std::signbit(parse_printed_number("-0.000000")->value));
    CHECK(std::isnan(parse_printed_number("nan")->value));
    CHECK(parse_printed_number("-inf")->value < 0);
    for (const char* text : {"", "-", "1.5x", "0x10", "1,5", "--1", "1e999"})
        CHECK_FALSE(parse_printed_number(text));
}

TEST_CASE("numbers are equal within half a printed unit and two float32 spacings of the larger end") {
    const PrintedNumber printed = *parse_printed_number("100000.000000");
    CHECK(equal_as_printed(100000.0 + 2 * 0.0078125, printed, 100000));
    CHECK_FALSE(equal_as_printed(100000.0 + 2.1 * 0.0078125, printed, 100000));
    const PrintedNumber small = *parse_printed_number("0.500000");
    CHECK(equal_as_printed(0.5000005, small, 0.5));
    CHECK_FALSE(equal_as_printed(0.5000008, small, 0.5));
}

TEST_CASE("a pair of lines of snpe-dlc-quantize is a tensor, whatever stands before and between") {
    check_row(report_of_log(heading + row));
    check_row(report_of_log("2021-12-07 10:00:00,123 " + heading + "  12:00 | " + row));
    check_row(
        report_of_log(heading + "[2] QnnDsp Setting graph 256 vtcm_mb 4\nStarting assembler.\n\n" + row));
    std::string crlf = heading + row;
    for (std::size_t at = 0; (at = crlf.find('\n', at)) != std::string::npos; at += 2) crlf.insert(at, "\r");
    check_row(report_of_log(crlf));
    check_row(report_of_log("\xef\xbb\xbf\x1b[0;32m" + heading + "\x1b[0m" + row));
    check_row(report_of_log("10 %\r20 %\r" + heading + row));
}

TEST_CASE("a log that a Windows shell wrote in UTF-16 is read") {
    const std::string text = heading + row;
    std::string little = "\xff\xfe";
    std::string big = "\xfe\xff";
    for (const char c : text) {
        little += std::string{c, '\0'};
        big += std::string{'\0', c};
    }
    check_row(report_of_log(little));
    check_row(report_of_log(big));
}

TEST_CASE("names of layers and buffers may hold blanks and the words of the line") {
    const ConverterReport report =
        report_of_log("Setting activation for layer: a and buffer: b and buffer: /c d/e:0\n" + row);
    REQUIRE(report.tensors.size() == 1);
    CHECK(report.tensors[0].layer == "a and buffer: b");
    CHECK(report.tensors[0].name == "/c d/e:0");
}

TEST_CASE("a pair without its second line is left out with a remark that names the line") {
    std::vector<std::string> remarks;
    ConverterReport report = report_of_log(heading + "other\n" + heading + row, &remarks);
    check_row(report);
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].starts_with("x.log:1: expected the range of '1572'"));

    remarks.clear();
    report = report_of_log(heading + row + "Setting activation for layer: a and buffer: b\n", &remarks);
    check_row(report);
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].starts_with("x.log:3: "));

    remarks.clear();
    report = report_of_log(row + heading + row, &remarks);
    check_row(report);
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].starts_with("x.log:1: expected 'Setting activation"));
}

TEST_CASE("a log cut off at any byte gives the pairs that are whole, and never a number that lost digits") {
    const std::string text = heading + row;
    for (std::size_t length = heading.size(); length <= text.size(); ++length) {
        CAPTURE(length);
        std::vector<std::string> remarks;
        const ConverterReport report = report_of_log(text.substr(0, length), &remarks);
        if (length + 1 >= text.size()) {
            check_row(report);
        } else {
            CHECK(report.tensors.empty());
            CHECK(remarks.size() == 1);
            for (const std::string& remark : remarks) CHECK(remark.starts_with("x.log:"));
        }
    }
}

TEST_CASE("of a buffer that is set twice the later range holds, and a difference is remarked") {
    std::vector<std::string> remarks;
    check_row(report_of_log(heading + row + heading + row, &remarks));
    CHECK(remarks.empty());
    const std::string other = "bw: 8, min: 0.000000, max: 1.000000, delta: 0.003922, offset: 0.000000\n";
    check_row(report_of_log(heading + other + heading + row, &remarks));
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].starts_with("x.log:3: '1572' is -17.53"));
    CHECK(remarks[0].find("at x.log:1") != std::string::npos);
}

TEST_CASE("a step that is printed as zero is computed from both ends") {
    const ConverterReport report = report_of_log(
        heading + "bw: 16, min: -0.010000, max: 0.020000, delta: 0.000000, offset: -21845.000000\n");
    REQUIRE(report.tensors.size() == 1);
    CHECK(report.tensors[0].encodings[0].step() == doctest::Approx(0.03 / 65535));
    CHECK(fault_of(report.tensors[0].encodings[0]).empty());
}

TEST_CASE("encodings no quantizer can use are told with what is wrong") {
    const auto fault = [](const std::string& fields) {
        const ConverterReport report = report_of_log(heading + "bw: " + fields + "\n");
        REQUIRE(report.tensors.size() == 1);
        return fault_of(report.tensors[0].encodings[0]);
    };
    CHECK(fault("8, min: -41.420000, max: 7.710000, delta: 0.192667, offset: -215.000000").empty());
    CHECK(fault("0, min: 0.000000, max: 1.000000, delta: 0.003922, offset: 0.000000").starts_with("0 bits"));
    CHECK(fault("8, min: nan, max: 1.000000, delta: 0.003922, offset: 0.000000").find("finite") !=
          std::string::npos);
    CHECK(fault("8, min: 0.000000, max: inf, delta: inf, offset: 0.000000").find("finite") !=
          std::string::npos);
    CHECK(fault("8, min: 2.000000, max: 1.000000, delta: 0.1, offset: 0.0").find("above") !=
          std::string::npos);
    CHECK(fault("8, min: 0.000000, max: 0.000000, delta: 0.0, offset: 0.0").find("zero") !=
          std::string::npos);
    CHECK(
        fault("8, min: -1.000000, max: 1.000000, delta: 0.007843, offset: 128.0").starts_with("offset 128"));
    CHECK(fault("8, min: -1.000000, max: 1.000000, delta: 0.007843, offset: -300.0")
              .starts_with("offset -300"));
    CHECK(fault("8, min: -1.000000, max: 1.000000, delta: 0.007843, offset: -10.0").find("contradicts") !=
          std::string::npos);
}

TEST_CASE("tables of dlc-info 2.x are read: per tensor, per channel, signed storage, each tensor once") {
    std::vector<std::string> remarks;
    const ConverterReport report = report_of_log(
        "| 0 | Softmax_1 | Softmax | x (data type: Float_32; tensor dimension: [1,8]; tensor type: "
        "APP_WRITE) | a |\n"
        "| | | | val_353 (data type: uFxp_8; tensor dimension: [1,8]; tensor type: NATIVE) | |\n"
        "| | | | val_353 encoding : bitwidth 8, min 0.0, max 0.996093750000, scale 0.00390625, offset 0.0 | "
        "|\n"
        "lm_head.weight (data type: sFxp_8; tensor dimension: [151936,1024]; tensor type: STATIC)\n"
        "lm_head.weight encoding for channel_0: bitwidth 8, min -0.117441192269, max 0.116523683071, scale "
        "0.000917509315, offset 0.0\n"
        "axis-quant: axis: 0, num_elements: 3840 (above encoding is only for the first (channel_0) of 3840 "
        "channels)\n"
        "val_353 encoding : bitwidth 8, min 0.0, max 0.5, scale 0.001960784314, offset 0.0\n",
        &remarks);
    REQUIRE(report.tensors.size() == 3);
    CHECK(report.tensors[0].name == "val_353");
    CHECK(report.tensors[0].kind == FoundTensor::Kind::activation);
    CHECK(report.tensors[0].layer == "Softmax_1");
    CHECK(report.tensors[0].encodings[0].max.value == 0.99609375);
    CHECK(report.tensors[0].encodings[0].min.half_unit < 1e-11);
    const FoundTensor& weight = report.tensors[1];
    CHECK(weight.kind == FoundTensor::Kind::parameter);
    CHECK(weight.channels == 3840);
    REQUIRE(weight.encodings.size() == 1);
    CHECK(weight.encodings[0].offset->value == -128);
    CHECK(fault_of(weight.encodings[0]).empty());
    CHECK(report.tensors[2].name == "x");
    CHECK(report.tensors[2].encodings.empty());
    CHECK(report.shows_parameters);
}

TEST_CASE("weights of dlc-info 1.x belong to the layer of their row") {
    const ConverterReport report = report_of_log(
        "| 3 | Conv_6 | convolutional | image | 1572 | 1x2x3 | A D | weight encoding: min -0.029826, max "
        "0.029826, "
        "delta 0.000000, offset -2147483648.000000 bitwidth 32 |\n");
    REQUIRE(report.tensors.size() == 1);
    CHECK(report.tensors[0].name == "Conv_6:weight");
    CHECK(report.tensors[0].role == "weight");
    CHECK(report.tensors[0].encodings[0].bits == 32);
    CHECK(fault_of(report.tensors[0].encodings[0]).empty());
}

TEST_CASE("what converters and Quantizer V2 say of a whole run is read") {
    const ConverterReport report = report_of_log(
        "2023-01-01 10:00:00,123 - 235 - INFO - Processing user provided quantization encodings:\n"
        "2023-01-01 10:00:00,124 - 240 - WARNING - Can't simplify the model when custom ops or quantization "
        "overrides "
        "are specified, converting without simplification.\n"
        "2023-01-01 10:00:01,000 - 235 - INFO - Processed 0 quantization encodings\n"
        "INFO_CONVERSION_SUCCESS: Conversion completed successfully\n"
        "[MISSING ENC.   ] 271 of 1117 (24%) tensors were missing encodings.\n"
        "  [PROPAGATED   ] 135 of 271 (50%) tensors had an encoding propagated to them.\n"
        "  [FP16 FALLBACK] 136 of 271 (50%) tensors were assumed to be fp16.\n"
        "[WARN: FP FALL] conv.bias missing encoding, assumed type f16\n");
    REQUIRE(report.processed);
    CHECK(*report.processed == 0);
    CHECK(report.processed_where == "x.log:3");
    CHECK(report.overrides_asked);
    CHECK(report.converted);
    CHECK(report.missing_encodings == 271);
    CHECK(report.float_fallbacks == 136);
    REQUIRE(report.tensors.size() == 1);
    CHECK(report.tensors[0].name == "conv.bias");
    CHECK(report.tensors[0].fell_back);
    CHECK(report.notes.size() == 4);
    for (const std::string& note : report.notes) CHECK(note.starts_with("x.log:"));
}

TEST_CASE("a file that says nothing of encodings is an error that names it and what was expected") {
    const TemporaryFolder folder;
    write_unsynced(folder / "plain.log", "hello\nworld\n");
    ConverterReport report;
    std::vector<std::string> remarks;
    const std::string message =
        message_of<Error>([&] { read_converter_output(folder / "plain.log", report, remarks); });
    CHECK(message.starts_with((folder / "plain.log").string() + ": expected a log of snpe-dlc-quantize"));
    write_unsynced(folder / "empty.log", "");
    CHECK(message_of<Error>([&] { read_converter_output(folder / "empty.log", report, remarks); }).size() >
          10);
}

TEST_CASE("each reader says what it reads") {
    std::vector<std::string> names;
    for (const LogReader* reader : log_readers()) {
        CHECK(reader->summary().size() > 40);
        CHECK(std::find(names.begin(), names.end(), reader->name()) == names.end());
        names.push_back(reader->name());
    }
}

TEST_CASE("suffixes of converters and sanitised names lead to the model's names") {
    const std::vector<std::string> names = {
        "linear_99", "/norm1/norm.12/Constant_1_output_0", "a.b", "a/b", "7", "x"};
    const NameMatcher matcher(names);
    CHECK(matcher.match("linear_99") == 0);
    CHECK(matcher.match("linear_99_fc") == 0);
    CHECK(matcher.match("linear_99_permute.nchw") == 0);
    CHECK(matcher.match("_norm1_norm_12_Constant_1_output_0") == 1);
    CHECK(matcher.match("_norm1_norm_12_Constant_1_output_0_nfc") == 1);
    CHECK(matcher.match("_7") == 4);
    CHECK(matcher.match("x:0") == 5);
    CHECK(matcher.match("a.b") == 2);
    CHECK_FALSE(matcher.match("a_b"));
    CHECK_FALSE(matcher.match("y"));
    CHECK_FALSE(matcher.match("_fc"));
    CHECK_FALSE(matcher.match(""));
}
