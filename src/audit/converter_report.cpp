#include "audit/converter_report.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.h"
#include "format/tidl_params.h"

namespace qcalib {

namespace {

bool same(const PrintedNumber& a, const PrintedNumber& b) {
    const double larger = std::max(std::abs(a.value), std::abs(b.value));
    return std::abs(a.value - b.value) <= a.half_unit + b.half_unit + 2 * float_spacing(larger);
}

std::string text_of(const FoundTensor& tensor) {
    if (tensor.encodings.empty()) return "float";
    const FoundEncoding& first = tensor.encodings.front();
    return fmt::format("{:.7g} to {:.7g}, {} bit", first.min.value, first.max.value, first.bits);
}

// The offset that min and max ask for, and how far the printed digits may put it off.
struct ImpliedOffset {
    double value = 0;
    double uncertainty = 0;
};

ImpliedOffset implied_offset(const FoundEncoding& encoding) {
    const double step = encoding.step();
    const double codes = std::ldexp(1.0, encoding.bits) - 1;
    const double larger = std::max(std::abs(encoding.min.value), std::abs(encoding.max.value));
    const double end_error =
        std::max(encoding.min.half_unit, encoding.max.half_unit) + 2 * float_spacing(larger);
    const double offset = encoding.min.value / step;
    return {offset, end_error / step + 2 * end_error / step / codes * std::abs(offset)};
}

// Half a code, since a tool may print ends that it did not move onto the grid, and some more.
bool agrees(const FoundEncoding& encoding, double offset) {
    constexpr double least_uncertainty = 0.6;
    const ImpliedOffset implied = implied_offset(encoding);
    return std::abs(implied.value - offset) <= implied.uncertainty + least_uncertainty;
}

}  // namespace

double FoundEncoding::step() const {
    return (max.value - min.value) / (std::ldexp(1.0, bits) - 1);
}

bool FoundEncoding::operator==(const FoundEncoding& other) const {
    return bits == other.bits && same(min, other.min) && same(max, other.max);
}

void ConverterReport::add(FoundTensor tensor, bool keep_last, std::vector<std::string>& remarks) {
    const auto before = std::find_if(tensors.begin(), tensors.end(), [&](const FoundTensor& other) {
        return other.name == tensor.name && other.layer == tensor.layer && other.role == tensor.role;
    });
    const auto same_name = before != tensors.end()
                               ? before
                               : std::find_if(tensors.begin(), tensors.end(), [&](const FoundTensor& other) {
                                     return other.name == tensor.name && tensor.role.empty();
                                 });
    if (same_name == tensors.end()) {
        tensors.push_back(std::move(tensor));
        return;
    }
    if (same_name->encodings.empty() && !tensor.encodings.empty()) keep_last = true;
    if (tensor.encodings.empty() && !same_name->encodings.empty()) keep_last = false;
    if (!same_name->encodings.empty() && !tensor.encodings.empty() &&
        !(same_name->encodings.front() == tensor.encodings.front())) {
        remarks.push_back(fmt::format("{}: '{}' is {}, but {} at {}: the {} holds", tensor.where,
                                      printable(tensor.name), text_of(tensor), text_of(*same_name),
                                      same_name->where, keep_last ? "later" : "earlier"));
    }
    if (!keep_last) return;
    if (tensor.layer.empty()) tensor.layer = same_name->layer;
    *same_name = std::move(tensor);
}

void ConverterReport::name_tidl_data() {
    // "data 73" or "layer 5" by the names known; "" where there is none.
    const auto known = [](const std::map<std::int64_t, std::string>& names, std::string_view label) {
        const auto found = std::find_if(names.begin(), names.end(), [&](const auto& one) {
            return label.substr(label.find(' ') + 1) == std::to_string(one.first);
        });
        return found == names.end() ? std::string() : found->second;
    };
    std::unordered_set<std::string> printed;
    for (FoundTensor& tensor : tensors) {
        if (!tensor.tidl) continue;
        if (tensor.name.starts_with("data ") && tensor.tidl->data_id >= 0) {
            const std::string name = known(tidl_names, tensor.name);
            if (!name.empty()) tensor.name = name;
        }
        if (tensor.tidl->data_id >= 0) printed.insert(tensor.name);
        if (tensor.role.empty() || !tensor.layer.starts_with("layer ")) continue;
        const std::string layer = known(tidl_layers, tensor.layer);
        if (layer.empty()) continue;
        tensor.layer = layer;
        const auto words = tidl_weights.extract(tensor.name);
        tensor.name = tidl_weights_name(layer);
        if (!words.empty()) tidl_weights[tensor.name] = words.mapped();
    }
    // Of a tensor that a table has as well, the line that says the element type holds.
    std::erase_if(tensors, [&](const FoundTensor& one) {
        const bool from_table = one.tidl && one.tidl->data_id < 0 && one.role.empty();
        return from_table && one.tidl->scale.half_unit > 0 && printed.contains(one.name);
    });
}

std::string fault_of(const FoundEncoding& encoding) {
    constexpr int least_bits = 2;
    constexpr int most_bits = 32;
    if (encoding.bits < least_bits || encoding.bits > most_bits)
        return fmt::format("{} bits: expected 2 to 32", encoding.bits);
    if (!std::isfinite(encoding.min.value) || !std::isfinite(encoding.max.value))
        return fmt::format("ends {} and {} are not finite", encoding.min.value, encoding.max.value);
    if (encoding.min.value > encoding.max.value)
        return fmt::format("min {:.7g} lies above max {:.7g}", encoding.min.value, encoding.max.value);
    if (encoding.min.value == encoding.max.value)
        return fmt::format("min and max are both {:.7g}: a step of zero", encoding.min.value);
    if (encoding.scale && !(std::isfinite(encoding.scale->value) && encoding.scale->value >= 0))
        return fmt::format("a step of {}", encoding.scale->value);
    if (!encoding.offset) return "";
    const double offset = encoding.offset->value;
    const double codes = std::ldexp(1.0, encoding.bits) - 1;
    if (!std::isfinite(offset) || offset > 0 || offset < -codes)
        return fmt::format("offset {:.7g}: expected {:.0f} to 0", offset, -codes);
    if (agrees(encoding, offset)) return "";
    return fmt::format("offset {:.7g} contradicts min and max, which ask for {:.7g}", offset,
                       implied_offset(encoding).value);
}

void normalise_signed_storage(FoundTensor& tensor) {
    for (FoundEncoding& encoding : tensor.encodings) {
        if (!encoding.offset || !(encoding.max.value > encoding.min.value)) continue;
        if (encoding.bits < 2 || encoding.bits > 32) continue;
        const double shifted = encoding.offset->value - std::ldexp(1.0, encoding.bits - 1);
        const bool signed_type = tensor.data_type.starts_with("sFxp");
        if (signed_type || (!agrees(encoding, encoding.offset->value) && agrees(encoding, shifted)))
            encoding.offset->value = shifted;
    }
}

}  // namespace qcalib
