#include "format/json_reader.h"

#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"
#include "format/json_writer.h"

using namespace qcalib;
using Kind = JsonValue::Kind;

namespace {

std::string fault_of(const std::string& text) {
    try {
        (void)JsonDocument(text, "e.json");
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

double number_of(const std::string& text) {
    const JsonDocument document(text, "e.json");
    REQUIRE(document.root().is(Kind::number));
    return document.root().number;
}

}  // namespace

TEST_CASE("JSON of all kinds is read, with the place of each value") {
    const std::string text = "{\"a\": [1, -2.5e3, true, false, null],\r\n \"b\": {\"c\": \"x\"}}";
    const JsonDocument document(text, "e.json");
    const JsonValue& root = document.root();
    REQUIRE(root.is(Kind::object));
    REQUIRE(root.keys == std::vector<std::string>{"a", "b"});
    const JsonValue& list = *root.find("a");
    REQUIRE(list.items.size() == 5);
    CHECK(list.items[1].number == -2500);
    CHECK(list.items[2].boolean);
    CHECK(list.items[3].is(Kind::boolean));
    CHECK_FALSE(list.items[3].boolean);
    CHECK(list.items[4].is(Kind::null));
    CHECK(document.raw(list.items[1]) == "-2.5e3");
    CHECK(document.raw(*root.find("b")) == "{\"c\": \"x\"}");
    CHECK(document.line(list.begin) == 1);
    CHECK(document.line(root.find("b")->begin) == 2);
    CHECK(root.find("z") == nullptr);
}

TEST_CASE("JSON strings have escapes, surrogate pairs and any bytes") {
    const JsonDocument document(R"(["\"\\\/\b\f\n\r\t", "\u00e9\u5377\ud83d\ude00", "\u0000"])", "e.json");
    CHECK(document.root().items[0].string == "\"\\/\b\f\n\r\t");
    CHECK(document.root().items[1].string == "\xc3\xa9\xe5\x8d\xb7\xf0\x9f\x98\x80");
    CHECK(document.root().items[2].string == std::string(1, '\0'));
    CHECK(JsonDocument("\"\xff\"", "e.json").root().string == "\xff");
}

TEST_CASE("numbers that Python writes and no JSON has are read") {
    CHECK(std::isnan(number_of("NaN")));
    CHECK(number_of("Infinity") == std::numeric_limits<double>::infinity());
    CHECK(number_of("-Infinity") == -std::numeric_limits<double>::infinity());
    CHECK(number_of("1e400") == std::numeric_limits<double>::infinity());
    CHECK(number_of("-1e400") == -std::numeric_limits<double>::infinity());
    CHECK(number_of("1e-400") == 0);
    CHECK(number_of("1" + std::string(400, '0')) == std::numeric_limits<double>::infinity());
    CHECK(number_of("0." + std::string(400, '0') + "1") == 0);
    CHECK(std::signbit(number_of("-0.0")));
}

TEST_CASE("faults of JSON say line, column, what was expected and what was found") {
    CHECK(fault_of("") == "e.json:1:1: expected a value, found the end of the file");
    CHECK(fault_of("{\n  \"a\": 1,\n}") == "e.json:3:1: expected a key in double quotes, found '}'");
    CHECK(fault_of("{\"a\" 1}") == "e.json:1:6: expected ':', found '1}'");
    CHECK(fault_of("[1 2]") == "e.json:1:4: expected ',' or ']', found '2]'");
    CHECK(fault_of("{'a': 1}") == "e.json:1:2: expected a key in double quotes, found ''a': 1}'");
    CHECK(fault_of("[1] 2") == "e.json:1:5: expected the end of the file, found '2'");
    CHECK(fault_of("\"abc") == "e.json:1:5: expected '\"' at the end of a string, found the end of the file");
    CHECK(fault_of("\"a\nb\"").starts_with("e.json:1:3: expected '\"' at the end of a string, found"));
    CHECK(fault_of("\"\\q\"").starts_with("e.json:1:3: expected an escape sequence of JSON, found 'q"));
    CHECK(fault_of("\"\\u12g4\"").starts_with("e.json:1:4: expected four hexadecimal digits"));
    CHECK(fault_of("\"\\ud800x\"").find("found half of one") != std::string::npos);
    CHECK(fault_of("[--1]").starts_with("e.json:1:2: expected a value, found '--1]'"));
    CHECK(fault_of("{\"a\": 1").find("expected ',' or '}', found the end of the file") != std::string::npos);
}

TEST_CASE("nesting without end is a fault, not a crash") {
    CHECK(fault_of(std::string(1000000, '[')).find("expected at most 64 levels of nesting") !=
          std::string::npos);
    std::string objects;
    for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
    CHECK(fault_of(objects).find("expected at most 64 levels of nesting") != std::string::npos);
}

TEST_CASE("every prefix of a file is read or refused") {
    const std::string text = R"({"a\u00e9": [1.5e-3, {"b": [true, null, NaN, -Infinity]}], "c": "x\n"})";
    for (std::size_t length = 0; length < text.size(); ++length) {
        CHECK_FALSE(fault_of(text.substr(0, length)).empty());
    }
    CHECK(fault_of(text).empty());
}

TEST_CASE("files with bytes changed at random are read or refused") {
    const std::string text = R"({"a\u00e9": [1.5e-3, {"b": [true, null, NaN, -Infinity]}], "c": "x\n"})";
    Random random(7);
    for (int i = 0; i < 20000; ++i) {
        std::string changed = text;
        for (int k = 0; k < 3; ++k) {
            changed[random.below(changed.size())] = static_cast<char>(random.below(256));
        }
        const std::string fault = fault_of(changed);
        CHECK((fault.empty() || fault.starts_with("e.json:")));
    }
}

TEST_CASE("keys given twice are found, with what leads to them") {
    const JsonDocument document("{\"s\": {\"t\": [{\"x\": 1,\n\"x\": 2}], \"u\": 1,\n\"u\": 2}}", "e.json");
    REQUIRE(document.repetitions().size() == 2);
    CHECK(document.repetitions()[0].key == "x");
    CHECK(document.repetitions()[0].path == std::vector<std::string>{"s", "t", ""});
    CHECK(document.line(document.repetitions()[0].first) == 1);
    CHECK(document.line(document.repetitions()[0].second) == 2);
    CHECK(document.repetitions()[1].key == "u");
    CHECK(document.repetitions()[1].path == std::vector<std::string>{"s"});
}

TEST_CASE("numbers that are written read back as the very same doubles") {
    Random random(11);
    for (int i = 0; i < 20000; ++i) {
        const double value = (random.unit() - 0.5) * std::pow(10.0, random.unit() * 600 - 300);
        const auto single =
            static_cast<float>((random.unit() - 0.5) * std::pow(10.0, random.unit() * 76 - 38));
        JsonWriter json;
        json.begin_array().real(value).real(single).end_array();
        const JsonDocument document(json.text(), "e.json");
        REQUIRE(document.root().items[0].number == value);
        REQUIRE(document.root().items[1].number == single);
    }
}
