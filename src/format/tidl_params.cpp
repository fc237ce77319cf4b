#include "format/tidl_params.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "format/text_proto.h"

namespace qcalib {

namespace {

constexpr std::array elements = {TidlElement{8, false, false, "unsigned 8 bit"},
                                 TidlElement{8, true, false, "signed 8 bit"},
                                 TidlElement{16, false, false, "unsigned 16 bit"},
                                 TidlElement{16, true, false, "signed 16 bit"},
                                 TidlElement{32, false, false, "unsigned 32 bit"},
                                 TidlElement{32, true, false, "signed 32 bit"},
                                 TidlElement{32, true, true, "float"},
                                 TidlElement{64, false, false, "unsigned 64 bit"},
                                 TidlElement{64, true, false, "signed 64 bit"}};

const std::vector<std::string> net_fields = {"num_layers", "quant_type", "calib_type", "layers"};
const std::vector<std::string> layer_fields = {"layer_name", "layer_type", "bit_depth", "outputs",
                                               "weights",    "bias",       "slope"};
const std::vector<std::string> tensor_fields = {"min",   "max",        "size", "element_type",
                                                "scale", "zero_point", "value"};

std::string shown_value(const TextProtoField& field) {
    if (field.is_message()) return "a message";
    if (field.scalars.empty()) return "an empty list";
    const TextProtoScalar& first = field.scalars.front();
    const bool text = first.kind == TextProtoScalar::Kind::text;
    return fmt::format("{}{}{}", text ? "\"" : "", printable(first.text.substr(0, 40)), text ? "\"" : "");
}

// Reads messages into the structures; keeps faults and unknown fields.
class TidlParamsReader {
  public:
    TidlParamsReader(std::string_view text, std::vector<EntryFault>& faults) : text_(text), faults_(faults) {}

    TidlNetParams read(const TextProtoMessage& message) {
        TidlNetParams net;
        for (const TextProtoField& field : message.fields) {
            if (field.name == "num_layers") {
                net.num_layers = whole(field);
            } else if (field.name == "quant_type") {
                net.quant_type = word(field, {"SYMMETRIC", "ASYMMETRIC"});
            } else if (field.name == "calib_type") {
                net.calib_type = word(field, {"PERTENSOR", "PERCHANNEL"});
            } else if (field.name == "layers") {
                for (const TextProtoMessage& one : messages(field)) net.layers.push_back(layer(one));
            } else {
                unknown(field, net_fields, "of the network");
            }
        }
        net.unknown = std::move(unknown_);
        return net;
    }

  private:
    void fault(std::size_t line, std::string text) { faults_.push_back({layer_, line, std::move(text)}); }

    // Misspelt fields are faults, others are kept.
    bool unknown(const TextProtoField& field, const std::vector<std::string>& known, std::string_view where) {
        const std::string near = did_you_mean(field.name, known);
        if (near.empty()) {
            unknown_.push_back(fmt::format("'{}' (line {})", printable(field.name), field.line));
            return true;
        }
        fault(field.line, fmt::format("expected one of the fields {} {}, found '{}'{}", join(known, ", "),
                                      where, printable(field.name), near));
        return false;
    }

    const std::vector<TextProtoMessage>& messages(const TextProtoField& field) {
        if (!field.is_message())
            fault(field.line,
                  fmt::format("{}: expected a message {{ ... }}, found {}", field.name, shown_value(field)));
        return field.messages;
    }

    // The one value of a field, or nullptr.
    const TextProtoScalar* single(const TextProtoField& field, std::string_view expected) {
        if (!field.is_message() && field.scalars.size() == 1) return &field.scalars.front();
        fault(field.line, fmt::format("{}: expected {}, found {}", field.name, expected,
                                      field.scalars.size() > 1 ? "a list" : shown_value(field)));
        return nullptr;
    }

    std::optional<TidlNumber> number(const TextProtoField& field, bool is_whole) {
        const char* expected = is_whole ? "a whole number" : "a number";
        const TextProtoScalar* scalar = single(field, expected);
        if (scalar == nullptr) return std::nullopt;
        const std::optional<double> value = scalar->number();
        constexpr double greatest = 4294967295.0;
        const bool good =
            value && (!is_whole || (*value >= 0 && *value <= greatest && *value == std::floor(*value)));
        if (!good || std::isnan(*value)) {
            fault(scalar->line,
                  fmt::format("{}: expected {}, found {}", field.name, expected, shown_value(field)));
            return std::nullopt;
        }
        return TidlNumber{*value, scalar->begin, scalar->end, scalar->line, field.begin};
    }

    std::optional<double> whole(const TextProtoField& field) {
        const std::optional<TidlNumber> found = number(field, true);
        return found ? std::optional<double>(found->value) : std::nullopt;
    }

    std::string word(const TextProtoField& field, const std::vector<std::string>& choices) {
        const std::string expected = join(choices, " or ");
        const TextProtoScalar* scalar = single(field, expected);
        if (scalar == nullptr) return choices.front();
        for (std::size_t i = 0; i < choices.size(); ++i) {
            const bool is_it = scalar->text == choices[i] || scalar->text == std::to_string(i + 1);
            if (is_it && scalar->kind != TextProtoScalar::Kind::text) return choices[i];
        }
        fault(scalar->line, fmt::format("{}: expected {}, found {}{}", field.name, expected,
                                        shown_value(field), did_you_mean(scalar->text, choices)));
        return choices.front();
    }

    std::string text(const TextProtoField& field) {
        const TextProtoScalar* scalar = single(field, "a text in quotes");
        if (scalar == nullptr) return "";
        if (scalar->kind == TextProtoScalar::Kind::text) return scalar->text;
        fault(scalar->line,
              fmt::format("{}: expected a text in quotes, found {}", field.name, shown_value(field)));
        return "";
    }

    void numbers(const TextProtoField& field, std::vector<double>& values) {
        if (field.is_message()) {
            fault(field.line, fmt::format("{}: expected numbers, found a message", field.name));
            return;
        }
        for (const TextProtoScalar& scalar : field.scalars) {
            const std::optional<double> value = scalar.number();
            if (value && !std::isnan(*value)) {
                values.push_back(*value);
            } else {
                fault(scalar.line, fmt::format("{}: expected a number, found '{}'", field.name,
                                               printable(scalar.text.substr(0, 40))));
            }
        }
    }

    TidlLayerParams layer(const TextProtoMessage& message) {
        TidlLayerParams result;
        result.line = message.line;
        layer_.clear();
        for (const TextProtoField& field : message.fields) {
            if (field.name == "layer_name") layer_ = result.name = text(field);
        }
        for (const TextProtoField& field : message.fields) {
            if (field.name == "layer_name") continue;
            if (field.name == "layer_type") {
                result.type = text(field);
            } else if (field.name == "bit_depth") {
                result.bit_depth = whole(field);
            } else if (std::vector<TidlTensorParams>* tensors = tensors_of(result, field.name)) {
                for (const TextProtoMessage& one : messages(field)) tensors->push_back(tensor(one));
            } else {
                unknown(field, layer_fields, "of a layer");
            }
        }
        if (result.name.empty()) fault(message.line, "a layer without layer_name: expected one");
        layer_.clear();
        return result;
    }

    static std::vector<TidlTensorParams>* tensors_of(TidlLayerParams& layer, std::string_view field) {
        if (field == "outputs") return &layer.outputs;
        if (field == "weights") return &layer.weights;
        if (field == "bias") return &layer.bias;
        return field == "slope" ? &layer.slope : nullptr;
    }

    TidlTensorParams tensor(const TextProtoMessage& message) {
        TidlTensorParams result;
        result.line = message.line;
        for (const TextProtoField& field : message.fields) {
            if (field.name == "min") {
                result.min = number(field, false);
            } else if (field.name == "max") {
                result.max = number(field, false);
            } else if (field.name == "size") {
                result.size = number(field, true);
            } else if (field.name == "element_type") {
                result.element_type = element_type(field);
            } else if (field.name == "scale") {
                numbers(field, result.scale);
            } else if (field.name == "zero_point") {
                numbers(field, result.zero_point);
            } else if (field.name == "value") {
                numbers(field, result.value);
            } else if (unknown(field, tensor_fields, "of a tensor")) {
                result.unknown.push_back(
                    {field.name, std::string(text_.substr(field.begin, field.end - field.begin))});
            }
        }
        return result;
    }

    std::optional<TidlNumber> element_type(const TextProtoField& field) {
        std::optional<TidlNumber> found = number(field, true);
        if (!found || tidl_element(found->value)) return found;
        fault(found->line,
              fmt::format("element_type: expected 0 (unsigned 8 bit) to 8, found {:.0f}", found->value));
        return std::nullopt;
    }

    std::string_view text_;
    std::vector<EntryFault>& faults_;
    std::vector<std::string> unknown_;
    std::string layer_;
};

std::string place_of(const TidlLayerParams& layer, std::string_view what, std::size_t line) {
    return fmt::format("line {}: '{}' ({}) {}", line, printable(layer.name), printable(layer.type), what);
}

void object_to(const TidlLayerParams& layer, std::string_view what, const TidlTensorParams& tensor,
               std::vector<std::string>& objections) {
    constexpr double unset = std::numeric_limits<float>::max();
    const auto missing = [&](const std::optional<TidlNumber>& number) {
        return !number || std::abs(number->value) >= unset;
    };
    const std::string place = place_of(layer, what, tensor.line);
    if (missing(tensor.max)) objections.push_back(place + ": no max, so TIDL calibrates all layers anew");
    if (missing(tensor.min)) {
        objections.push_back(place +
                             ": no min; its default, -3.4e38, passes TIDL's test and makes the scale 0");
    }
    if (tensor.min && tensor.max && tensor.min->value > tensor.max->value) {
        objections.push_back(fmt::format("{}: expected min <= max, found {} and {}", place, tensor.min->value,
                                         tensor.max->value));
    }
    if (what != "bias") return;
    const auto values = static_cast<double>(tensor.value.size());
    if (!tensor.size || tensor.size->value != values) {
        objections.push_back(fmt::format("{}: expected as many values as size says ({}), found {}", place,
                                         tensor.size ? fmt::format("{:.0f}", tensor.size->value) : "none",
                                         values));
    }
}

}  // namespace

std::optional<TidlElement> tidl_element(double code) {
    if (!(code >= 0 && code < static_cast<double>(elements.size())) || code != std::floor(code))
        return std::nullopt;
    return elements[static_cast<std::size_t>(code)];
}

int tidl_element_code(int bits, bool is_signed) {
    return (bits > 8 ? 2 : 0) + (is_signed ? 1 : 0);
}

Encoding tidl_grid(double scale, int bits, bool is_signed) {
    Encoding encoding;
    encoding.bits = bits;
    encoding.symmetric = true;
    encoding.scale = 1 / scale;
    encoding.offset = is_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
    encoding.min = encoding.scale * static_cast<double>(encoding.offset);
    encoding.max = encoding.min + encoding.scale * (std::ldexp(1.0, bits) - 1);
    return encoding;
}

Encoding tidl_encoding(double min, double max, int bits, bool is_signed) {
    const double end = is_signed ? std::max(std::abs(min), std::abs(max)) : max;
    return tidl_grid(std::ldexp(1.0, is_signed ? bits - 1 : bits) / end, bits, is_signed);
}

double tidl_range_end(const Encoding& encoding) {
    return std::ldexp(encoding.scale, tidl_unsigned(encoding) ? encoding.bits : encoding.bits - 1);
}

std::string tidl_number(double value) {
    return fmt::format("{:.9g}", static_cast<double>(static_cast<float>(value)) + 0.0);
}

TidlNetParams parse_tidl_params(std::string_view text, const std::filesystem::path& path,
                                std::vector<EntryFault>& faults) {
    return TidlParamsReader(text, faults).read(parse_text_proto(text, path));
}

TidlNetParams parse_tidl_params(std::string_view text, const std::filesystem::path& path) {
    std::vector<EntryFault> faults;
    TidlNetParams params = parse_tidl_params(text, path, faults);
    std::stable_sort(faults.begin(), faults.end(),
                     [](const EntryFault& a, const EntryFault& b) { return a.line < b.line; });
    std::vector<std::string> lines;
    for (const EntryFault& fault : faults) lines.push_back(describe(path, fault));
    if (!lines.empty()) throw Error(join(lines, "\n"));
    return params;
}

std::vector<std::string> tidl_objections(const TidlNetParams& params) {
    std::vector<std::string> objections;
    const auto blocks = static_cast<double>(params.layers.size());
    if (!params.num_layers || *params.num_layers != blocks) {
        objections.push_back(fmt::format(
            "num_layers: expected {}, as many as there are layers, found {}: TIDL looks at no more of them",
            blocks, params.num_layers ? fmt::format("{}", *params.num_layers) : "none"));
    }
    for (const TidlLayerParams& layer : params.layers) {
        if (layer.outputs.empty()) objections.push_back(place_of(layer, "has no outputs", layer.line));
        for (const TidlTensorParams& one : layer.outputs) object_to(layer, "outputs", one, objections);
        for (const TidlTensorParams& one : layer.weights) object_to(layer, "weights", one, objections);
        for (const TidlTensorParams& one : layer.bias) object_to(layer, "bias", one, objections);
    }
    return objections;
}

bool is_tidl_params(std::string_view text) {
    for (const std::string& row : split(text.substr(0, 4000), '\n')) {
        const std::string_view line = trim(row);
        if (line.empty() || line.starts_with('#')) continue;
        const std::string word(line.substr(0, line.find_first_of(" \t:{<")));
        return word != line && std::find(net_fields.begin(), net_fields.end(), word) != net_fields.end();
    }
    return false;
}

}  // namespace qcalib
