#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"
#include "format/reading.h"

using namespace qcalib;

namespace {

const std::vector<std::string> writable = {"snpe",        "mqbench",     "aimet-0.4.0", "aimet-0.5.0",
                                           "aimet-0.6.1", "aimet-1.0.0", "aimet-2.0.0"};

struct Written {
    std::string text;
    std::vector<std::string> remarks;
};

template <typename Content>
Written write(const std::string& format, const Content& content) {
    Remarks remarks;
    Written written;
    written.text = find_format(format).emit(content, remarks);
    written.remarks = remarks.all();
    return written;
}

Encoding random_encoding(Random& random, int bits, bool symmetric) {
    const double size = std::pow(10.0, random.unit() * 12 - 6);
    const Range range{-random.unit() * size, random.unit() * size};
    const double least = size * 1e-3;
    return symmetric ? encode_symmetric(range, bits, least) : encode_asymmetric(range, bits, least);
}

// Encodings of the widths and layouts that all writable formats have.
EncodingSet random_set(Random& random, bool with_symmetric) {
    EncodingSet set;
    for (int i = 0; i < 200; ++i) {
        const int bits = std::vector<int>{4, 8, 16, 32}[random.below(4)];
        set.activations.push_back({fmt::format("a/{}:0", i),
                                   {random_encoding(random, bits, with_symmetric && random.below(2) == 0)},
                                   {},
                                   "minmax"});
        TensorEncoding weight{fmt::format("w{}", i), {}, 0, "weights"};
        const std::size_t channels = 2 + random.below(5);
        for (std::size_t c = 0; c < channels; ++c) {
            weight.encodings.push_back(random_encoding(random, bits, with_symmetric));
        }
        set.parameters.push_back(weight);
    }
    return set;
}

bool same_end(double a, double b) {
    return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

// The same grid: what is written is read back to the bit, what follows from it to rounding.
void check_same(const Encoding& given, const Encoding& found, bool has_ends, bool has_scale) {
    REQUIRE(found.bits == given.bits);
    REQUIRE(found.offset == given.offset);
    REQUIRE(found.symmetric == given.symmetric);
    if (has_ends) {
        REQUIRE(found.min == given.min);
        REQUIRE(found.max == given.max);
    }
    if (has_scale) REQUIRE(found.scale == given.scale);
    REQUIRE(same_end(found.scale, given.scale));
    REQUIRE(std::abs(found.min - given.min) <= 1e-9 * given.scale);
    REQUIRE(std::abs(found.max - given.max) <= 1e-6 * given.scale);
}

FileEntry entry_of(TensorEncoding encoding, Section section) {
    FileEntry entry;
    entry.encoding = std::move(encoding);
    entry.section = section;
    return entry;
}

}  // namespace

TEST_CASE("what is written is read back as the same grid, in every format, for all widths") {
    Random random(3);
    for (const std::string& format : writable) {
        CAPTURE(format);
        const EncodingSet set = random_set(random, format != "mqbench");
        const Written written = write(format, set);
        CHECK(written.remarks.empty());
        const Reading reading = read_text(written.text);
        REQUIRE(reading.error == "");
        CHECK(reading.remarks.empty());
        CHECK(reading.file.format == format);
        const bool two = format == "aimet-2.0.0";
        REQUIRE(reading.file.entries.size() == set.activations.size() + set.parameters.size());
        for (const auto* list : {&set.activations, &set.parameters}) {
            for (const TensorEncoding& given : *list) {
                const FileEntry& entry = reading.entry(given.tensor);
                const bool parameter = list == &set.parameters;
                CHECK(entry.section == (two         ? Section::any
                                        : parameter ? Section::parameter
                                                    : Section::activation));
                REQUIRE(entry.encoding.encodings.size() == given.encodings.size());
                REQUIRE(entry.encoding.axis == given.axis);
                for (std::size_t i = 0; i < given.encodings.size(); ++i) {
                    check_same(given.encodings[i], entry.encoding.encodings[i],
                               !format.ends_with("1.0.0") && !two, format != "mqbench");
                }
            }
        }
        CHECK(write(format, reading.file).text == written.text);
    }
}

TEST_CASE("a chain through all formats ends with the grid it began with") {
    Random random(5);
    const EncodingSet set = random_set(random, true);
    EncodingFile file = read_text(write("snpe", set).text).file;
    for (const char* format :
         {"aimet-0.4.0", "aimet-1.0.0", "aimet-0.6.1", "aimet-1.0.0", "aimet-0.5.0", "snpe"}) {
        const Reading reading = read_text(write(format, file).text);
        REQUIRE(reading.error == "");
        file = reading.file;
    }
    for (const FileEntry& entry : file.entries) {
        const auto& list = entry.section == Section::parameter ? set.parameters : set.activations;
        const auto given = std::find_if(list.begin(), list.end(), [&](const TensorEncoding& one) {
            return one.tensor == entry.encoding.tensor;
        });
        REQUIRE(given != list.end());
        for (std::size_t i = 0; i < given->encodings.size(); ++i) {
            check_same(given->encodings[i], entry.encoding.encodings.at(i), false, true);
        }
    }
}

TEST_CASE("keys a format does not know are kept when the same format is written") {
    const std::vector<std::string> texts = {
        R"({"activation_encodings": {"t": [{"bitwidth": 8, "min": -1.28, "max": 1.27, "scale": 0.01, "offset": -128, "is_symmetric": "False", "dtype": "int", "note": {"a": [1, NaN, "x"]}}]}, "param_encodings": {}, "extra": [1.50, null]})",
        R"({"version": "0.6.1", "activation_encodings": {"t": [{"bitwidth": 8, "min": -1.28, "max": 1.27, "scale": 0.01, "offset": -128, "is_symmetric": "False", "dtype": "int", "note": {"a": [1, NaN, "x"]}}]}, "param_encodings": {}, "extra": [1.50, null], "quantizer_args": {"quant_scheme": "min_max"}})",
        R"({"version": "1.0.0", "activation_encodings": [{"name": "t", "bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": false, "offset": [-128], "scale": [0.01], "note": {"a": [1, NaN, "x"]}}], "param_encodings": [], "extra": [1.50, null]})",
        R"({"version": "2.0.0", "encodings": [{"name": "t", "output_dtype": "uint8", "y_scale": 0.01, "y_zero_point": 128, "note": {"a": [1, NaN, "x"]}}], "extra": [1.50, null]})"};
    for (const std::string& text : texts) {
        const Reading reading = read_text(text);
        REQUIRE(reading.error == "");
        const Written written = write(reading.file.format, reading.file);
        CHECK(written.remarks.empty());
        CHECK(written.text.find("\"note\": {\"a\": [1, NaN, \"x\"]}") != std::string::npos);
        CHECK(written.text.find("\"extra\": [1.50, null]") != std::string::npos);
        const Reading again = read_text(written.text);
        CHECK(again.file.unknown == reading.file.unknown);
        CHECK(again.entry("t").unknown == reading.entry("t").unknown);
        CHECK(again.entry("t").encoding == reading.entry("t").encoding);
    }
}

TEST_CASE("keys that another format does not have are left out with a remark; documented ones are kept") {
    const Reading reading = read_text(
        R"({"version": "0.6.1", "activation_encodings": {"t": [{"bitwidth": 8, "min": -1.28, "max": 1.27, "scale": 0.01, "offset": -128, "is_symmetric": "False", "dtype": "int", "note": 1}]}, "param_encodings": {}, "extra": 1, "quantizer_args": {"quant_scheme": "min_max"}, "excluded_layers": ["fc"]})");
    const Written written = write("aimet-1.0.0", reading.file);
    CHECK(written.remarks ==
          std::vector<std::string>{"aimet-1.0.0: has no place for 'extra' of e.json: left out",
                                   "aimet-1.0.0: 1 entry ('t'): the key 'note' is left out"});
    CHECK(written.text.find("\"quantizer_args\": {\"quant_scheme\": \"min_max\"}") != std::string::npos);
    CHECK(written.text.find("\"excluded_layers\": [\"fc\"]") != std::string::npos);
    CHECK(write("aimet-2.0.0", reading.file).remarks.at(0) ==
          "aimet-2.0.0: has no place for 'extra', 'quantizer_args', 'excluded_layers' of e.json: left out");
}

TEST_CASE("blocks, floats, widths and LPBQ are written where the format has them, and remarked where not") {
    EncodingFile file;
    file.entries.push_back(entry_of({"float", {}, {}, "", CodeType::floating, 16}, Section::activation));
    file.entries.push_back(entry_of({"width", {}, {}, "", CodeType::integer, 16}, Section::activation));
    TensorEncoding blocks{"blocks", {}, 0, ""};
    blocks.block_axis = 1;
    blocks.block_size = 32;
    for (const double scale : {0.5, 0.25, 0.125, 1.0}) {
        blocks.encodings.push_back({4, -8 * scale, 7 * scale, scale, -8, true});
    }
    file.entries.push_back(entry_of(blocks, Section::parameter));
    TensorEncoding lpbq = blocks;
    lpbq.tensor = "lpbq";
    lpbq.lpbq = BlockMultiples{8, {4, 2, 1, 8}, {0.125, 0.125}};
    file.entries.push_back(entry_of(lpbq, Section::parameter));
    for (FileEntry& entry : file.entries) {
        if (entry.encoding.per_block()) entry.nesting = {2, 2, 1, 1};
    }
    const Written one = write("aimet-1.0.0", file);
    CHECK(one.remarks ==
          std::vector<std::string>{
              "aimet-1.0.0: 1 entry ('width'): a width without a range cannot be expressed; left out"});
    const Reading again = read_text(one.text);
    REQUIRE(again.error == "");
    CHECK(again.entry("float").encoding.width() == 16);
    CHECK(again.entry("blocks").encoding == blocks);
    CHECK(again.entry("lpbq").encoding == lpbq);

    const Written two = write("aimet-2.0.0", file);
    CHECK(two.remarks ==
          std::vector<std::string>{
              "aimet-2.0.0: 1 entry ('float'): a float type is expressed by having no entry; left out",
              "aimet-2.0.0: 1 entry ('width'): a width without a range cannot be expressed; left out"});
    const Reading nested = read_text(two.text);
    REQUIRE(nested.error == "");
    CHECK(nested.entry("blocks").encoding == blocks);
    CHECK(nested.entry("blocks").nesting == Shape{2, 2, 1, 1});
    CHECK(nested.entry("lpbq").encoding == lpbq);

    const Written old = write("aimet-0.4.0", file);
    CHECK(old.remarks ==
          std::vector<std::string>{
              "aimet-0.4.0: 1 entry ('lpbq'): LPBQ cannot be expressed; left out",
              "aimet-0.4.0: 1 entry ('float'): a float type cannot be expressed; left out",
              "aimet-0.4.0: 1 entry ('width'): a width without a range cannot be expressed; left out",
              "aimet-0.4.0: 1 entry ('blocks'): encodings per block cannot be expressed; left out"});
    CHECK(read_text(write("snpe", file).text).entry("width").encoding.width() == 16);
    CHECK(read_text(write("snpe", file).text).entry("float").encoding.type == CodeType::floating);
}

TEST_CASE("what other formats cannot say of a grid is remarked") {
    EncodingSet set;
    set.activations.push_back({"relu", {{8, 0, 25.5, 0.1, 0, true}}, {}, ""});
    set.activations.push_back({"six", {encode_asymmetric({-1, 1}, 6, 0.01)}, {}, ""});
    set.parameters.push_back(
        {"up", {encode_symmetric({-1, 1}, 8, 0.01), encode_symmetric({-2, 1}, 8, 0.01)}, 1, ""});
    CHECK(write("aimet-2.0.0", set).remarks ==
          std::vector<std::string>{
              "aimet-2.0.0: 1 entry ('six'): a width of 6 bits cannot be expressed; left out",
              "aimet-2.0.0: 1 entry ('relu'): that they are symmetric is not recorded"});
    CHECK(read_text(write("aimet-2.0.0", set).text).entry("up").encoding.axis == 1);
    CHECK(write("mqbench", set).remarks ==
          std::vector<std::string>{
              "mqbench: 2 entries ('relu', 'up'): that they are symmetric is not recorded",
              "mqbench: 1 entry ('up'): the axis of the channels is not recorded; the operator implies it"});
    CHECK(write("aimet-1.0.0", set).remarks ==
          std::vector<std::string>{"aimet-1.0.0: 1 entry ('up'): the axis of the channels is not recorded; "
                                   "the operator implies it"});
}

TEST_CASE("a strict symmetric grid is written by its own ends where a format has ranges alone") {
    const Reading reading = read_activations(
        R"("w": [{"bitwidth": 8, "min": -12.7, "max": 12.7, "scale": 0.1, "offset": -127, "is_symmetric": "True"}])");
    const Reading again = read_text(write("mqbench", reading.file).text);
    CHECK(again.encoding("w").offset == -127);
    CHECK(same_end(again.encoding("w").scale, 0.1));
}

TEST_CASE("a hundred thousand entries are read and written") {
    EncodingSet set;
    for (int i = 0; i < 100000; ++i) {
        set.activations.push_back(
            {fmt::format("/layer/{}/output", i), {encode_asymmetric({-1.0 - i, 2}, 8, 0.01)}, {}, ""});
    }
    for (const std::string& format : writable) {
        const Reading reading = read_text(write(format, set).text);
        CHECK(reading.error == "");
        CHECK(reading.file.entries.size() == 100000);
    }
}

TEST_CASE(
    "files with bytes changed at random are read or refused, and what is read can be written and read") {
    Random random(23);
    EncodingSet set;
    set.activations.push_back({"x", {encode_asymmetric({-1.5, 3}, 8, 0.01)}, {}, ""});
    set.activations.push_back({"half", {}, {}, "", CodeType::floating, 16});
    set.parameters.push_back(
        {"w", {encode_symmetric({-1, 1}, 4, 0.01), encode_symmetric({-2, 2}, 4, 0.01)}, 0, ""});
    std::size_t read = 0;
    for (const std::string& format : writable) {
        const std::string text = write(format, set).text;
        for (int i = 0; i < 1500; ++i) {
            std::string changed = text;
            for (std::size_t k = 0; k < 1 + random.below(3); ++k) {
                const std::string digits = "0123456789-.eE[]{},:\"NaIunl";
                changed[random.below(changed.size())] = digits[random.below(digits.size())];
            }
            const Reading reading = read_text(changed);
            if (!reading.error.empty()) {
                CHECK(reading.error.starts_with("e.json:"));
                continue;
            }
            ++read;
            for (const std::string& other : writable) {
                const Written written = write(other, reading.file);
                CAPTURE(changed);
                CAPTURE(written.text);
                REQUIRE(read_text(written.text).error == "");
            }
        }
    }
    CHECK(read > 300);
}
