#include "format/tidl_options.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "format/reading.h"
#include "format/tidl_params.h"

using namespace qcalib;

namespace {

const std::string plain_options =
    "tensor_bits: 8\n"
    "accuracy_level: 0\n"
    "advanced_options:quantization_scale_type: 1\n"
    "\"advanced_options:output_feature_16bit_names_list\": \"a, b/c\"\n"
    "advanced_options:params_16bit_names_list: [conv1]\n";

std::string remark_text(const std::string& yaml) {
    const Reading reading = read_text(yaml);
    REQUIRE(reading.error.empty());
    return join(reading.remarks, "\n");
}

}  // namespace

TEST_CASE("a file of options gives widths") {
    const Reading reading = read_text(plain_options);
    REQUIRE(reading.error.empty());
    CHECK(reading.file.format == "tidl-options");
    REQUIRE(reading.file.entries.size() == 3);
    CHECK(reading.entry("a").encoding.width() == 16);
    CHECK(reading.entry("b/c").encoding.encodings.empty());
    CHECK(reading.entry("conv1.weights").section == Section::parameter);
    CHECK(reading.remarks.empty());
}

TEST_CASE("unknown options are refused with the nearest") {
    CHECK(read_text("tensor_bits: 8\nacuracy_level: 0\n").error ==
          "e.json:2: expected an option of TIDL's, found 'acuracy_level' (did you mean 'accuracy_level'?)");
    CHECK(read_text("tensor_bits: 8\nquantization_scale_type: 1\n").error ==
          "e.json:2: expected an option of TIDL's, found 'quantization_scale_type' (did you mean "
          "'advanced_options:quantization_scale_type'?)");
    CHECK(read_text("tensor_bits: 8\nadvanced_options:scale_type_of_nothing: 1\n").error ==
          "e.json:2: expected an option of TIDL's, found 'advanced_options:scale_type_of_nothing'");
}

TEST_CASE("values that TIDL does not take are refused") {
    CHECK(
        read_text("tensor_bits: 12\naccuracy_level: 3\nadvanced_options:calibration_frames: many\n").error ==
        "e.json:1: tensor_bits: expected one of 8, 16, 32, found '12'\n"
        "e.json:2: accuracy_level: expected one of 0, 1, 2, 9, found '3'\n"
        "e.json:3: advanced_options:calibration_frames: expected a whole number, found 'many'");
    CHECK(read_text("tensor_bits: 8\ntensor_bits: 16\n").error == "e.json:2: tensor_bits: given twice");
    CHECK(read_text("tensor_bits: {a: 1}\n").error ==
          "e.json:1: tensor_bits: expected one of 8, 16, 32, found a map");
}

TEST_CASE("options that TIDL ignores are named") {
    CHECK(remark_text("accuracy_level: 1\nadvanced_options:weight_clipping: 0\n"
                      "advanced_options:channel_wise_quantization: 1\n") ==
          "e.json: line 2: advanced_options:weight_clipping: ignored: it counts at accuracy_level 9 alone, "
          "found 1\n"
          "e.json: line 3: advanced_options:channel_wise_quantization: ignored: it counts at accuracy_level "
          "9 alone, "
          "found 1");
    CHECK(remark_text("accuracy_level: 9\nadvanced_options:weight_clipping: 0\n").empty());
    CHECK(remark_text("accuracy_level: 1\nadvanced_options:quantization_scale_type: 1\n")
              .find("is compiled with accuracy_level 0, found 1") != std::string::npos);
    CHECK(remark_text("accuracy_level: 0\ntensor_bits: 16\nadvanced_options:quantization_scale_type: 1\n")
              .find("line 2: tensor_bits: ranges of a model trained for 8 bits are no gain in 16") !=
          std::string::npos);
    CHECK(remark_text("accuracy_level: 1\nplatform: J7\nadvanced_options:quantization_scale_type: 4\n")
              .find("TDA4VM (J721E) takes symmetric encodings alone") != std::string::npos);
    CHECK(remark_text("accuracy_level: 1\nadvanced_options:prequantized_model: 1\n"
                      "advanced_options:quant_params_proto_path: p.prototxt\n")
              .find("has to be empty beside prequantized_model 1") != std::string::npos);
}

TEST_CASE("what is written is read again without a remark") {
    TidlOptionSet options;
    options.scale_type = 1;
    options.wide_features = {"a", "b \"quoted\""};
    options.wide_parameters = {"a"};
    options.params_path = "m.tidl.prototxt";
    const Reading reading = read_text(to_yaml(options));
    REQUIRE(reading.error.empty());
    CHECK(reading.remarks.empty());
    CHECK(reading.entry("b \"quoted\"").encoding.width() == 16);
    CHECK(reading.entry("a.weights").encoding.width() == 16);
}
