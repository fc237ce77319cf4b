#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "format/reading.h"
#include "format/text_proto.h"
#include "format/tidl_params.h"
#include "format/tidl_patch.h"

using namespace qcalib;

namespace {

// TI's documented example, with a comment and a field of a newer release.
const std::string tidl_example =
    "# written by TIDL\n"
    "num_layers: 2\n"
    "quant_type: SYMMETRIC\n"
    "calib_type: PERTENSOR\n"
    "layers {\n"
    "  layer_name: \"data\"\n"
    "  layer_type: \"TIDL_DataLayer\"\n"
    "  bit_depth: 1\n"
    "  outputs { min: 0 max: 255 size: 1 element_type: 0 scale: 1 zero_point: 0 }\n"
    "}\n"
    "layers {\n"
    "  layer_name: \"conv1a\"\n"
    "  layer_type: \"TIDL_ConvolutionLayer\"\n"
    "  bit_depth: 1  # bytes\n"
    "  vendor_note: \"kept\"\n"
    "  outputs {\n"
    "    min: 0\n"
    "    max: 4.09663105\n"
    "    size: 1\n"
    "    element_type: 0\n"
    "    scale: 56.387794494628906\n"
    "    zero_point: 0\n"
    "  }\n"
    "  weights {\n"
    "    max: 0.00886716694\n"
    "    min: -0.00830631796\n"
    "    size: 1\n"
    "    element_type: 1\n"
    "    scale: 14435.275390625\n"
    "  }\n"
    "  bias { min: -0.52766174 max: 0.533652 size: 3 element_type: 0 value: 0.28 value: -0.52 value: 0.53 }\n"
    "}\n";

// What a patch of that text with these encodings by tensor comes to.
std::string tidl_patched(const std::string& text, const std::map<std::string, TensorEncoding>& encodings,
                         std::vector<std::string>* remarks = nullptr) {
    const auto find = [&](const std::string& name) {
        const auto found = encodings.find(name);
        return found == encodings.end() ? nullptr : &found->second;
    };
    TidlPatchSource source;
    source.output = [&](const TidlLayerParams& layer, std::size_t) { return find(layer.name); };
    source.weights = [&](const TidlLayerParams& layer) { return find(tidl_weights_name(layer.name)); };
    Remarks own;
    std::string result = patch_tidl_params(text, "p.prototxt", source, own);
    if (remarks != nullptr) *remarks = own.all();
    return result;
}

TensorEncoding tidl_entry(const std::string& tensor, double min, double max, int bits, bool is_signed) {
    TensorEncoding entry;
    entry.tensor = tensor;
    entry.encodings = {tidl_encoding(min, max, bits, is_signed)};
    return entry;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, from);
    return text.replace(at, from.size(), to);
}

std::string tidl_error(const std::string& text) {
    return read_text(text).error;
}

}  // namespace

TEST_CASE("TIDL's scale is a multiplier: 2^bits over the range, whose end itself saturates") {
    CHECK(tidl_encoding(0, 4, 8, false).scale == 4.0 / 256);
    CHECK(tidl_encoding(0, 4, 8, false).max == 4 - 4.0 / 256);
    CHECK(tidl_encoding(-0.2, 8, 8, true).scale == 8.0 / 128);
    CHECK(tidl_encoding(-64, 64, 16, true).scale == 1.0 / 512);
    CHECK(tidl_encoding(-64, 64, 16, true).offset == -32768);
    CHECK(tidl_range_end(tidl_encoding(0, 4, 8, false)) == 4);
    CHECK(tidl_range_end(tidl_encoding(-3, 5.9, 8, true)) == doctest::Approx(5.9));
}

TEST_CASE("numbers have nine digits, which give the same float32 again") {
    CHECK(tidl_number(4.09663105) == "4.09663105");
    CHECK(tidl_number(0.1) == "0.100000001");
    CHECK(tidl_number(-0.0) == "0");
    for (const float value : {0.00886716694F, 1.17549435e-38F, 3.4028235e38F, -1.0F / 3})
        CHECK(std::stof(tidl_number(value)) == value);
}

TEST_CASE("the documented example is read: ranges, not scales, tell the grids") {
    const Reading reading = read_text(tidl_example);
    REQUIRE(reading.error.empty());
    CHECK(reading.file.format == "tidl-prototxt");
    CHECK(reading.encoding("data").scale == 255.0 / 256);
    CHECK(reading.encoding("conv1a").scale == doctest::Approx(4.09663105 / 256).epsilon(1e-12));
    CHECK(reading.encoding("conv1a").offset == 0);
    CHECK(reading.entry("conv1a.weights").section == Section::parameter);
    // 14435.275... = 128 / 0.00886716694
    CHECK(1 / reading.encoding("conv1a.weights").scale == doctest::Approx(14435.275390625).epsilon(1e-7));
    CHECK(reading.encoding("conv1a.weights").offset == -128);
    const std::string remarks = join(reading.remarks, "\n");
    CHECK(remarks.find("('conv1a'): its scale is coarser than min and max ask for") != std::string::npos);
    CHECK(remarks.find("'vendor_note' (line 15)") != std::string::npos);
}

TEST_CASE("patching nothing answers the same bytes") {
    std::string windows = tidl_example;
    for (std::size_t at = 0; (at = windows.find('\n', at)) != std::string::npos; at += 2)
        windows.insert(at, "\r");
    for (const std::string& text :
         {tidl_example, windows, std::string("num_layers: 0"), std::string("num_layers:0\n\n\n")})
        CHECK(tidl_patched(text, {}) == text);
}

TEST_CASE("a patch replaces the numbers that change a scale and nothing else") {
    std::vector<std::string> remarks;
    const std::string result =
        tidl_patched(tidl_example, {{"conv1a", tidl_entry("conv1a", 0, 8, 8, false)}}, &remarks);
    CHECK(result == replaced(tidl_example, "max: 4.09663105", "max: 8"));
    const std::string text = join(remarks, "\n");
    CHECK(text.find("fields this program does not know are kept: 'vendor_note' (line 15)") !=
          std::string::npos);
    CHECK(text.find("1 of 2 layers ('data') have no encoding here and keep TIDL's numbers") !=
          std::string::npos);
    // What TIDL reads already.
    CHECK(tidl_patched(tidl_example, {{"conv1a", tidl_entry("conv1a", 0, 4.09663105, 8, false)},
                                      {"conv1a.weights", tidl_entry("w", -0.00886716694, 0.00886716694, 8,
                                                                    true)}}) == tidl_example);
}

TEST_CASE("a patch to 16 bits changes the element type, and keeps its sign") {
    const std::string result =
        tidl_patched(tidl_example, {{"conv1a", tidl_entry("conv1a", 0, 4.09663105, 16, false)},
                                    {"conv1a.weights", tidl_entry("w", -0.25, 0.25, 16, true)}});
    std::string expected =
        replaced(tidl_example, "size: 1\n    element_type: 0\n", "size: 1\n    element_type: 2\n");
    expected =
        replaced(expected, "max: 0.00886716694\n    min: -0.00830631796\n    size: 1\n    element_type: 1",
                 "max: 0.25\n    min: -0.25\n    size: 1\n    element_type: 3");
    CHECK(result == expected);
}

TEST_CASE("a min that is missing is put in: its default would destroy the scale") {
    const std::string text = replaced(tidl_example, "    min: 0\n    max: 4.09663105", "    max: 4.09663105");
    std::vector<std::string> remarks;
    const std::string result =
        tidl_patched(text, {{"conv1a", tidl_entry("conv1a", -2, 2, 8, false)}}, &remarks);
    CHECK(result == replaced(text, "    max: 4.09663105", "    min: 0\n    max: 2"));
    CHECK(join(remarks, "\n")
              .find("line 16: 'conv1a' (TIDL_ConvolutionLayer) outputs: no min; its default, -3.4e38") !=
          std::string::npos);
}

TEST_CASE("what keeps TIDL from taking a file is told") {
    const std::string short_bias = replaced(tidl_example, "value: 0.28 ", "");
    CHECK(join(read_text(short_bias).remarks, "\n")
              .find("line 31: 'conv1a' (TIDL_ConvolutionLayer) bias: expected as many values as size says "
                    "(3), found 2") != std::string::npos);
    const std::string fewer = replaced(tidl_example, "num_layers: 2", "num_layers: 1");
    CHECK(join(read_text(fewer).remarks, "\n")
              .find("num_layers: expected 2, as many as there are layers, found 1") != std::string::npos);
}

TEST_CASE("garbled files are refused by file and line") {
    CHECK(tidl_error("num_layers: 1\nlayers {\n  layer_name: \"a\n}\n") ==
          "e.json:3: expected \" at the end of a text, found the end of the line");
    CHECK(tidl_error("num_layers: 1\nlayers {\n  layer_name: 7\n}\n") ==
          "e.json:2: a layer without layer_name: expected one\n"
          "e.json:3: layer_name: expected a text in quotes, found 7");
    CHECK(tidl_error("layers {\n layer_name: 'a'\n outptus { min: 0 }\n}\n")
              .find("e.json:3: 'a': expected one of the fields layer_name, layer_type, bit_depth, outputs, "
                    "weights, bias, slope "
                    "of a layer, found 'outptus' (did you mean 'outputs'?)") == 0);
    CHECK(tidl_error("layers {\n layer_name: 'a'\n outputs { min: x max: 1 }\n}\n") ==
          "e.json:3: 'a': min: expected a number, found x");
    CHECK(tidl_error("layers {\n layer_name: 'a'\n outputs { min: 2 max: 1 }\n}\n") ==
          "e.json:3: 'a': expected min <= max, found min 2 and max 1");
    CHECK(tidl_error("layers {\n layer_name: 'a'\n outputs { min: 0 max: 1 element_type: 9 }\n}\n") ==
          "e.json:3: 'a': element_type: expected 0 (unsigned 8 bit) to 8, found 9");
    CHECK(
        tidl_error("quant_type: SYMETRIC\n") ==
        "e.json:1: quant_type: expected SYMMETRIC or ASYMMETRIC, found SYMETRIC (did you mean 'SYMMETRIC'?)");
    CHECK(tidl_error("num_layers: 1\nlayers {\n") ==
          "e.json:3: expected the name of a field, found the end of the file");
    CHECK(tidl_error("num_layers: 1 }\n") == "e.json:1: expected the name of a field, found '}'");
    std::string deep = "layers ";
    for (int i = 0; i < 2000; ++i) deep += "{ a ";
    CHECK(tidl_error(deep).find("expected at most 50 nested messages") != std::string::npos);
}

TEST_CASE("every cut of the example is read or refused, and never more") {
    for (std::size_t size = 0; size < tidl_example.size(); ++size) {
        const Reading reading = read_text(tidl_example.substr(0, size));
        CHECK((!reading.error.empty() || reading.file.entries.size() <= 3));
    }
}

TEST_CASE("the text form of protobuf is read whole: lists, both brackets, escapes, pieces of text") {
    const TextProtoMessage message = parse_text_proto(
        "a: [1, -2.5e3f, inf] b < c: 'x\\x41\\101\\n' \"y\" >; [pkg.ext]: true, d: { e: -nan } # end", "t");
    REQUIRE(message.fields.size() == 4);
    CHECK(message.fields[0].scalars.size() == 3);
    CHECK(message.fields[0].scalars[1].number() == -2500.0);
    CHECK(std::isinf(*message.fields[0].scalars[2].number()));
    CHECK(message.fields[1].messages[0].fields[0].scalars[0].text == "xAA\ny");
    CHECK(message.fields[2].name == "[pkg.ext]");
    CHECK(std::isnan(*message.fields[3].messages[0].fields[0].scalars[0].number()));
    CHECK_FALSE(message.fields[2].scalars[0].number());
}

TEST_CASE("the untouched default of a data layer is no range") {
    const Reading reading = read_text(
        "num_layers: 1\nlayers { layer_name: 'x' layer_type: 'TIDL_DataLayer' outputs { min: 0 max: 255 "
        "element_type: 1 } }\n");
    REQUIRE(reading.error.empty());
    CHECK(reading.entry("x").encoding.encodings.empty());
    CHECK(reading.entry("x").encoding.width() == 8);
    CHECK(join(reading.remarks, "\n").find("('x'): 0 to 255 is the untouched default of a data layer") !=
          std::string::npos);
}
