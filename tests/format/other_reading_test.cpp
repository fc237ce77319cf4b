#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "format/reading.h"

using namespace qcalib;

TEST_CASE("a TensorRT cache holds symmetric 8-bit scales as bits of float32") {
    const Reading reading = read_text(
        "TRT-8401-EntropyCalibration2\r\ninput: 3caa54fc\n(Unnamed Layer* 64) [Shuffle]_output: 0\nscaled:1: "
        "4000889d\n");
    REQUIRE(reading.error.empty());
    CHECK(reading.file.format == "tensorrt-cache");
    CHECK(reading.file.version == "TRT-8401-EntropyCalibration2");
    CHECK(reading.file.entries.size() == 2);
    CHECK(std::abs(reading.encoding("input").scale - 0.020792477) < 1e-9);
    CHECK(reading.encoding("input").offset == -128);
    CHECK(reading.encoding("input").symmetric);
    CHECK(std::abs(reading.encoding("scaled:1").scale - 2.008338) < 1e-6);
    CHECK(reading.entry("scaled:1").line == 4);
    REQUIRE(reading.remarks.size() == 1);
    CHECK(reading.remarks[0].find("'(Unnamed Layer* 64) [Shuffle]_output'): the scale is 0") !=
          std::string::npos);
}

TEST_CASE("faulty lines of a TensorRT cache are named") {
    CHECK(read_text(
              "TRT-8401-MinMaxCalibration\na: 7fc00000\nb: 3caa54fcff\nc: bf800000\nnothing\nd: 3f800000\n")
              .error ==
          "e.json:2: 'a': expected the bits of a float32 above 0, found '7fc00000'\n"
          "e.json:3: 'b': expected the bits of a float32 above 0, found '3caa54fcff'\n"
          "e.json:4: 'c': expected the bits of a float32 above 0, found 'bf800000'\n"
          "e.json:5: expected \"name: scale\", found 'nothing'");
}

TEST_CASE("onnxruntime's calibration tables are read in all their forms") {
    const std::vector<std::string> texts = {
        R"({"x": [-1.0, 2.0], "y": [[0.0], [3.0]]})",
        R"({"x": {"CLS": "TensorData", "lowest": {"data": -1.0, "dtype": "float32", "CLS": "numpy.array"},
                 "highest": {"data": [2.0], "dtype": "float32", "CLS": "numpy.array"}},
           "y": {"CLS": "TensorData", "lowest": 0.0, "highest": 3.0}})",
        R"({"CLS": "TensorsData", "data": {"x": {"CLS": "TensorData", "lowest": {"data": [-1.0]}, "highest": {"data": [2.0]}},
           "y": {"lowest": {"data": 0}, "highest": {"data": 3}}}, "calibration_method": {"CLS": "CalibrationMethod"}})"};
    for (const std::string& text : texts) {
        const Reading reading = read_text(text);
        CAPTURE(text);
        REQUIRE(reading.error.empty());
        CHECK(reading.file.format == "ort-table");
        CHECK(reading.encoding("x").min == -1);
        CHECK(reading.encoding("x").max == 2);
        CHECK(reading.encoding("x").offset == -85);
        CHECK(reading.encoding("y").offset == 0);
        CHECK(reading.remarks ==
              std::vector<std::string>{"e.json: holds ranges without widths; 8 bits are taken"});
    }
    const Reading reading = read_text("data_0 2.54\nresnet/conv name 1.27\nzero 0\n");
    REQUIRE(reading.error.empty());
    CHECK(reading.file.format == "ort-table");
    CHECK(reading.encoding("data_0").scale == 0.02);
    CHECK(reading.encoding("resnet/conv name").symmetric);
    CHECK(reading.file.entries.size() == 2);
}

TEST_CASE("onnxruntime's overrides are read with their types") {
    const Reading reading = read_text(
        R"({"a": [{"quant_type": "QUInt16", "scale": 0.1, "zero_point": 150}],
            "b": [{"quant_type": "QuantType.QInt8", "scale": 0.1, "zero_point": -28}],
            "c": [{"quant_type": "QInt8", "rmin": -1.0, "rmax": 1.0, "axis": 0}, {"rmin": -2.0, "rmax": 2.0}],
            "d": [{"quant_type": "QUInt16", "convert": {"quant_type": "QUInt8", "recv_nodes": ["n"]}}],
            "e": [{"scale": 0.5, "zero_point": 0}]})");
    REQUIRE(reading.error.empty());
    CHECK(reading.file.format == "ort-overrides");
    CHECK(reading.encoding("a").offset == -150);
    CHECK(reading.encoding("a").bits == 16);
    CHECK(reading.encoding("b").offset == -100);
    CHECK(reading.entry("c").encoding.axis == 0);
    CHECK(reading.entry("c").encoding.encodings.at(1).max == 2);
    CHECK(reading.entry("d").encoding.encodings.empty());
    CHECK(reading.entry("d").encoding.width() == 16);
    CHECK(reading.entry("d").unknown.at(0).at(0).key == "convert");
    CHECK(reading.encoding("e").bits == 8);
    CHECK(reading.remarks ==
          std::vector<std::string>{"e.json: 1 entry ('e'): there is no quant_type; QUInt8 is taken"});
    CHECK(
        read_text(
            R"({"a": [{"quant_type": "QUInt8", "scale": 0.1}], "b": [{"quant_type": "QUInt8", "scale": 1, "zero_point": 0, "rmin": 0, "rmax": 1}], "c": [{"quant_type": "UInt8"}]})")
            .error ==
        "e.json:1: 'a': expected scale and zero_point together, found scale alone\n"
        "e.json:1: 'b': expected scale and zero_point without rmin, rmax and symmetric, found both\n"
        "e.json:1: 'c': quant_type: expected one such as \"QUInt8\", found \"UInt8\"");
}

TEST_CASE("the graph that QAIRT dumps gives the encodings of its tensors, stored signed too") {
    const Reading reading = read_text(
        R"({"model.cpp": "x", "graph": {"tensors": {
            "x": {"id": 1, "type": 0, "data_type": 1030, "quant_params": {"definition": 1, "encoding": 0, "scale_offset": {"scale": 0.1, "offset": -150, "bitwidth": 8}}},
            "a": {"id": 2, "type": 3, "data_type": 1046, "quant_params": {"definition": 1, "encoding": 0, "scale_offset": {"scale": 0.5, "offset": -100}}},
            "w": {"id": 3, "type": 4, "data_type": 776, "quant_params": {"scale_offset": {"bitwidth": 8, "minimum": -12.8, "maximum": 12.7, "scale": 0.1, "offset": 0, "is_symmetric": true, "is_fixed_point": true}}},
            "c": {"id": 4, "type": 4, "data_type": 776, "quant_params": {"definition": 1, "encoding": 1, "axis_scale_offset": {"axis": 3, "num_scale_offsets": 2, "scale_offsets": [{"scale": 0.1, "offset": 0}, {"scale": 0.2, "offset": 0}]}}},
            "f": {"id": 5, "type": 0, "data_type": 562, "quant_params": {"definition": 0, "encoding": 0, "scale_offset": {"scale": 0.0, "offset": 0}}}}}})");
    REQUIRE(reading.error.empty());
    CHECK(reading.file.format == "qairt-dump");
    CHECK(reading.file.entries.size() == 4);
    CHECK(reading.encoding("x").offset == -150);
    CHECK(reading.encoding("a").bits == 16);
    CHECK(reading.encoding("a").offset == -100);
    CHECK(reading.encoding("w").offset == -128);
    CHECK(reading.entry("w").section == Section::parameter);
    CHECK(reading.entry("c").encoding.axis == 3);
    CHECK(reading.entry("c").encoding.encodings.at(1).offset == -128);
}

TEST_CASE("PPQ's offsets are positive zero points") {
    const Reading reading = read_activations(
        R"("t": [{"bitwidth": 8, "max": 1, "min": -1, "offset": 128, "scale": 0.00784313725}])");
    REQUIRE(reading.error.empty());
    CHECK(reading.file.format == "ppq");
    CHECK(reading.encoding("t").offset == -128);
    CHECK(reading.entry("t").convention == OffsetConvention::positive);
    CHECK(reading.remarks.size() == 1);
}
