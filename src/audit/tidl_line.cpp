#include "audit/tidl_line.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "format/tidl_params.h"

namespace qcalib {

namespace {

constexpr std::size_t printed_decimals = 5;

void skip_blanks(std::string_view& text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

std::size_t digits_at(std::string_view text) {
    std::size_t count = 0;
    while (count < text.size() && std::isdigit(static_cast<unsigned char>(text[count])) != 0) ++count;
    return count;
}

// A whole number of at most nine digits that something else follows.
std::optional<std::int64_t> take_id(std::string_view& text) {
    constexpr std::size_t most_digits = 9;
    const std::size_t digits = digits_at(text);
    if (digits == 0 || digits > most_digits) return std::nullopt;
    std::int64_t value = 0;
    for (const char c : text.substr(0, digits)) value = value * 10 + (c - '0');
    text.remove_prefix(digits);
    return value;
}

// A number printed by %10.5f.
std::optional<PrintedNumber> take_fixed(std::string_view& text) {
    skip_blanks(text);
    const std::size_t sign = text.starts_with('-') ? 1 : 0;
    for (const std::string_view word : {"inf", "nan"}) {
        if (!text.substr(sign).starts_with(word)) continue;
        const auto number = parse_printed_number(text.substr(0, sign + word.size()));
        text.remove_prefix(sign + word.size());
        return number;
    }
    const std::size_t whole = digits_at(text.substr(sign));
    const std::size_t point = sign + whole;
    if (whole == 0 || point >= text.size() || text[point] != '.') return std::nullopt;
    if (digits_at(text.substr(point + 1)) < printed_decimals) return std::nullopt;
    const std::size_t size = point + 1 + printed_decimals;
    const auto number = parse_printed_number(text.substr(0, size));
    text.remove_prefix(size);
    return number;
}

std::string digits_of(double value) {
    return fmt::format("{:.7g}", value);
}

// "by 1 bit", "by 0.15 bits".
std::string bits_text(double bits) {
    const double rounded = std::round(bits * 100) / 100;
    return fmt::format("{:g} bit{}", rounded, rounded == 1 ? "" : "s");
}

std::string range_words(const TidlTensor& tensor, const TidlElement& type) {
    constexpr double least = 0.01;
    const std::string range =
        fmt::format("min and max, {} to {},", digits_of(tensor.min.value), digits_of(tensor.max.value));
    if (tensor.is_untouched_default()) {
        return "; " + range +
               " are the untouched default of a data layer, no range: the scale of an input is 128 / "
               "2^ceil(log2(greatest magnitude of the calibration frames)), its codes always signed";
    }
    const std::optional<double> coarser = tensor.coarser_by();
    if (!coarser) return "; " + range + " give no scale";
    const double greatest = std::max(std::abs(tensor.min.value), std::abs(tensor.max.value));
    const double asked = std::ldexp(1.0, type.is_signed ? type.bits - 1 : type.bits) /
                         (type.is_signed ? greatest : tensor.max.value);
    if (std::abs(*coarser) < least) return "; " + range + " ask for just that scale";
    if (*coarser < 0) {
        return fmt::format("; {} ask for scale {}: it is finer by {}, and the range saturates", range,
                           digits_of(asked), bits_text(-*coarser));
    }
    return fmt::format("; {} ask for scale {}: it is coarser by {}", range, digits_of(asked),
                       bits_text(*coarser));
}

}  // namespace

bool TidlTensor::is_untouched_default() const {
    constexpr double least = 0.01;
    const bool signed_codes = element_type == 1 || element_type == 3;
    if (!signed_codes || min.value != 0 || max.value != 255) return false;
    return std::abs(scale.value * 255 - (element_type == 1 ? 128.0 : 32768.0)) > least * 128;
}

std::optional<double> TidlTensor::coarser_by() const {
    const std::optional<TidlElement> type = tidl_element(element_type);
    if (!type || type->is_float || type->bits > 16 || is_untouched_default()) return std::nullopt;
    const double greatest = type->is_signed ? std::max(std::abs(min.value), std::abs(max.value)) : max.value;
    if (!(greatest > 0) || !std::isfinite(greatest) || !(scale.value > 0)) return std::nullopt;
    return std::log2(std::ldexp(1.0, type->is_signed ? type->bits - 1 : type->bits) / greatest / scale.value);
}

std::optional<TidlTensor> parse_tidl_line(std::string_view line) {
    line = trim(line);
    TidlTensor tensor;
    const auto id = take_id(line);
    if (!id || line.empty() || (line.front() != ' ' && line.front() != '\t')) return std::nullopt;
    const auto scale = take_fixed(line);
    const auto min = scale ? take_fixed(line) : std::nullopt;
    const auto max = min ? take_fixed(line) : std::nullopt;
    if (!max) return std::nullopt;
    skip_blanks(line);
    const auto type = take_id(line);
    if (!type || !line.empty() || !tidl_element(static_cast<double>(*type))) return std::nullopt;
    tensor.data_id = *id;
    tensor.scale = *scale;
    tensor.min = *min;
    tensor.max = *max;
    tensor.element_type = static_cast<int>(*type);
    return tensor;
}

std::string tidl_words(const TidlTensor& tensor) {
    const std::optional<TidlElement> type = tidl_element(tensor.element_type);
    if (!type) return fmt::format("element type {}, which is none of TIDL's", tensor.element_type);
    if (type->is_float) {
        return fmt::format("float: the data lies in {} to {}; there are no codes",
                           digits_of(tensor.min.value), digits_of(tensor.max.value));
    }
    if (!(tensor.scale.value > 0)) return fmt::format("{} without a scale", type->words);
    const double half = type->is_signed ? std::ldexp(1.0, type->bits - 1) : 0;
    const double last = std::ldexp(1.0, type->bits) - 1 - half;
    return fmt::format(
        "{} at scale {} (a multiplier: q = round(x * scale)): codes {:.0f} to {:.0f} stand for "
        "{} to {}{}",
        type->words, digits_of(tensor.scale.value), -half + 0.0, last,
        digits_of(-half / tensor.scale.value + 0.0), digits_of(last / tensor.scale.value),
        range_words(tensor, *type));
}

}  // namespace qcalib
