#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "format/reading.h"

using namespace qcalib;

TEST_CASE("the format of a dictionary file is recognised by its version and its keys") {
    const auto format_of = [](const std::string& head, const std::string& encoding) {
        const Reading reading = read_text("{" + head + "\"activation_encodings\": {\"t\": [" + encoding +
                                          "]}, \"param_encodings\": {}}");
        CHECK(reading.error.empty());
        return reading.file.format;
    };
    const std::string range = R"("bitwidth": 8, "min": -1.0, "max": 1.0)";
    CHECK(format_of("", "{" + range + "}") == "mqbench");
    CHECK(format_of("", "{" + range + R"(, "dtype": "int"})") == "snpe");
    CHECK(format_of("", "{" + range + R"(, "scale": 0.00784313725, "offset": -128})") == "snpe");
    CHECK(format_of("", "{" + range + R"(, "scale": 0.00784313725, "offset": 128})") == "ppq");
    for (const char* version : {"0.4.0", "0.5.0", "0.6.1"}) {
        CHECK(format_of(fmt::format("\"version\": \"{}\",", version), "{" + range + "}") ==
              fmt::format("aimet-{}", version));
    }
}

TEST_CASE("a range alone has the grid that SNPE computes") {
    // Numbers of a public report, and the row that the converter printed for them.
    const Reading reading = read_activations(
        R"("1572": [{"bitwidth": 8, "min": -17.530067443847656, "max": 12.27104663848877}],
           "1583": [{"bitwidth": 8, "min": -0.3967282474040985, "max": 12.248984336853027}],
           "1591": [{"bitwidth": 8, "min": 0.0, "max": 5.7605085372924805}])");
    REQUIRE(reading.error.empty());
    CHECK(reading.remarks.empty());
    CHECK(reading.file.format == "mqbench");
    CHECK(reading.encoding("1572").offset == -150);
    CHECK(reading.encoding("1572").min == -17.530067443847656);
    CHECK(reading.encoding("1572").max == 12.27104663848877);
    CHECK(std::abs(reading.encoding("1572").scale - 0.116867114) < 1e-9);
    CHECK(reading.encoding("1583").offset == -8);
    CHECK(reading.encoding("1591").offset == 0);
    CHECK(reading.entry("1572").section == Section::activation);
    CHECK(reading.entry("1572").line == 1);
    CHECK(reading.entry("1583").line == 2);
    CHECK(reading.entry("1572").given.at(0).scale == std::nullopt);
}

TEST_CASE("all conventions of the offset are recognised by arithmetic, and named") {
    // The zero point is 150 of 8 bits.
    const auto read = [](int offset, bool all = true) {
        std::string text;
        for (int i = 0; i < (all ? 3 : 1); ++i) {
            text += fmt::format(
                "{}\"t{}\": [{{\"bitwidth\": 8, \"min\": -15.0, \"max\": 10.5, \"scale\": 0.1, "
                "\"offset\": {}, \"dtype\": \"int\"}}]",
                i == 0 ? "" : ", ", i, offset);
        }
        return read_activations(text);
    };
    const auto check = [](const Reading& reading, OffsetConvention convention, const std::string& remark) {
        REQUIRE(reading.error.empty());
        CHECK(reading.encoding("t0").offset == -150);
        CHECK(reading.encoding("t0").scale == 0.1);
        CHECK(reading.entry("t0").convention == convention);
        REQUIRE(reading.remarks.size() == (remark.empty() ? 0 : 1));
        if (!remark.empty()) {
            CHECK(reading.remarks[0] == "e.json: 3 entries ('t0', 't1', 't2'): the offset is written as " +
                                            remark + ", not as negative zero point (-N)");
        }
    };
    check(read(-150), OffsetConvention::negative, "");
    check(read(150), OffsetConvention::positive, "positive zero point (+N)");
    check(read(149), OffsetConvention::positive_less_one, "positive zero point less one (N-1)");
    check(read(-22), OffsetConvention::signed_negative, "signed storage, negative zero point");
    check(read(22), OffsetConvention::signed_positive, "signed storage, zero point");
}

TEST_CASE("the offsets of SNPE's own documentation and of AIMET's first exporter are N - 1") {
    const Reading reading = read_activations(
        R"("Conv2d_2a_3x3/Relu:0": [{"bitwidth": 8, "max": 0.9960784314, "min": -1.0039215686, "offset": 127,
                                     "scale": 0.0078431373}],
           "Conv2d_2b_3x3/Relu:0": [{"bitwidth": 8, "max": 8.04, "min": -10.0, "offset": 140, "scale": 0.0707451}])");
    REQUIRE(reading.error.empty());
    CHECK(reading.encoding("Conv2d_2a_3x3/Relu:0").offset == -128);
    CHECK(reading.encoding("Conv2d_2b_3x3/Relu:0").offset == -141);
    CHECK(reading.entry("Conv2d_2a_3x3/Relu:0").convention == OffsetConvention::positive_less_one);
    CHECK(reading.entry("Conv2d_2b_3x3/Relu:0").convention == OffsetConvention::positive_less_one);
}

TEST_CASE("an offset that two conventions explain is read as most of the file is") {
    // -64 and +64 with zero point 64: +64 is either +N or signed storage (128 - 64).
    const std::string ambiguous =
        R"("t": [{"bitwidth": 8, "min": -6.4, "max": 19.1, "scale": 0.1, "offset": 64}])";
    const std::string clear =
        R"("u": [{"bitwidth": 8, "min": -5.0, "max": 20.5, "scale": 0.1, "offset": 50}])";
    const std::string stored =
        R"("u": [{"bitwidth": 8, "min": -5.0, "max": 20.5, "scale": 0.1, "offset": 78}])";
    CHECK(read_activations(ambiguous + "," + clear).entry("t").convention == OffsetConvention::positive);
    CHECK(read_activations(ambiguous + "," + stored).entry("t").convention ==
          OffsetConvention::signed_negative);
    CHECK(read_activations(ambiguous + "," + stored).encoding("t").offset == -64);
}

TEST_CASE("symmetric encodings stored signed, as a DLC has them, get their centre") {
    const Reading reading = read_activations(
        R"("w": [{"bitwidth": 8, "min": -0.117441192269, "max": 0.116523683071, "scale": 0.000917509315,
                  "offset": 0.0, "is_symmetric": "True"}])");
    REQUIRE(reading.error.empty());
    CHECK(reading.encoding("w").offset == -128);
    CHECK(reading.encoding("w").symmetric);
}

TEST_CASE("strict symmetric encodings of AIMET keep their scale") {
    const Reading reading = read_activations(
        R"("w": [{"bitwidth": 8, "min": -12.7, "max": 12.7, "scale": 0.1, "offset": -127, "is_symmetric": "True"}])");
    REQUIRE(reading.error.empty());
    CHECK(reading.remarks.empty());
    CHECK(reading.encoding("w").scale == 0.1);
    CHECK(reading.encoding("w").offset == -127);
}

TEST_CASE("scales and offsets that contradict the range give way to it, which is remarked") {
    const Reading reading = read_activations(
        R"("s": [{"bitwidth": 8, "min": -1.28, "max": 1.27, "scale": 0.5, "offset": -128}],
           "o": [{"bitwidth": 8, "min": -1.28, "max": 1.27, "scale": 0.01, "offset": -33}])");
    REQUIRE(reading.error.empty());
    CHECK(reading.encoding("s").offset == -128);
    CHECK(std::abs(reading.encoding("s").scale - 0.01) < 1e-15);
    CHECK(reading.encoding("o").offset == -128);
    REQUIRE(reading.remarks.size() == 2);
    CHECK(reading.remarks[0] == "e.json: 1 entry ('o'): the offset does not fit min and scale; min is taken");
    CHECK(reading.remarks[1] == "e.json: 1 entry ('s'): the scale does not fit min and max, which are taken");
}

TEST_CASE("what Python makes of JSON is read: NaN, marks, line ends, bools as texts, floats for integers") {
    const Reading reading = read_text(
        "\xef\xbb\xbf{\r\n\"version\": \"0.6.1\",\r\n\"activation_encodings\": {\r\n\"t\": [{\"bitwidth\": "
        "8.0, "
        "\"dtype\": \"INT\", \"min\": -11.4, \"max\": 14.1, \"scale\": 0.1, \"offset\": -114.0, "
        "\"is_symmetric\": "
        "false, \"x\": NaN}],\r\n\"u\": [{\"bitwidth\": 8, \"min\": -0.0, \"max\": 25.5, \"scale\": 0.1, "
        "\"offset\": "
        "-0.0, \"is_symmetric\": \"true\", \"dtype\": null}]},\r\n\"param_encodings\": {}}\r\n");
    REQUIRE(reading.error.empty());
    CHECK(reading.remarks.empty());
    CHECK(reading.encoding("t").offset == -114);
    CHECK_FALSE(reading.encoding("t").symmetric);
    CHECK(reading.encoding("u").symmetric);
    CHECK(reading.encoding("u").offset == 0);
    CHECK_FALSE(std::signbit(reading.encoding("u").min));
    CHECK(reading.entry("t").line == 4);
    CHECK(reading.entry("u").line == 5);
    REQUIRE(reading.entry("t").unknown.at(0).size() == 1);
    CHECK(reading.entry("t").unknown[0][0] == UnknownKey{"x", "NaN"});
}

TEST_CASE("an element that is not wrapped in a list is read with a remark") {
    const Reading reading = read_activations(R"("t": {"bitwidth": 8, "min": -1, "max": 1})");
    REQUIRE(reading.error.empty());
    CHECK(reading.encoding("t").offset == -128);
    CHECK(reading.remarks ==
          std::vector<std::string>{"e.json: 1 entry ('t'): the encoding is not wrapped in a list"});
}

TEST_CASE("entries without a range and float entries are a width and a type") {
    const Reading reading = read_activations(
        R"("a": [{"bitwidth": 16, "dtype": "int"}], "b": [{"bitwidth": 16, "dtype": "float"}],
           "c": [{"bitwidth": 32, "dtype": "Float"}])");
    REQUIRE(reading.error.empty());
    CHECK(reading.file.format == "snpe");
    CHECK(reading.entry("a").encoding.encodings.empty());
    CHECK(reading.entry("a").encoding.type == CodeType::integer);
    CHECK(reading.entry("a").encoding.width() == 16);
    CHECK(reading.entry("b").encoding.type == CodeType::floating);
    CHECK(reading.entry("b").encoding.width() == 16);
    CHECK(reading.entry("c").encoding.width() == 32);
}

TEST_CASE("a list of several encodings is one a channel, of axis 0") {
    const Reading reading = read_text(
        R"({"version": "0.6.1", "activation_encodings": {}, "param_encodings": {"w": [
            {"bitwidth": 4, "min": -0.8, "max": 0.7, "scale": 0.1, "offset": -8, "is_symmetric": "True"},
            {"bitwidth": 4, "min": -1.6, "max": 1.4, "scale": 0.2, "offset": -8, "is_symmetric": "True"}]}})");
    REQUIRE(reading.error.empty());
    const TensorEncoding& encoding = reading.entry("w").encoding;
    REQUIRE(encoding.encodings.size() == 2);
    CHECK(encoding.axis == 0);
    CHECK(encoding.per_channel());
    CHECK(encoding.encodings[1].scale == 0.2);
    CHECK(reading.entry("w").section == Section::parameter);
}

TEST_CASE("ranges without zero are widened to it, ranges without width to the least one") {
    const Reading reading = read_activations(
        R"("high": [{"bitwidth": 8, "min": 2.0, "max": 5.1}], "low": [{"bitwidth": 8, "min": -5.1, "max": -2.0}],
           "none": [{"bitwidth": 8, "min": 0.0, "max": 0.0}], "tiny": [{"bitwidth": 8, "min": 0.0, "max": 5e-324}])");
    REQUIRE(reading.error.empty());
    CHECK(reading.encoding("high").min == 0);
    CHECK(reading.encoding("high").offset == 0);
    CHECK(reading.encoding("low").max == 0);
    CHECK(reading.encoding("low").offset == -255);
    CHECK(reading.encoding("none").max == 0.01);
    CHECK(reading.encoding("tiny").max == 0.01);
    REQUIRE(reading.remarks.size() == 2);
    CHECK(reading.remarks[1] ==
          "e.json: 2 entries ('high', 'low'): the range does not contain 0 and is widened to it");
}

TEST_CASE("offsets of -215 and 32-bit grids are as legal as any") {
    const Reading reading = read_activations(
        R"("a": [{"bitwidth": 8, "min": -41.42, "max": 7.71, "scale": 0.19266666666666668, "offset": -215}],
           "b": [{"bitwidth": 32, "min": -0.029826, "max": 0.029826, "scale": 1.3888e-11, "offset": -2147483648,
                  "is_symmetric": "True"}])");
    REQUIRE(reading.error.empty());
    CHECK(reading.remarks.empty());
    CHECK(reading.encoding("a").offset == -215);
    CHECK(reading.encoding("b").offset == -2147483648);
}

TEST_CASE("all faults of a file are told at once, each with its line and tensor") {
    const Reading reading = read_text(R"({"version": "0.6.1",
"activation_encodings": {
"order": [{"bitwidth": 8, "min": 1, "max": -1}],
"zero": [{"bitwidth": 0, "min": -1, "max": 1}],
"wide": [{"bitwidth": 64, "min": -1, "max": 1}],
"half": [{"bitwidth": 8, "min": -1}],
"pair": [{"bitwidth": 8, "min": -1, "max": 1, "scale": 0.1}],
"nan": [{"bitwidth": 8, "min": NaN, "max": 1}],
"inf": [{"bitwidth": 8, "min": -1, "max": Infinity}],
"huge": [{"bitwidth": 8, "min": -1, "max": 1e300}],
"off": [{"bitwidth": 8, "scale": 0.1, "offset": -300}],
"part": [{"bitwidth": 8, "scale": 0.1, "offset": -127.5}],
"text": [{"bitwidth": 8, "min": "a", "max": 1}],
"flag": [{"bitwidth": 8, "min": -1, "max": 1, "is_symmetric": "maybe"}],
"kind": [{"bitwidth": 8, "min": -1, "max": 1, "dtype": "flot"}],
"none": [],
"item": [1],
"bare": 8,
"many": [{"bitwidth": 8, "min": -1, "max": 1}, {"bitwidth": 4, "min": -1, "max": 1}],
"good": [{"bitwidth": 8, "min": -1, "max": 1}],
"good": [{"bitwidth": 8, "min": -1, "max": 1}],
"nowidth": [{"min": -1, "max": 1}],
"step": [{"bitwidth": 8, "scale": -0.1, "offset": 0}],
"both": [{"bitwidth": 8, "min": -1, "max": 1}]},
"param_encodings": {
"both": [{"bitwidth": 8, "min": -1, "max": 1}]}})");
    CHECK(reading.error == R"(e.json:3: 'order': expected min <= max, found min 1 and max -1
e.json:4: 'zero': bitwidth: expected 2 to 32 bits, found 0
e.json:5: 'wide': bitwidth: expected 2 to 32 bits, found 64
e.json:6: 'half': expected min and max together, found min alone
e.json:7: 'pair': expected scale and offset together, found scale alone
e.json:8: 'nan': min: expected a finite number, found nan
e.json:9: 'inf': max: expected a finite number, found inf
e.json:10: 'huge': max: expected a number within float32, found 1e+300
e.json:11: 'off': offset: expected -255 to 0 for 8 bits, found -300
e.json:12: 'part': offset: expected a whole number, found -127.5
e.json:13: 'text': min: expected a number, found "a"
e.json:14: 'flag': is_symmetric: expected "True" or "False", found "maybe"
e.json:15: 'kind': dtype: expected int or float, found "flot" (did you mean 'float'?)
e.json:16: 'none': expected a list of encodings, found an empty list
e.json:17: 'item': expected an encoding, found 1
e.json:18: 'bare': expected a list of encodings, found 8
e.json:19: 'many': expected one bitwidth and dtype for all channels, found several
e.json:21: 'good': key 'good' is given twice, first in line 20
e.json:22: 'nowidth': expected bitwidth, found none
e.json:23: 'step': scale: expected a number above 0, found -0.1
e.json:26: 'both': is an activation and a parameter, first in line 24)");
}

TEST_CASE("who can use the good entries gets the faults of the others as a list") {
    const Reading reading = read_activations(
        "\"bad\": [{\"bitwidth\": 1, \"min\": -1, \"max\": 1}],\n\"good\": [{\"bitwidth\": 8, \"min\": -1, "
        "\"max\": 1}]",
        true);
    CHECK(reading.error.empty());
    REQUIRE(reading.faults.size() == 1);
    CHECK(reading.faults[0].tensor == "bad");
    CHECK(reading.faults[0].line == 1);
    CHECK(reading.faults[0].text == "bitwidth: expected 2 to 32 bits, found 1");
    REQUIRE(reading.file.entries.size() == 1);
    CHECK(reading.file.entries[0].encoding.tensor == "good");
}

TEST_CASE("malformed files met in public are refused with a clear message") {
    CHECK(read_text(R"({"activation_encodings": {"t": {"bw": 8, "type": "int"}}, "parameter_encodings": {}})")
              .error ==
          "e.json:1: unknown section 'parameter_encodings' (did you mean 'param_encodings'?)\n"
          "e.json:1: 't': expected bitwidth, found bw without a range");
    CHECK(read_text(R"({"activation_encodings": {"bitwidth": 8, "dtype": "int"}, "param_encodings": {}})")
              .error.starts_with(
                  "e.json:1: 'bitwidth': expected a list of encodings, found 8; encodings stand under "
                  "the name of their tensor"));
    CHECK(read_text(R"({"version": "0.6.1", "activation_encodings": {}, "param_encodings": 3})").error ==
          "e.json:1: param_encodings: expected an object from tensor names to encodings, found 3");
    CHECK(read_text(R"({"version": "3.1", "activation_encodings": {}})").error ==
          "e.json:1: version: expected 0.4.0, 0.5.0, 0.6.1 (dictionaries), 1.0.0 (lists) or 2.0.0 (one list "
          "\"encodings\"), found 3.1");
    CHECK(read_text(R"({"layers": []})").error ==
          "e.json: expected activation_encodings and param_encodings, or another form that `qcalib list "
          "formats` "
          "names, found the keys 'layers'");
    CHECK(read_text("[]").error == "e.json: expected a JSON object, found an empty list");
    CHECK(read_text("").error ==
          "e.json: expected an encodings file, found neither JSON nor a calibration table");
    CHECK(read_text("{\"activation_encodings\": {").error.starts_with("e.json:1:27: expected"));
}

TEST_CASE("a file without one of its sections is read with a remark") {
    const Reading reading =
        read_text(R"({"activation_encodings": {"t": [{"bitwidth": 8, "min": -1, "max": 1}]}})");
    CHECK(reading.error.empty());
    CHECK(reading.remarks ==
          std::vector<std::string>{
              "e.json: has no param_encodings, which Qualcomm's tools expect even if empty"});
}

TEST_CASE("a file of a hundred thousand faulty entries is refused in short") {
    std::string text;
    for (int i = 0; i < 100000; ++i) {
        text +=
            fmt::format("{}\"t\": [{{\"bitwidth\": 0, \"min\": NaN, \"max\": 1e999}}]", i == 0 ? "" : ",\n");
    }
    const Reading reading = read_activations(text);
    CHECK(reading.error.size() < 20000);
    CHECK(reading.error.find("more") != std::string::npos);
}

TEST_CASE("the keys of version 1.0.0 are read in dictionaries too, with a remark") {
    const Reading reading = read_text(
        R"({"version": "0.6.1", "activation_encodings": {"t": [{"bw": 8, "dtype": "INT", "is_sym": true, "min": -1.28, "max": 1.27, "scale": 0.01, "offset": -128}]}, "param_encodings": {}})");
    REQUIRE(reading.error.empty());
    CHECK(reading.encoding("t").bits == 8);
    CHECK(reading.encoding("t").symmetric);
    CHECK(reading.entry("t").unknown.at(0).empty());
    CHECK(reading.remarks ==
          std::vector<std::string>{"e.json: 1 entry ('t'): the width is called bw, as in version 1.0.0"});
}

TEST_CASE("a scale that makes a range no float32 holds is a fault") {
    CHECK(read_activations(R"("t": [{"bitwidth": 8, "scale": 1e38, "offset": -128}])").error ==
          "e.json:1: 't': expected a range within float32, found -1.28e+40 to 1.27e+40");
}
