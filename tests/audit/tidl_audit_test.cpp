#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "audit/log_reader.h"
#include "audit/tidl_line.h"
#include "audit/tidl_log.h"
#include "audit_fixture.h"
#include "base/error.h"
#include "base/text.h"
#include "format/tidl_params.h"
#include "support/temporary_folder.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// The run of two Clips that a user of TI's forum printed.
const std::string tidl_debug_lines =
    "Starting Layer # -    1\n"
    "  0  128.00000    0.00000  255.00000 1\n"
    "  1  256.00000    0.00000    1.00000 0\n"
    " 73  512.00000  -64.00000   64.00000 3\n";

const std::string tidl_layer_info = "0 0 input\n1 1 clip1\n2 73 out/Clip_output_0\n";

ConverterReport tidl_report(const std::vector<std::string>& texts,
                            std::vector<std::string>* remarks = nullptr) {
    ConverterReport report;
    std::vector<std::string> own;
    for (const std::string& text : texts)
        read_log(LogText("t.log", text), report, remarks != nullptr ? *remarks : own);
    return report;
}

GivenFile& add_tidl(GivenFile& given, const std::string& tensor, double min, double max, int bits,
                    bool is_signed) {
    FileEntry& entry = given.file().entries.emplace_back();
    entry.encoding.tensor = tensor;
    entry.encoding.encodings = {tidl_encoding(min, max, bits, is_signed)};
    entry.section = Section::activation;
    return given;
}

const Finding& finding_of(const AuditResult& result, const std::string& tensor) {
    for (const Finding& one : result.findings) {
        if (one.tensor == tensor) return one;
    }
    FAIL("no finding for " << tensor);
    return result.findings.front();
}

}  // namespace

TEST_CASE("the three debug lines of the two-Clip report have the right meaning") {
    const auto line = [](std::string_view text) { return *parse_tidl_line(text); };
    CHECK(tidl_words(line("0 128.00000 0.00000 255.00000 1")) ==
          "signed 8 bit at scale 128 (a multiplier: q = round(x * scale)): codes -128 to 127 stand for -1 to "
          "0.9921875; "
          "min and max, 0 to 255, are the untouched default of a data layer, no range: the scale of an input "
          "is 128 / "
          "2^ceil(log2(greatest magnitude of the calibration frames)), its codes always signed");
    CHECK(tidl_words(line("1 256.00000 0.00000 1.00000 0")) ==
          "unsigned 8 bit at scale 256 (a multiplier: q = round(x * scale)): codes 0 to 255 stand for 0 to "
          "0.9960938; min "
          "and max, 0 to 1, ask for just that scale");
    CHECK(tidl_words(line("73 512.00000 -64.00000 64.00000 3")) ==
          "signed 16 bit at scale 512 (a multiplier: q = round(x * scale)): codes -32768 to 32767 stand for "
          "-64 to "
          "63.99805; min and max, -64 to 64, ask for just that scale");
}

TEST_CASE("fixed-width fields may touch") {
    for (const char* text : {"73  512.00000-64.00000   64.00000 3", " 73  512.00000 -64.0000064.00000 3",
                             "73 512.00000-64.0000064.000003"}) {
        CAPTURE(text);
        const auto line = parse_tidl_line(text);
        REQUIRE(line);
        CHECK(line->data_id == 73);
        CHECK(line->scale.value == 512);
        CHECK(line->min.value == -64);
        CHECK(line->max.value == 64);
        CHECK(line->element_type == 3);
    }
    CHECK(parse_tidl_line("5 2.00000 -12345.67890 -0.00001 1")->max.value == -0.00001);
    CHECK(parse_tidl_line("5 1.00000 -340282346638528859811704183484516925440.00000 0.00000 6"));
    for (const char* text :
         {"", "5", "5 1.00000 2.00000 1", "5 1.0 2.0 3.0 1", "5 1.00000 2.00000 3.00000 9",
          "5 1.00000 2.00000 3.00000 x", "a 1.00000 2.00000 3.00000 1", "5 1.00000 2.00000 3.00000"})
        CHECK_FALSE(parse_tidl_line(text));
}

TEST_CASE("a scale coarser than its range is told in bits") {
    CHECK(*parse_tidl_line("5 128.00000 0.00000 1.00000 0")->coarser_by() == doctest::Approx(1));
    CHECK(*parse_tidl_line("5 56.38779 0.00000 4.09663 0")->coarser_by() ==
          doctest::Approx(0.14829).epsilon(1e-4));
    CHECK(*parse_tidl_line("5 512.00000 -1.00000 0.50000 1")->coarser_by() == doctest::Approx(-2));
    CHECK_FALSE(parse_tidl_line("0 128.00000 0.00000 255.00000 1")->coarser_by());
    CHECK_FALSE(parse_tidl_line("7 1.00000 0.00000 3.00000 6")->coarser_by());
}

TEST_CASE("names of data ids come from layer_info.txt, in whatever order the files are given") {
    for (const bool names_first : {false, true}) {
        const ConverterReport report = names_first ? tidl_report({tidl_layer_info, tidl_debug_lines})
                                                   : tidl_report({tidl_debug_lines, tidl_layer_info});
        REQUIRE(report.tensors.size() == 3);
        CHECK(report.tensors[0].name == "input");
        CHECK(report.tensors[2].name == "out/Clip_output_0");
        CHECK(report.tensors[2].encodings[0].bits == 16);
    }
    CHECK(tidl_report({tidl_debug_lines}).tensors[2].name == "data 73");
    CHECK(tidl_report({"0 0 12\n1 1 13\n2 73 1591\n", tidl_debug_lines}).tensors[2].name == "1591");
    CHECK_THROWS_AS(tidl_report({"3 4 5\n3 4 5\n"}), Error);
}

TEST_CASE("what TIDL made of given ranges is applied, coarser, of its own, missing or unused") {
    GivenFile given;
    add_tidl(given, "input", -1, 1, 8, true);
    add_tidl(given, "clip1", 0, 1, 8, false);
    add_tidl(given, "half", 0, 2, 8, false);
    add_tidl(given, "own", 0, 4, 8, false);
    add_tidl(given, "signed", 0, 1, 8, false);
    add_tidl(given, "wide", -64, 64, 8, true);
    add_tidl(given, "gone", -1, 1, 8, true);
    const ConverterReport report = tidl_report(
        {tidl_debug_lines +
             "2 64.00000 0.00000 2.00000 0\n3 100.00000 0.00000 2.56000 0\n4 128.00000 0.00000 1.00000 "
             "1\n5 2.00000 -64.00000 64.00000 1\n",
         "0 0 input\n1 1 clip1\n2 2 half\n3 3 own\n4 4 signed\n5 73 wide\n6 5 extra\n"});
    const AuditResult result = audit_of(given, report);
    CHECK(finding_of(result, "input").status == Status::applied);
    CHECK(finding_of(result, "clip1").status == Status::applied);
    CHECK(finding_of(result, "clip1").cause.find("unsigned 8 bit at scale 256") == 0);
    CHECK(finding_of(result, "half").status == Status::recomputed);
    CHECK(finding_of(result, "half")
              .cause.find("scale coarser than range by 1 bit: the range was taken, but the scale halved") ==
          0);
    CHECK(finding_of(result, "own")
              .cause.find("the range was not used: TIDL's own, 0 to 2.56, is finer by 0.64 bits") == 0);
    CHECK(
        finding_of(result, "signed").cause.find("scale coarser than range by 1 bit: its codes are signed") ==
        0);
    CHECK(finding_of(result, "wide").cause.find("16 bits where 8 were given") == 0);
    CHECK(finding_of(result, "gone").status == Status::unused);
    CHECK(finding_of(result, "extra").status == Status::missing);
    const std::string notes = join(result.notes, "\n");
    CHECK(notes.find("'input' (t.log:2): signed 8 bit at scale 128") != std::string::npos);
    CHECK(notes.find(
              "the input 'input' is coded at scale 128 (signed 8 bit), the Clip behind it, 'clip1', at 256 "
              "(unsigned 8 bit)") != std::string::npos);
    CHECK(notes.find("snpe") == std::string::npos);
}

TEST_CASE("tables of TIDL are read by their headings") {
    std::vector<std::string> remarks;
    const ConverterReport report =
        tidl_report({"LayerIdx,OutputDataName,LayerType,ActivationType,TensorScale,TensorZeroPoint,"
                     "MinTensorValue,MaxTensorValue\n"
                     "0,input,TIDL_DataLayer,0,128.0000000000,0,0.0000000000,1.0000000000\n"
                     "1,a,TIDL_ConvolutionLayer,1,64.0000000000,0,0.0000000000,4.0000000000\n"
                     "2,b,TIDL_ConvolutionLayer,0,512.0000000000,0,-64.0000000000,63.0000000000\n"
                     "3,c\n"},
                    &remarks);
    REQUIRE(report.tensors.size() == 3);
    CHECK(report.tensors[0].encodings[0].min.value == -1);
    CHECK(report.tensors[1].encodings[0].max.value == 4 - 1.0 / 64);
    CHECK(report.tensors[2].encodings[0].bits == 16);
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].find("t.log:5: expected a row of 8 cells") == 0);

    const std::string heading =
        "LayerId,meanDifference,maxDifference,meanOrigFloat,meanRelDifference,orgmax,quantizedMax,"
        "orgAtmaxDiff,quantizedAtMaxDiff,maxRelDifference,Scale,,,\n";
    const ConverterReport weights = tidl_report(
        {"5 7 conv_out\n",
         heading +
             "5,0.1,0.2,0.3,0.4,1.0,0.99,1,1,1,128.0,,,,1,2,3\n5,0.1,0.2,0.3,0.4,0.5,0.5,1,1,1,64.0,,,\n"});
    REQUIRE(weights.tensors.size() == 1);
    CHECK(weights.tensors[0].name == "conv_out.weights");
    CHECK(weights.tensors[0].role == "weight");
    CHECK(weights.tidl_weights.at("conv_out.weights").find("saturates from code 128 to 127") !=
          std::string::npos);
}

TEST_CASE("the parameter file TIDL wrote tells by its scales what it uses") {
    const TemporaryFolder folder;
    write_unsynced(
        folder / "w.prototxt",
        "num_layers: 1\nlayers { layer_name: 'a' layer_type: 'TIDL_ConvolutionLayer'\n outputs { min: 0 max: "
        "4.09663105 element_type: 0 scale: 56.387794494628906 }\n weights { min: -0.0083 max: 0.00886716694 "
        "element_type: 1 scale: 14435.275390625 } }\n");
    ConverterReport report;
    std::vector<std::string> remarks;
    read_converter_output(folder / "w.prototxt", report, remarks);
    REQUIRE(report.tensors.size() == 2);
    GivenFile given;
    add_tidl(given, "a", 0, 4.09663105, 8, false);
    add_tidl(given, "a.weights", -0.00886716694, 0.00886716694, 8, true);
    given.file().entries.back().section = Section::parameter;
    const AuditResult result = audit_of(given, report);
    CHECK(finding_of(result, "a")
              .cause.find("scale coarser than range by 0.15 bits: the range was taken, but the scale of an "
                          "output is that of the accumulator over a power of two") == 0);
    CHECK(finding_of(result, "a.weights").status == Status::applied);
}
