#include "audit/dlc_info.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "audit/tensor_names.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr std::string_view type_marker = " (data type:";
constexpr std::string_view encoding_marker = " encoding";
constexpr std::string_view channel_marker = "for channel_";

// What a cell "NAME (data type: sFxp_8; tensor dimension: [1,3]; tensor type: STATIC)" says.
struct TypeCell {
    std::string name;
    std::string data_type;
    bool parameter = false;
};

std::optional<TypeCell> parse_type(std::string_view cell) {
    const std::size_t at = cell.find(type_marker);
    if (at == std::string_view::npos) return std::nullopt;
    TypeCell type;
    type.name = trim(cell.substr(0, at));
    std::string_view rest = cell.substr(at + type_marker.size());
    type.data_type = trim(rest.substr(0, rest.find_first_of(";)")));
    const std::size_t kind = rest.find("tensor type:");
    type.parameter = kind != std::string_view::npos && rest.substr(kind).find("STATIC") < 20;
    if (type.name.empty()) return std::nullopt;
    return type;
}

// What a cell "NAME encoding : bitwidth 8, min .., max .., scale .., offset .." says; 1.x has "delta" for
// "scale", and the width at the end.
struct EncodingCell {
    std::string name;
    std::size_t channel = 0;
    bool per_channel = false;
    std::optional<FoundEncoding> encoding;  // nothing where a field is missing
};

// Tools print each number of a cell with the same number of decimals, but some leave zeros at the end out, so
// that "0.0" may be as exact as its neighbours. %g instead prints equally many digits.
void share_precision(FoundEncoding& encoding) {
    constexpr int digits_of_g = 6;
    std::vector<PrintedNumber*> numbers = {&encoding.min, &encoding.max};
    if (encoding.scale) numbers.push_back(&*encoding.scale);
    const auto more_digits = [](const PrintedNumber* a, const PrintedNumber* b) {
        return a->digits < b->digits;
    };
    const auto more_decimals = [](const PrintedNumber* a, const PrintedNumber* b) {
        return a->decimals < b->decimals;
    };
    const int digits = (*std::max_element(numbers.begin(), numbers.end(), more_digits))->digits;
    const int decimals = (*std::max_element(numbers.begin(), numbers.end(), more_decimals))->decimals;
    if (digits <= digits_of_g) return;
    for (PrintedNumber* number : numbers) {
        number->decimals = decimals;
        number->half_unit = 0.5 * std::pow(10.0, -decimals);
    }
}

std::optional<FoundEncoding> parse_fields(std::string_view text) {
    const auto number = [&](std::string_view key) {
        std::string_view rest = text;
        return take_number(rest, key);
    };
    const auto bits = number("bitwidth");
    const auto min = number("min");
    const auto max = number("max");
    if (!bits || !min || !max) return std::nullopt;
    if (!(bits->value >= 0 && bits->value <= 64) || bits->value != std::floor(bits->value))
        return std::nullopt;
    FoundEncoding encoding;
    encoding.bits = static_cast<int>(bits->value);
    encoding.min = *min;
    encoding.max = *max;
    encoding.scale = number("scale");
    if (!encoding.scale) encoding.scale = number("delta");
    encoding.offset = number("offset");
    share_precision(encoding);
    return encoding;
}

std::optional<EncodingCell> parse_encoding(std::string_view cell) {
    const std::size_t at = cell.find(encoding_marker);
    if (at == std::string_view::npos || at == 0) return std::nullopt;
    std::string_view rest = trim(cell.substr(at + encoding_marker.size()));
    EncodingCell parsed;
    parsed.name = trim(cell.substr(0, at));
    if (rest.starts_with(channel_marker)) {
        const std::string_view digits = rest.substr(channel_marker.size());
        std::string_view line = rest;
        const auto channel = take_number(line, channel_marker);
        if (!channel && digits.find(':') == std::string_view::npos) return std::nullopt;
        const auto number = parse_printed_number(digits.substr(0, digits.find_first_of(": ")));
        if (!number || number->value < 0 || number->value > 1e7) return std::nullopt;
        parsed.channel = static_cast<std::size_t>(number->value);
        parsed.per_channel = true;
        rest = digits.substr(std::min(digits.find(':'), digits.size()));
    }
    if (!rest.starts_with(':')) return std::nullopt;
    parsed.encoding = parse_fields(rest);
    return parsed;
}

// Puts the cells of the tables together.
class TableReader {
  public:
    TableReader(const LogText& log, ConverterReport& report, std::vector<std::string>& remarks)
        : log_(log), report_(report), remarks_(remarks) {}

    std::size_t understood() const { return understood_; }

    void take(const LogLine& line) {
        const std::vector<std::string> cells = split(line.text, '|');
        take_layer(cells);
        for (const std::string& cell : cells) take_cell(line, trim(cell));
    }

    void finish() {
        for (FoundTensor& tensor : tensors_) {
            if (const auto type = types_.find(tensor.name); type != types_.end()) {
                tensor.data_type = type->second.data_type;
                tensor.kind =
                    type->second.parameter ? FoundTensor::Kind::parameter : FoundTensor::Kind::activation;
            } else if (names_parameter(tensor.name)) {
                tensor.kind = FoundTensor::Kind::parameter;
            }
            normalise_signed_storage(tensor);
            (tensor.kind == FoundTensor::Kind::parameter ? report_.shows_parameters
                                                         : report_.shows_activations) = true;
            report_.add(std::move(tensor), false, remarks_);
        }
        add_float_tensors();
    }

  private:
    // "| 3 | conv1 | Conv2d | ...": the rows that follow belong to this layer.
    void take_layer(const std::vector<std::string>& cells) {
        constexpr std::size_t least_cells = 4;
        if (cells.size() < least_cells) return;
        const std::string_view id = trim(cells[1]);
        const bool number = !id.empty() && id.find_first_not_of("0123456789") == std::string_view::npos;
        if (number) layer_ = trim(cells[2]);
    }

    void take_cell(const LogLine& line, std::string_view cell) {
        if (auto type = parse_type(cell)) {
            ++understood_;
            const std::string name = type->name;
            if (types_.emplace(name, std::move(*type)).second) typed_.push_back({name, log_.where(line)});
        } else if (cell.find("axis-quant:") != std::string_view::npos) {
            take_axis(cell);
        } else if (auto encoding = parse_encoding(cell)) {
            take_encoding(line, std::move(*encoding));
        }
    }

    void take_axis(std::string_view cell) {
        ++understood_;
        if (const auto count = take_number(cell, "num_elements"); count && count->value > 0 && last_ != none)
            tensors_[last_].channels = static_cast<std::size_t>(count->value);
    }

    void take_encoding(const LogLine& line, EncodingCell cell) {
        if (!cell.encoding) {
            remarks_.push_back(
                fmt::format("{}: expected 'bitwidth .., min .., max ..' of '{}', found {}: left out",
                            log_.where(line), printable(cell.name), quoted(line.text)));
            return;
        }
        ++understood_;
        const bool role = cell.name == "weight" || cell.name == "weights" || cell.name == "bias";
        const std::string key = role ? layer_ + "\n" + cell.name : cell.name;
        const auto [place, fresh] = places_.emplace(key, tensors_.size());
        last_ = place->second;
        if (fresh) tensors_.push_back(tensor_of(line, cell, role));
        FoundTensor& tensor = tensors_[last_];
        if (cell.per_channel && !tensor.channels) tensor.channels = cell.channel + 1;
        if (tensor.channels) tensor.channels = std::max(*tensor.channels, cell.channel + 1);
        if (cell.channel == tensor.encodings.size()) tensor.encodings.push_back(*cell.encoding);
    }

    FoundTensor tensor_of(const LogLine& line, const EncodingCell& cell, bool role) const {
        FoundTensor tensor;
        tensor.name = role && !layer_.empty() ? layer_ + ":" + cell.name : cell.name;
        tensor.layer = layer_;
        if (role) {
            tensor.role = cell.name == "bias" ? "bias" : "weight";
            tensor.kind = FoundTensor::Kind::parameter;
        }
        tensor.where = log_.where(line);
        return tensor;
    }

    // Tensors with a float type and no encoding.
    void add_float_tensors() {
        for (const auto& [name, where] : typed_) {
            const TypeCell& type = types_.at(name);
            if (!type.data_type.starts_with("Float") || places_.contains(name)) continue;
            FoundTensor tensor;
            tensor.name = name;
            tensor.kind = type.parameter ? FoundTensor::Kind::parameter : FoundTensor::Kind::activation;
            tensor.data_type = type.data_type;
            tensor.where = where;
            report_.add(std::move(tensor), false, remarks_);
        }
    }

    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    struct Place {
        std::string name;
        std::string where;
    };

    const LogText& log_;
    ConverterReport& report_;
    std::vector<std::string>& remarks_;
    std::string layer_;
    std::unordered_map<std::string, TypeCell> types_;
    std::vector<Place> typed_;
    std::unordered_map<std::string, std::size_t> places_;
    std::vector<FoundTensor> tensors_;
    std::size_t last_ = none;
    std::size_t understood_ = 0;
};

}  // namespace

std::string DlcInfo::summary() const {
    return "The tables of snpe-dlc-info and qairt-dlc-info: 'NAME encoding : bitwidth 8, min .., max .., "
           "scale .., "
           "offset ..' for each tensor, 'NAME encoding for channel_0: ..' and 'axis-quant: .. num_elements: "
           "N' where "
           "a weight has an encoding per channel, 'NAME (data type: sFxp_8; ..; tensor type: STATIC)' for "
           "its type; "
           "1.x prints 'weight encoding: min .., max .., delta .., offset .. bitwidth 8' in the row of the "
           "layer. A "
           "tensor is shown by the layer that makes it and by those that read it: the first counts.";
}

std::size_t DlcInfo::read(const LogText& log, ConverterReport& report,
                          std::vector<std::string>& remarks) const {
    TableReader tables(log, report, remarks);
    for (const LogLine& line : log.lines()) tables.take(line);
    tables.finish();
    return tables.understood();
}

}  // namespace qcalib
