#include "audit/converter_log.h"

#include <array>

#include <fmt/format.h>

namespace qcalib {

namespace {

struct Sign {
    std::string_view text;
    bool ConverterReport::*fact;
};

constexpr std::array signs = {
    Sign{"INFO_CONVERSION_SUCCESS", &ConverterReport::converted},
    Sign{"Conversion completed successfully", &ConverterReport::converted},
    Sign{"Processing user provided quantization encodings", &ConverterReport::overrides_asked},
    Sign{"--quantization_overrides", &ConverterReport::overrides_asked},
    Sign{"--bias_bitwidth", &ConverterReport::bias_bitwidth},
    Sign{"--override_params", &ConverterReport::override_params},
    Sign{"Writing quantized model to", &ConverterReport::quantizer_ran},
    Sign{"Writing intermediate model", &ConverterReport::quantizer_ran},
};

struct Note {
    std::string_view text;
    std::string_view meaning;
};

constexpr std::array telling = {
    Note{"Can't simplify the model when custom ops or quantization overrides are specified",
         "with overrides the converter does not simplify the model: its graph may be another one than "
         "without"},
    Note{"Bad quantization: zero scale!", "the result holds an encoding without width"},
    Note{"Invalid offset overridden for symmetric encodings",
         "a symmetric entry has to have the offset -2^(bits-1), -128 for 8 bits"},
    Note{"Bitwidth must be present",
         "this parser takes AIMET's 0.6.1 form only: qcalib convert --to aimet-0.6.1"},
    Note{"Min/max or scale/offset pairs must be present together",
         "an entry has one of min and max, or one of scale and offset, without the other"},
    Note{"Restricting number of quantization steps",
         "weights were put on fewer codes than their width has: their encodings differ from those given"},
    Note{"Activation bitwidth conversion from",
         "the quantizer changes widths of activations between 8 and 16 bits only"},
    Note{"Unsupported datatype found in overrides", "a type of the file is none this version knows"},
    Note{"mixedPrecisionForWeights", "the backend does not take 16-bit weights beside 8-bit activations"},
    Note{"No backend could validate",
         "an operator was refused in this precision: entries for it may not hold"},
};

}  // namespace

std::string ConverterLog::summary() const {
    return "What snpe-onnx-to-dlc, qnn-onnx-converter, qairt-converter and the quantizers print besides "
           "ranges: "
           "'Processed N quantization encodings' (0: no name of the file was found), that a conversion or a "
           "quantization ran, the flags of an echoed command line, and warnings and errors about encodings.";
}

std::size_t ConverterLog::read(const LogText& log, ConverterReport& report,
                               std::vector<std::string>& /*remarks*/) const {
    std::size_t understood = 0;
    for (const LogLine& line : log.lines()) {
        for (const Sign& sign : signs) {
            if (line.text.find(sign.text) == std::string_view::npos) continue;
            report.*sign.fact = true;
            ++understood;
        }
        for (const Note& note : telling) {
            if (line.text.find(note.text) == std::string_view::npos) continue;
            ++understood;
            std::string text = fmt::format("{}: {}: {}", log.where(line), quoted(line.text), note.meaning);
            if (report.notes.empty() || !report.notes.back().ends_with(note.meaning))
                report.notes.push_back(std::move(text));
        }
        if (line.text.find("quantization encodings") == std::string_view::npos) continue;
        std::string_view rest = line.text;
        const auto count = take_number(rest, "Processed");
        if (!count || !(count->value >= 0 && count->value < 1e15)) continue;
        ++understood;
        report.processed = static_cast<std::uint64_t>(count->value);
        report.processed_where = log.where(line);
        report.overrides_asked = true;
    }
    return understood;
}

}  // namespace qcalib
