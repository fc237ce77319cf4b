#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "format/format.h"

using namespace qcalib;
using Json = nlohmann::ordered_json;

namespace {

TensorEncoding per_tensor(std::string name, double min, double max, int bits = 8) {
    return {std::move(name), {encode_asymmetric({min, max}, bits, 0.01)}, {}, "minmax"};
}

std::string emit_snpe(const EncodingSet& set) {
    Remarks remarks;
    std::string text = find_format("snpe").emit(set, remarks);
    CHECK(remarks.empty());
    return text;
}

std::string message_of(const EncodingSet& set) {
    try {
        emit_snpe(set);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("the SNPE file has both sections, indented by four, in the order given") {
    EncodingSet set;
    set.activations = {{"b", {Encoding{8, -0.5, 0.75, 0.25, -2, false}}, {}, "minmax"}};
    set.parameters = {{"w",
                       {Encoding{8, -128, 127, 1, -128, true}, Encoding{8, -64, 63.5, 0.5, -128, true}},
                       0,
                       "weights"}};
    CHECK(emit_snpe(set) == R"({
    "activation_encodings": {
        "b": [
            {
                "bitwidth": 8,
                "min": -0.5,
                "max": 0.75,
                "scale": 0.25,
                "offset": -2,
                "is_symmetric": "False",
                "dtype": "int"
            }
        ]
    },
    "param_encodings": {
        "w": [
            {
                "bitwidth": 8,
                "min": -128.0,
                "max": 127.0,
                "scale": 1.0,
                "offset": -128,
                "is_symmetric": "True",
                "dtype": "int"
            },
            {
                "bitwidth": 8,
                "min": -64.0,
                "max": 63.5,
                "scale": 0.5,
                "offset": -128,
                "is_symmetric": "True",
                "dtype": "int"
            }
        ]
    }
}
)");
}

TEST_CASE("both sections are there when they are empty") {
    CHECK(emit_snpe({}) == "{\n    \"activation_encodings\": {},\n    \"param_encodings\": {}\n}\n");
}

TEST_CASE("the SNPE file keeps the order of the graph, not of the alphabet") {
    EncodingSet set;
    for (const char* name : {"z", "a", "m", "10", "9"}) set.activations.push_back(per_tensor(name, -1, 1));
    const Json file = Json::parse(emit_snpe(set));
    std::vector<std::string> names;
    for (const auto& item : file["activation_encodings"].items()) names.push_back(item.key());
    CHECK(names == std::vector<std::string>{"z", "a", "m", "10", "9"});
}

TEST_CASE("numbers in the SNPE file read back as the very same doubles") {
    Random random(21);
    EncodingSet set;
    for (int i = 0; i < 2000; ++i) {
        const double scale = std::pow(10.0, random.unit() * 30 - 15);
        const int bits = static_cast<int>(2 + random.below(31));
        set.activations.push_back(
            per_tensor(fmt::format("t{}", i), -random.unit() * scale, random.unit() * scale, bits));
    }
    const Json file = Json::parse(emit_snpe(set));
    for (const TensorEncoding& entry : set.activations) {
        const Json& json = file["activation_encodings"][entry.tensor].at(0);
        const Encoding& encoding = entry.encodings[0];
        REQUIRE(json["bitwidth"].get<int>() == encoding.bits);
        REQUIRE(json["min"].get<double>() == encoding.min);
        REQUIRE(json["max"].get<double>() == encoding.max);
        REQUIRE(json["scale"].get<double>() == encoding.scale);
        REQUIRE(json["offset"].is_number_integer());
        REQUIRE(json["offset"].get<std::int64_t>() == encoding.offset);
        REQUIRE(json["offset"].get<std::int64_t>() <= 0);
    }
}

TEST_CASE("ranges are written after nudging") {
    EncodingSet set;
    set.activations = {per_tensor("conv", -1.282158, 1.206396)};
    const Json json = Json::parse(emit_snpe(set))["activation_encodings"]["conv"].at(0);
    CHECK(std::abs(json["min"].get<double>() - -1.278434) < 1e-6);
    CHECK(std::abs(json["max"].get<double>() - 1.210121) < 1.5e-6);
    CHECK(json["offset"].get<int>() == -131);
}

TEST_CASE("names with quotes, control bytes and any Unicode stay what they are") {
    const std::vector<std::string> names{"{\"1\": \"1_minute_timer\", \"2\": \"10_minute_timer\"}",
                                         "back\\slash",
                                         "tab\there\nand\x01\x7f",
                                         "\xe5\x8d\xb7\xe7\xa7\xaf",
                                         "\xf0\x9f\x98\x80",
                                         std::string("nul\0inside", 10),
                                         "a/b:0"};
    EncodingSet set;
    for (const std::string& name : names) {
        set.activations.push_back(per_tensor(name, -1, 1));
        set.parameters.push_back(per_tensor(fmt::format("w {}", name), -1, 1));
    }
    const Json file = Json::parse(emit_snpe(set));
    for (const std::string& name : names) {
        CHECK(file["activation_encodings"].contains(name));
        CHECK(file["param_encodings"].contains(fmt::format("w {}", name)));
    }
    CHECK(file["activation_encodings"].size() == names.size());
}

TEST_CASE("names that are no UTF-8 are refused, all of them named") {
    EncodingSet set;
    set.activations = {per_tensor("good", -1, 1), per_tensor("bad\xff", -1, 1)};
    set.parameters = {per_tensor("cut\xe5\x8d", -1, 1)};
    CHECK(message_of(set) ==
          "'bad\\xff', 'cut\\xe5\\x8d': expected tensor names in UTF-8, which a JSON file can hold, found "
          "other bytes; "
          "rename in the model");
}
