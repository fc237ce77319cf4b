// The tables that TIDL writes into its folder of temporary files.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "audit/tidl_log.h"
#include "base/text.h"
#include "format/tidl_params.h"

namespace qcalib {

namespace {

constexpr std::size_t parameter_columns = 11;
constexpr double codes_of_8_bits = 128;

std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, ',')) cells.emplace_back(trim(cell));
    return cells;
}

bool is_number(const std::string& cell) {
    return parse_printed_number(cell).has_value();
}

// Where the columns of a table of TensorScale and MinTensorValue stand, or nothing.
struct QuantInfoColumns {
    std::size_t name = 0;
    std::size_t type = 0;
    std::size_t scale = 0;
    std::size_t zero_point = 0;
    std::size_t min = 0;
    std::size_t max = 0;

    std::size_t last() const { return std::max({name, type, scale, zero_point, min, max}); }
};

std::optional<QuantInfoColumns> quant_info_columns(std::string_view line) {
    const std::vector<std::string> cells = cells_of(line);
    bool all = true;
    const auto place = [&](const char* title) {
        const auto found = std::find(cells.begin(), cells.end(), title);
        all &= found != cells.end();
        return static_cast<std::size_t>(found - cells.begin());
    };
    const QuantInfoColumns columns{place("OutputDataName"), place("LayerType"),
                                   place("TensorScale"),    place("TensorZeroPoint"),
                                   place("MinTensorValue"), place("MaxTensorValue")};
    return all ? std::optional<QuantInfoColumns>(columns) : std::nullopt;
}

// The element type that fits scale and range best, since the table does not have it: where min is below zero
// signed codes, else unsigned ones; of 16 bits where 8 would be too few.
int likely_element_type(const TidlTensor& tensor, const std::string& layer_type) {
    const double greatest = std::max(std::abs(tensor.min.value), std::abs(tensor.max.value));
    const bool is_signed = tensor.min.value < 0 || layer_type.find("DataLayer") != std::string::npos;
    const double codes = tensor.scale.value * greatest;
    constexpr double slack = 1.05;
    const double most = is_signed ? codes_of_8_bits : 2 * codes_of_8_bits;
    return tidl_element_code(codes > most * slack ? 16 : 8, is_signed);
}

class QuantInfoReader {
  public:
    QuantInfoReader(const LogText& log, ConverterReport& report, std::vector<std::string>& remarks)
        : log_(log), report_(report), remarks_(remarks) {}

    std::size_t read(std::size_t heading, const QuantInfoColumns& columns) {
        std::size_t understood = 1;
        for (std::size_t i = heading + 1; i < log_.lines().size(); ++i) {
            const LogLine& line = log_.lines()[i];
            if (trim(line.text).empty()) continue;
            const std::vector<std::string> cells = cells_of(line.text);
            if (cells.size() <= columns.last() || !row(line, cells, columns)) {
                remarks_.push_back(
                    fmt::format("{}: expected a row of {} cells with numbers under TensorScale, "
                                "MinTensorValue and MaxTensorValue, found {}: left out",
                                log_.where(line), columns.last() + 1, quoted(line.text)));
                continue;
            }
            ++understood;
        }
        return understood;
    }

  private:
    bool row(const LogLine& line, const std::vector<std::string>& cells, const QuantInfoColumns& columns) {
        const auto scale = parse_printed_number(cells[columns.scale]);
        const auto min = parse_printed_number(cells[columns.min]);
        const auto max = parse_printed_number(cells[columns.max]);
        if (!scale || !min || !max || cells[columns.name].empty()) return false;
        const auto zero_point = parse_printed_number(cells[columns.zero_point]);
        if (!(scale->value > 0)) return true;
        TidlTensor tensor{-1, *scale, *min, *max, 0};
        tensor.element_type = likely_element_type(tensor, cells[columns.type]);
        FoundTensor found = tidl_found(tensor, cells[columns.name], log_.where(line));
        if (zero_point && zero_point->value != 0 && !found.encodings.empty()) shift(found, zero_point->value);
        report_.add(std::move(found), false, remarks_);
        report_.shows_activations = true;
        report_.quantizer_ran = true;
        return true;
    }

    // Asymmetric codes: x = (q - zero point) / scale, q signed.
    static void shift(FoundTensor& found, double zero_point) {
        FoundEncoding& encoding = found.encodings.front();
        const double step = encoding.step();
        const double codes = std::ldexp(1.0, encoding.bits) - 1;
        const double least = zero_point > codes / 2 ? 0 : -std::ldexp(1.0, encoding.bits - 1);
        encoding.min.value = (least - zero_point) * step;
        encoding.max.value = encoding.min.value + codes * step;
    }

    const LogText& log_;
    ConverterReport& report_;
    std::vector<std::string>& remarks_;
};

// A row of paramDebug.csv: of the weights, the bias or the slope of a layer, in this order.
struct ParameterRow {
    std::int64_t layer = 0;
    PrintedNumber greatest;  // magnitude, float
    PrintedNumber scale;
};

// LayerId, meanDifference, maxDifference, meanOrigFloat, meanRelDifference, orgmax, quantizedMax,
// orgAtmaxDiff, quantizedAtMaxDiff, maxRelDifference, Scale, then counts.
std::optional<ParameterRow> parameter_row(std::string_view line) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() < parameter_columns) return std::nullopt;
    if (!std::all_of(cells.begin(), cells.begin() + parameter_columns, is_number)) return std::nullopt;
    ParameterRow row;
    const double layer = parse_printed_number(cells[0])->value;
    if (!(layer >= 0 && layer < 1e9) || layer != std::floor(layer)) return std::nullopt;
    row.layer = static_cast<std::int64_t>(layer);
    row.greatest = *parse_printed_number(cells[5]);
    row.scale = *parse_printed_number(cells[10]);
    return row;
}

bool is_parameter_heading(std::string_view line) {
    return line.find("meanDifference") != std::string_view::npos &&
           line.find("maxDifference") != std::string_view::npos;
}

// "the largest weight stands at code 128, which saturates to 127", or "".
std::string parameter_words(double codes, int bits) {
    const double half = std::ldexp(1.0, bits - 1);
    constexpr double slack = 0.01;
    if (codes > half + half * slack) {
        return fmt::format("its largest weight would stand at code {:.5g} of {:.0f}: it is clipped", codes,
                           half - 1);
    }
    if (codes > half - 0.5) {
        return fmt::format("its largest weight, where positive, saturates from code {:.0f} to {:.0f}", half,
                           half - 1);
    }
    const double coarser = std::log2(half / codes);
    if (coarser < slack) return "";
    return fmt::format(
        "its scale is coarser than its largest weight asks for by {:.3g} bits: it was held "
        "down for the bias, or for a power of two",
        coarser);
}

void add_parameter(const ParameterRow& row, std::size_t kind, const std::string& where,
                   ConverterReport& report, std::vector<std::string>& remarks) {
    if (!(row.scale.value > 0) || !(row.greatest.value > 0)) return;
    const double codes = row.scale.value * row.greatest.value;
    TidlTensor tensor;
    tensor.scale = row.scale;
    tensor.max = row.greatest;
    tensor.min = row.greatest;
    tensor.min.value = -row.greatest.value;
    tensor.element_type = tidl_element_code(codes > 4 * codes_of_8_bits ? 16 : 8, true);
    const auto known = report.tidl_layers.find(row.layer);
    const std::string layer =
        known == report.tidl_layers.end() ? fmt::format("layer {}", row.layer) : known->second;
    if (kind == 0) {
        FoundTensor found = tidl_found(tensor, tidl_weights_name(layer), where);
        found.kind = FoundTensor::Kind::parameter;
        found.role = "weight";
        found.layer = layer;
        const int bits = found.encodings.front().bits;
        report.add(std::move(found), true, remarks);
        const std::string words = parameter_words(codes, bits);
        if (!words.empty()) report.tidl_weights[tidl_weights_name(layer)] = words;
    }
    report.shows_parameters = true;
    report.quantizer_ran = true;
}

std::size_t read_parameter_rows(const LogText& log, std::size_t heading, ConverterReport& report,
                                std::vector<std::string>& remarks) {
    std::size_t understood = 1;
    std::map<std::int64_t, std::size_t> rows_of;
    for (std::size_t i = heading + 1; i < log.lines().size(); ++i) {
        const LogLine& line = log.lines()[i];
        if (trim(line.text).empty()) continue;
        const auto row = parameter_row(line.text);
        if (!row) {
            remarks.push_back(
                fmt::format("{}: expected LayerId and ten numbers up to Scale, found {}: left out",
                            log.where(line), quoted(line.text)));
            continue;
        }
        ++understood;
        add_parameter(*row, rows_of[row->layer]++, log.where(line), report, remarks);
    }
    return understood;
}

}  // namespace

std::string TidlTables::summary() const {
    return "Tables of TI's TIDL: *_quant_info.csv (OutputDataName, TensorScale, TensorZeroPoint, "
           "MinTensorValue, MaxTensorValue of each layer) and *_paramDebug.csv (LayerId, orgmax, Scale of "
           "weights and biases), known by their heading.";
}

std::size_t TidlTables::read(const LogText& log, ConverterReport& report,
                             std::vector<std::string>& remarks) const {
    for (std::size_t i = 0; i < log.lines().size(); ++i) {
        const std::string_view line = log.lines()[i].text;
        if (const auto columns = quant_info_columns(line))
            return QuantInfoReader(log, report, remarks).read(i, *columns);
        if (is_parameter_heading(line)) {
            const std::size_t understood = read_parameter_rows(log, i, report, remarks);
            report.name_tidl_data();
            return understood;
        }
    }
    return 0;
}

}  // namespace qcalib
