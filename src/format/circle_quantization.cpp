// Encodings inside a quantized .circle or .tflite model.
#include "format/circle_quantization.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/format_reader.h"
#include "graph/circle_file.h"
#include "target/circle_arithmetic.h"
#include "target/target.h"

namespace qcalib {

namespace {

constexpr std::array<std::string_view, 5> code_names{"uint8", "int8", "int16", "int32", "int64"};

int bits_of_dtype(const std::string& dtype) {
    if (dtype == "uint8" || dtype == "int8") return 8;
    return dtype == "int16" ? 16 : dtype == "int32" ? circle_bias_bits_8 : circle_bias_bits_16;
}

// One with codes stored signed.
Encoding signed_encoding(double scale, std::int64_t zero_point, int bits) {
    const std::int64_t half = std::int64_t{1} << (bits - 1);
    Encoding encoding;
    encoding.bits = bits;
    encoding.scale = scale;
    encoding.offset = -zero_point - half;
    encoding.min = static_cast<double>(encoding.offset) * scale;
    encoding.max = static_cast<double>(half - 1 - zero_point) * scale;
    encoding.symmetric = zero_point == 0;
    return encoding;
}

std::optional<std::string> code_name(DataType type) {
    const std::string name(name_of(type));
    for (const std::string_view known : code_names) {
        if (known == name) return name;
    }
    return std::nullopt;
}

// What the file says of one tensor, or a fault.
std::optional<FileEntry> entry_of(const Value& value, const CircleQuantization& quantization,
                                  std::vector<EntryFault>& faults) {
    FileEntry entry;
    entry.encoding.tensor = value.name;
    entry.section = value.initializer ? Section::parameter : Section::activation;
    const std::optional<std::string> dtype = code_name(value.declared_type);
    if (!dtype) return std::nullopt;
    const std::size_t count = quantization.scale.size();
    if (quantization.zero_point.size() != count) {
        faults.push_back({value.name, 0,
                          fmt::format("expected as many zero points as scales, {}, found {}", count,
                                      quantization.zero_point.size())});
        return std::nullopt;
    }
    if (count > 1) entry.encoding.axis = quantization.quantized_dimension;
    for (std::size_t i = 0; i < count; ++i) {
        const std::optional<Encoding> one =
            circle_file_encoding(quantization.scale[i], quantization.zero_point[i], *dtype);
        if (!one) {
            faults.push_back(
                {value.name, 0,
                 fmt::format("expected a zero point of {}, found {}", *dtype, quantization.zero_point[i])});
            return std::nullopt;
        }
        entry.encoding.encodings.push_back(*one);
    }
    return entry;
}

FileEntry range_entry(const Value& value, const CircleQuantization& quantization, const CircleRules& rules) {
    FileEntry entry;
    entry.encoding.tensor = value.name;
    entry.section = value.initializer ? Section::parameter : Section::activation;
    entry.encoding.encodings = {
        circle_encoding({quantization.min.front(), quantization.max.front()}, 8, rules)};
    return entry;
}

class CircleModelFormat final : public Format {
  public:
    std::string name() const override { return "circle-model"; }
    std::string summary() const override {
        return "What a quantized .circle or .tflite model holds of its tensors (scale, zero_point, "
               "quantized_dimension), or the min and max that record-minmax leaves in a float one.";
    }
    std::string limits() const override { return "Is only read; circle-quantizer and q-implant write it."; }
    std::string suffix() const override { return ".circle"; }
    bool writable() const override { return false; }
    int recognise(const FormatReader& /*reader*/) const override { return 0; }  // no text: see read_encodings
    void read(FormatReader& /*reader*/) const override {}

  protected:
    std::string write(const EncodingFile& /*file*/, Remarks& /*remarks*/) const override { return ""; }
};

}  // namespace

std::optional<Encoding> circle_file_encoding(float scale, std::int64_t zero_point, const std::string& dtype) {
    if (std::ranges::count(code_names, dtype) == 0) return std::nullopt;
    const int bits = bits_of_dtype(dtype);
    if (dtype == "uint8") {
        if (zero_point < 0 || zero_point > 255) return std::nullopt;
        return circle_encoding_of(scale, zero_point, bits);
    }
    if (bits > 16) {
        if (zero_point != 0) return std::nullopt;
        return circle_encoding_of(scale, 0, bits);
    }
    const std::int64_t half = std::int64_t{1} << (bits - 1);
    if (zero_point < -half || zero_point >= half) return std::nullopt;
    return signed_encoding(scale, zero_point, bits);
}

bool holds_circle_model(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    std::array<char, 8> start{};
    stream.read(start.data(), start.size());
    return stream.gcount() == static_cast<std::streamsize>(start.size()) &&
           is_circle_file(std::as_bytes(std::span(start)));
}

EncodingFile read_circle_quantization(const std::filesystem::path& path, Remarks& remarks) {
    const CircleFile circle = read_circle_file(path);
    const std::shared_ptr<const CircleRules> rules = load_target("circle").circle;
    EncodingFile file;
    file.path = path;
    file.format = circle_model_format().name();
    file.version = fmt::format("{}", circle.schema_version);
    std::vector<EntryFault> faults;
    std::vector<FileEntry> ranges;
    const std::vector<Value>& values = circle.model.graph->values;
    for (ValueId value = 0; value < values.size(); ++value) {
        const CircleQuantization& quantization = circle.tensors[value].quantization;
        if (!quantization.scale.empty()) {
            if (std::optional<FileEntry> entry = entry_of(values[value], quantization, faults))
                file.entries.push_back(std::move(*entry));
        } else if (!quantization.min.empty() && !quantization.max.empty()) {
            ranges.push_back(range_entry(values[value], quantization, *rules));
        }
    }
    for (const EntryFault& fault : faults) remarks.add(describe(path, fault));
    const std::string shown = printable(path.string());
    if (file.entries.empty() && !ranges.empty()) {
        remarks.add(
            fmt::format("{}: holds ranges of {} tensors and no scales, as record-minmax leaves it: shown "
                        "as uint8 gives them",
                        shown, ranges.size()));
        file.entries = std::move(ranges);
    }
    if (file.entries.empty())
        fail("{}: expected a quantized model, found one whose tensors have neither scales nor ranges", shown);
    return file;
}

const Format& circle_model_format() {
    static const CircleModelFormat format;
    return format;
}

}  // namespace qcalib
