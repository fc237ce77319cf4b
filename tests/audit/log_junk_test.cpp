// Logs of any bytes: nothing crashes, and what is said names the line.
#include <random>

#include <doctest/doctest.h>

#include "audit_fixture.h"
#include "base/error.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

const std::string whole =
    "[INFO] Writing intermediate model\n" + log_row("image", "image", 8, 0, 1) +
    "[MISSING ENC.   ] 271 of 1117 (24%) tensors were missing encodings.\n" +
    "[WARN: FP FALL] conv.bias missing encoding, assumed type f16\n" +
    log_row("Add_11_Hswish", "1583", 8, -0.359582, 17.979096) +
    "| 0 | Conv | Conv2d | w (data type: sFxp_8; tensor dimension: [4,1]; tensor type: STATIC) | a |\n"
    "w encoding for channel_0: bitwidth 8, min -0.128, max 0.127, scale 0.001, offset 0.0\n"
    "axis-quant: axis: 0, num_elements: 4 (above encoding is only for the first (channel_0) of 4 channels)\n"
    "2023-01-01 - 235 - INFO - Processed 12 quantization encodings\n"
    "weight encoding: min -0.029826, max 0.029826, delta 0.000000, offset -2147483648.000000 bitwidth 32\n";

// Reads, audits and prints it.
void go_through(const std::string& text) {
    std::vector<std::string> remarks;
    ConverterReport report;
    try {
        read_log(LogText("x.log", text), report, remarks);
    } catch (const Error& error) {
        CHECK(std::string_view(error.what()).starts_with("x.log: "));
        return;
    }
    for (const std::string& remark : remarks) CHECK(remark.starts_with("x.log:"));
    for (const std::string& note : report.notes) CHECK(note.starts_with("x.log:"));
    for (const FoundTensor& tensor : report.tensors) CHECK(tensor.where.starts_with("x.log:"));
    GivenFile given;
    given.add("image", 0, 1).add("1583", -0.4, 12).add("w", -0.128, 0.127, 8, Section::parameter);
    const AuditResult result = audit_of(given, report);
    CHECK(to_json(result).size() > 10);
}

}  // namespace

TEST_CASE("a log cut off anywhere is read") {
    for (std::size_t length = 0; length <= whole.size(); ++length) go_through(whole.substr(0, length));
}

TEST_CASE("logs with bytes changed, lines swapped, doubled and glued together are read") {
    for (unsigned seed = 0; seed < 400; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        std::string text = whole;
        const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random()) % end; };
        for (int i = 0; i < 12; ++i) {
            const std::size_t at = below(text.size());
            switch (below(5)) {
                case 0:
                    text[at] = static_cast<char>(random());
                    break;
                case 1:
                    text.erase(at, below(30));
                    break;
                case 2:
                    text.insert(at, text.substr(below(text.size()), below(80)));
                    break;
                case 3:
                    text.insert(at, std::string(below(40), static_cast<char>(random())));
                    break;
                default:
                    text.insert(at, "-99999999999999999999.5e300");
                    break;
            }
        }
        go_through(text);
    }
}

TEST_CASE("binary junk is read") {
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::mt19937 random(seed);
        std::string text(4096, '\0');
        for (char& c : text) c = static_cast<char>(random());
        go_through(text);
        go_through(whole + text + whole);
        go_through("\xff\xfe" + text);
    }
}
