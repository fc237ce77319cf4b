#include "audit/tidl_log.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "format/tidl_params.h"

namespace qcalib {

namespace {

std::vector<std::string_view> tokens_of(std::string_view line) {
    std::vector<std::string_view> tokens;
    while (!(line = trim(line)).empty()) {
        const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
        tokens.push_back(line.substr(0, end));
        line.remove_prefix(end);
    }
    return tokens;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
    constexpr std::size_t most_digits = 9;
    if (text.empty() || text.size() > most_digits ||
        text.find_first_not_of("0123456789") != std::string_view::npos)
        return std::nullopt;
    std::int64_t value = 0;
    for (const char c : text) value = value * 10 + (c - '0');
    return value;
}

// A line of layer_info.txt: layer id, data id, ..., name.
struct LayerInfoLine {
    std::int64_t layer = 0;
    std::int64_t data = 0;
    std::string name;
};

std::optional<LayerInfoLine> layer_info_line(std::string_view line) {
    const std::vector<std::string_view> tokens = tokens_of(line);
    if (tokens.size() < 3) return std::nullopt;
    const auto layer = whole_number(tokens[0]);
    const auto data = whole_number(tokens[1]);
    if (!layer || !data) return std::nullopt;
    return LayerInfoLine{*layer, *data, std::string(tokens.back())};
}

// Whether all lines are those of a layer_info.txt, and it is no table of numbers: names have letters, or the
// layer ids ascend (names may be numbers too).
bool is_layer_info(const LogText& log) {
    bool letters = false;
    bool ascending = true;
    std::int64_t last = -1;
    for (const LogLine& line : log.lines()) {
        if (trim(line.text).empty()) continue;
        const auto info = layer_info_line(line.text);
        if (!info) return false;
        letters |= std::any_of(info->name.begin(), info->name.end(),
                               [](unsigned char c) { return std::isalpha(c) != 0; });
        ascending &= info->layer > last;
        last = info->layer;
    }
    return letters || (ascending && last >= 0);
}

std::size_t read_layer_info(const LogText& log, ConverterReport& report, std::vector<std::string>& remarks) {
    std::size_t understood = 0;
    for (const LogLine& line : log.lines()) {
        const auto info = layer_info_line(line.text);
        if (!info) continue;
        ++understood;
        report.tidl_layers[info->layer] = info->name;
        const auto [known, is_new] = report.tidl_names.emplace(info->data, info->name);
        if (!is_new && known->second != info->name) {
            remarks.push_back(fmt::format("{}: data {} is called '{}', but '{}' before: the first holds",
                                          log.where(line), info->data, printable(info->name),
                                          printable(known->second)));
        }
    }
    return understood;
}

// Whether a line starts as one of debug_level 3 does and is none: an id and a number with five decimals.
bool looks_like_line(std::string_view line) {
    const std::vector<std::string_view> tokens = tokens_of(line);
    if (tokens.size() < 2 || !whole_number(tokens[0])) return false;
    const std::size_t point = tokens[1].find('.');
    return point != std::string_view::npos && tokens[1].size() >= point + 6 &&
           tokens[1].find_first_not_of("0123456789.-") == std::string_view::npos && tokens.size() <= 6;
}

// The end of a grid with what the printed scale leaves open.
PrintedNumber grid_end(double code, const PrintedNumber& scale) {
    PrintedNumber end;
    end.value = code / scale.value + 0.0;
    end.half_unit = std::abs(end.value) * (scale.half_unit / scale.value);
    return end;
}

}  // namespace

FoundTensor tidl_found(const TidlTensor& tensor, std::string name, std::string where) {
    FoundTensor found;
    found.name = name.empty() ? fmt::format("data {}", tensor.data_id) : std::move(name);
    found.kind = FoundTensor::Kind::activation;
    found.where = std::move(where);
    found.tidl = tensor;
    const TidlElement type = *tidl_element(tensor.element_type);
    if (type.is_float) {
        found.data_type = "float";
        return found;
    }
    FoundEncoding& encoding = found.encodings.emplace_back();
    encoding.bits = std::min(type.bits, 32);
    if (!(tensor.scale.value > 0) || !std::isfinite(tensor.scale.value)) return found;
    const double half = type.is_signed ? std::ldexp(1.0, encoding.bits - 1) : 0;
    encoding.min = grid_end(-half, tensor.scale);
    encoding.max = grid_end(std::ldexp(1.0, encoding.bits) - 1 - half, tensor.scale);
    return found;
}

std::string TidlLog::summary() const {
    return "What TI's TIDL prints at debug_level 3 while it writes traces: a line of data id, scale (a "
           "multiplier), min, max and element type for each layer, printed by '%3d %10.5f %10.5f %10.5f %d', "
           "whose numbers may touch; and *.layer_info.txt, which has the name of each data id.";
}

std::size_t TidlLog::read(const LogText& log, ConverterReport& report,
                          std::vector<std::string>& remarks) const {
    if (is_layer_info(log)) {
        const std::size_t understood = read_layer_info(log, report, remarks);
        report.name_tidl_data();
        return understood;
    }
    std::size_t understood = 0;
    for (const LogLine& line : log.lines()) {
        const auto tensor = parse_tidl_line(line.text);
        if (!tensor) {
            if (looks_like_line(line.text)) {
                remarks.push_back(
                    fmt::format("{}: expected 'data id, scale, min, max, element type (0 to 8)', "
                                "found {}: left out",
                                log.where(line), quoted(line.text)));
            }
            continue;
        }
        ++understood;
        report.add(tidl_found(*tensor, "", log.where(line)), true, remarks);
        report.shows_activations = true;
        report.quantizer_ran = true;
    }
    if (understood > 0) report.name_tidl_data();
    return understood;
}

bool read_tidl_params(const LogText& log, ConverterReport& report, std::vector<std::string>& remarks) {
    if (!is_tidl_params(log.text())) return false;
    const TidlNetParams params = parse_tidl_params(log.text(), log.name());
    const std::string file = printable(log.name());
    const auto add = [&](const TidlTensorParams& one, const std::string& name, const std::string& layer,
                         bool weights) {
        if (one.scale.empty() || !one.min || !one.max) return;
        TidlTensor tensor;
        tensor.scale.value = one.scale.front();
        tensor.min.value = one.min->value;
        tensor.max.value = one.max->value;
        tensor.element_type = one.element_type ? static_cast<int>(one.element_type->value) : 0;
        // The file of a run with signed weights may say 0, the default: weights are always signed.
        if (weights && (tensor.element_type == 0 || tensor.element_type == 2)) ++tensor.element_type;
        FoundTensor found = tidl_found(tensor, name, fmt::format("{}:{}", file, one.line));
        found.layer = layer;
        if (weights) {
            found.kind = FoundTensor::Kind::parameter;
            found.role = "weight";
        }
        report.add(std::move(found), true, remarks);
    };
    for (const TidlLayerParams& layer : params.layers) {
        for (std::size_t i = 0; i < layer.outputs.size(); ++i) {
            if (layer.type == "TIDL_DataLayer" && layer.outputs[i].scale.empty()) continue;
            add(layer.outputs[i], i == 0 ? layer.name : fmt::format("{}.output{}", layer.name, i), layer.name,
                false);
        }
        for (const TidlTensorParams& weights : layer.weights)
            add(weights, tidl_weights_name(layer.name), layer.name, true);
    }
    report.shows_activations = true;
    report.shows_parameters = true;
    report.quantizer_ran = true;
    for (const std::string& objection : tidl_objections(params))
        report.notes.push_back(file + ": " + objection);
    return true;
}

}  // namespace qcalib
