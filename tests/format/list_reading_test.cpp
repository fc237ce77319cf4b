#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "format/reading.h"

using namespace qcalib;

namespace {

Reading read_list(const std::string& activations, const std::string& parameters = "") {
    return read_text("{\"version\": \"1.0.0\", \"activation_encodings\": [" + activations +
                     "], \"param_encodings\": [" + parameters + "]}");
}

Reading read_two(const std::string& entries) {
    return read_text("{\"version\": \"2.0.0\", \"encodings\": [" + entries + "]}");
}

}  // namespace

TEST_CASE("version 1.0.0 is read per tensor, per channel, per block, as LPBQ and as floats") {
    const Reading reading = read_list(
        R"({"name": "t", "bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": false, "offset": [-150], "scale": [0.1]},
           {"name": "f", "bw": 16, "dtype": "FLOAT", "enc_type": "PER_TENSOR"})",
        R"({"name": "c", "bw": 4, "dtype": "INT", "enc_type": "PER_CHANNEL", "is_sym": true, "offset": [-8, -8], "scale": [0.1, 0.2]},
           {"name": "b", "bw": 4, "dtype": "INT", "enc_type": "PER_BLOCK", "block_size": 16, "is_sym": true, "offset": [-8, -8, -8, -8], "scale": [1, 2, 3, 4]},
           {"name": "l", "bw": 8, "compressed_bw": 4, "dtype": "INT", "enc_type": "LPBQ", "block_size": 16, "is_sym": true,
            "offset": [-128, -128], "scale": [0.5, 0.25], "per_block_int_scale": [1, 16, 3, 4]})");
    REQUIRE(reading.error.empty());
    CHECK(reading.remarks.empty());
    CHECK(reading.file.format == "aimet-1.0.0");
    CHECK(reading.encoding("t") == Encoding{8, -150 * 0.1, -150 * 0.1 + 255 * 0.1, 0.1, -150, false});
    CHECK(reading.entry("f").encoding.type == CodeType::floating);
    CHECK(reading.entry("f").encoding.width() == 16);
    const TensorEncoding& channels = reading.entry("c").encoding;
    CHECK(channels.per_channel());
    CHECK(channels.encodings.at(1).scale == 0.2);
    CHECK(channels.encodings.at(1).offset == -8);
    CHECK(channels.encodings.at(1).symmetric);
    const TensorEncoding& blocks = reading.entry("b").encoding;
    CHECK(blocks.per_block());
    CHECK_FALSE(blocks.per_channel());
    CHECK(blocks.block_size == 16);
    CHECK(blocks.encodings.size() == 4);
    const TensorEncoding& lpbq = reading.entry("l").encoding;
    REQUIRE(lpbq.lpbq);
    CHECK(lpbq.lpbq->decompressed_bits == 8);
    CHECK(lpbq.lpbq->multiples == std::vector<int>{1, 16, 3, 4});
    CHECK(lpbq.lpbq->channels == std::vector<double>{0.5, 0.25});
    CHECK(lpbq.width() == 4);
    REQUIRE(lpbq.encodings.size() == 4);
    CHECK(lpbq.encodings[1].scale == 8);
    CHECK(lpbq.encodings[1].offset == -8);
    CHECK(lpbq.encodings[2].scale == 0.75);
}

TEST_CASE("a symmetric entry of version 1.0.0 with offset 0 is at its centre") {
    const Reading reading = read_list(
        "",
        R"({"name": "w", "bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": true, "offset": [0], "scale": [0.1]})");
    REQUIRE(reading.error.empty());
    CHECK(reading.encoding("w").offset == -128);
    REQUIRE(reading.remarks.size() == 1);
    CHECK(reading.remarks[0].find("signed storage") != std::string::npos);
}

TEST_CASE("lists without a version are read as 1.0.0 with a remark") {
    const Reading reading = read_text(R"({"activation_encodings": [], "param_encodings": []})");
    CHECK(reading.error.empty());
    CHECK(reading.remarks ==
          std::vector<std::string>{"e.json: has no version; QNN reads lists only where it is \"1.0.0\""});
}

TEST_CASE("faults of version 1.0.0 are told at once") {
    const Reading reading = read_list(R"(
{"name": "twice", "bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": false, "offset": [-1], "scale": [0.1]},
{"name": "twice", "bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": false, "offset": [-1], "scale": [0.1]},
{"bw": 8},
{"name": "type", "bw": 8, "dtype": "INT", "enc_type": "PER_TENSER", "is_sym": false, "offset": [-1], "scale": [0.1]},
{"name": "plural", "bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": false, "offsets": [-1], "scales": [0.1]},
{"name": "counts", "bw": 8, "dtype": "INT", "enc_type": "PER_CHANNEL", "is_sym": false, "offset": [-1, -2], "scale": [0.1, 0.2, 0.3]},
{"name": "several", "bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": false, "offset": [-1, -2], "scale": [0.1, 0.2]},
{"name": "alone", "bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": false, "scale": [0.1]},
{"name": "block", "bw": 8, "dtype": "INT", "enc_type": "PER_BLOCK", "is_sym": false, "offset": [-1], "scale": [0.1]},
{"name": "int", "bw": 8, "compressed_bw": 4, "dtype": "INT", "enc_type": "LPBQ", "block_size": 2, "is_sym": true, "offset": [-128], "scale": [0.1], "per_block_int_scale": [0, 255]},
{"name": "width", "bw": 33, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": false, "offset": [-1], "scale": [0.1]}
)");
    CHECK(reading.error == R"(e.json:3: 'twice': has two entries, first in line 2
e.json:4: activation_encodings: expected an entry with a name, found an object
e.json:5: 'type': enc_type: expected one of PER_TENSOR, PER_CHANNEL, PER_BLOCK, LPBQ, VECTOR, found "PER_TENSER" (did you mean 'PER_TENSOR'?)
e.json:6: 'plural': expected scale, found scales
e.json:6: 'plural': expected offset, found offsets
e.json:7: 'counts': offset: expected 3 numbers, as many as scales, found 2
e.json:8: 'several': PER_TENSOR: expected one scale, found 2
e.json:9: 'alone': expected scale and offset together, found scale alone
e.json:10: 'block': PER_BLOCK: expected a block_size above 0, found 0
e.json:11: 'int': per_block_int_scale: expected whole numbers 1 to 16, found 0
e.json:12: 'width': bw: expected 2 to 32 bits, found 33)");
}

TEST_CASE("version 2.0.0 has ONNX's zero points, signed and unsigned") {
    const Reading reading = read_two(
        R"({"name": "u", "output_dtype": "uint8", "y_scale": 0.1, "y_zero_point": 150},
           {"name": "z", "output_dtype": "uint16", "y_scale": 0.5},
           {"name": "s", "output_dtype": "int8", "y_scale": 0.1},
           {"name": "a", "output_dtype": "int8", "y_scale": 0.1, "y_zero_point": -28},
           {"name": "c", "output_dtype": "int4", "y_scale": [0.1, 0.2, 0.3], "axis": 1},
           {"name": "f", "output_dtype": "float8e4m3fn", "y_scale": 0.5})");
    REQUIRE(reading.error.empty());
    CHECK(reading.remarks.empty());
    CHECK(reading.encoding("u").offset == -150);
    CHECK_FALSE(reading.encoding("u").symmetric);
    CHECK(reading.encoding("z").offset == 0);
    CHECK(reading.encoding("z").bits == 16);
    CHECK(reading.encoding("s").offset == -128);
    CHECK(reading.encoding("s").symmetric);
    CHECK(reading.encoding("a").offset == -100);
    CHECK_FALSE(reading.encoding("a").symmetric);
    CHECK(reading.entry("c").encoding.axis == 1);
    CHECK(reading.entry("c").encoding.encodings.at(2).scale == 0.3);
    CHECK(reading.entry("f").encoding.type == CodeType::floating);
    CHECK(reading.entry("f").encoding.float_name == "float8e4m3fn");
    CHECK(reading.entry("u").section == Section::any);
}

TEST_CASE("a writer of version 2.0.0 with negative zero points is recognised by their range") {
    const Reading reading =
        read_two(R"({"name": "u", "output_dtype": "uint8", "y_scale": 0.1, "y_zero_point": -150})");
    REQUIRE(reading.error.empty());
    CHECK(reading.encoding("u").offset == -150);
    REQUIRE(reading.remarks.size() == 1);
    CHECK(reading.remarks[0] ==
          "e.json: 1 entry ('u'): the offset is written as negative zero point (-N), not as "
          "positive zero point (+N)");
    CHECK(read_two(R"({"name": "u", "output_dtype": "uint8", "y_scale": 0.1, "y_zero_point": 300})").error ==
          "e.json:1: 'u': zero point: expected 0 to 255 for 8 bits, found 300");
    CHECK(read_two(R"({"name": "u", "output_dtype": "int8", "y_scale": 0.1, "y_zero_point": 300})").error ==
          "e.json:1: 'u': zero point: expected -128 to 127 for 8 bits, found 300");
}

TEST_CASE("blocks of version 2.0.0 are read channel by channel, whichever axis they lie on") {
    const Reading reading = read_two(
        R"({"name": "b", "output_dtype": "int4", "y_scale": [[1, 2, 3], [4, 5, 6]], "axis": 1, "block_size": 8},
           {"name": "t", "output_dtype": "int4", "y_scale": [[1, 4], [2, 5], [3, 6]], "axis": 0, "block_size": 8},
           {"name": "c", "output_dtype": "int4", "y_scale": [[[[1]], [[2]]]], "axis": 1, "block_size": 8},
           {"name": "l", "output_dtype": "int4", "per_block_int_scale": [[1, 2], [3, 16]],
            "per_channel_float_scale": [[0.5], [0.25]], "axis": 1, "block_size": 8})");
    REQUIRE(reading.error.empty());
    for (const char* name : {"b", "t"}) {
        const TensorEncoding& encoding = reading.entry(name).encoding;
        REQUIRE(encoding.encodings.size() == 6);
        for (std::size_t i = 0; i < 6; ++i) CHECK(encoding.encodings[i].scale == static_cast<double>(i + 1));
        CHECK(encoding.axis == (name[0] == 'b' ? 0 : 1));
        CHECK(encoding.block_axis == (name[0] == 'b' ? 1 : 0));
    }
    CHECK(reading.entry("c").encoding.encodings.size() == 2);
    const TensorEncoding& lpbq = reading.entry("l").encoding;
    REQUIRE(lpbq.lpbq);
    CHECK(lpbq.lpbq->decompressed_bits == 8);
    CHECK(lpbq.encodings.at(3).scale == 4);
    CHECK(lpbq.encodings.at(3).offset == -8);
}

TEST_CASE("faults of version 2.0.0 are told at once") {
    const Reading reading = read_two(R"(
{"name": "type", "output_dtype": "uint7", "y_scale": 1},
{"name": "none", "y_scale": 1},
{"name": "scale", "output_dtype": "uint8"},
{"name": "axis", "output_dtype": "uint8", "y_scale": [1, 2]},
{"name": "ragged", "output_dtype": "uint8", "y_scale": [[1, 2], [3]], "axis": 0, "block_size": 2},
{"name": "points", "output_dtype": "uint8", "y_scale": [1, 2], "y_zero_point": [1, 2, 3], "axis": 0},
{"name": "deep", "output_dtype": "uint8", "y_scale": [[1, 2]], "axis": 0},
{"name": 3, "output_dtype": "uint8", "y_scale": 1}
)");
    CHECK(
        reading.error ==
        R"(e.json:2: 'type': output_dtype: expected an integer or float type of ONNX such as "uint8", found "uint7"
e.json:3: 'none': expected output_dtype, found none
e.json:4: 'scale': expected y_scale, found none
e.json:5: 'axis': expected an axis beside a list of scales, found none
e.json:6: 'ragged': y_scale: expected a number or even lists of numbers, found a list
e.json:7: 'points': y_zero_point: expected 2 numbers, as many as y_scale, found 3
e.json:8: 'deep': y_scale: expected a flat list without block_size, found 2 levels
e.json:9: encodings: expected an entry with a name, found the name 3)");
}
