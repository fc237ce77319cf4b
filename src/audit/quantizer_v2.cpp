#include "audit/quantizer_v2.h"

#include <array>

#include <fmt/format.h>

#include "base/text.h"

namespace qcalib {

namespace {

// The text in brackets at the start of a summary line without its padding ("MISSING ENC."), and what follows.
struct Tagged {
    std::string_view tag;
    std::string_view text;
};

std::optional<Tagged> parse_tagged(std::string_view line) {
    constexpr std::array<std::string_view, 6> tags = {"[MISSING ENC.", "[PROPAGATED", "[FP16 FALLBACK",
                                                      "[ADAPTED OPS",  "[CONVERTS",   "[WARN: FP FALL"};
    for (const std::string_view tag : tags) {
        const std::size_t at = line.find(tag);
        if (at == std::string_view::npos) continue;
        const std::size_t end = line.find(']', at);
        if (end == std::string_view::npos) continue;
        return Tagged{tag.substr(1), trim(line.substr(end + 1))};
    }
    return std::nullopt;
}

std::uint64_t leading_count(std::string_view text) {
    const auto number = parse_printed_number(text.substr(0, text.find(' ')));
    return number && number->value >= 0 && number->value < 1e15 ? static_cast<std::uint64_t>(number->value)
                                                                : 0;
}

// The tensor of "xxx missing encoding, assumed type f16".
void add_fallback(const LogText& log, const LogLine& line, std::string_view text, ConverterReport& report,
                  std::vector<std::string>& remarks) {
    const std::size_t end = text.find(" missing encoding");
    if (end == std::string_view::npos || end == 0) return;
    FoundTensor tensor;
    tensor.name = trim(text.substr(0, end));
    tensor.data_type = "Float_16";
    tensor.fell_back = true;
    tensor.where = log.where(line);
    report.add(std::move(tensor), false, remarks);
}

}  // namespace

std::string QuantizerV2::summary() const {
    return "The summary of QAIRT's Quantizer V2, which encodings of version 2.0.0 call: '[MISSING ENC.] 271 "
           "of 1117 "
           "(24%) tensors were missing encodings.', '[PROPAGATED]', '[FP16 FALLBACK]', '[ADAPTED OPS]', "
           "'[CONVERTS]', "
           "and '[WARN: FP FALL] T missing encoding, assumed type f16' for a tensor left in float.";
}

std::size_t QuantizerV2::read(const LogText& log, ConverterReport& report,
                              std::vector<std::string>& remarks) const {
    std::size_t understood = 0;
    for (const LogLine& line : log.lines()) {
        const std::optional<Tagged> found = parse_tagged(line.text);
        if (!found) continue;
        ++understood;
        report.quantizer_ran = true;
        if (found->tag == "WARN: FP FALL") {
            add_fallback(log, line, found->text, report, remarks);
            continue;
        }
        if (found->tag == "MISSING ENC.") report.missing_encodings = leading_count(found->text);
        if (found->tag == "FP16 FALLBACK") report.float_fallbacks = leading_count(found->text);
        report.notes.push_back(
            fmt::format("{}: {}: {}", log.where(line), found->tag, printable(found->text)));
    }
    return understood;
}

}  // namespace qcalib
