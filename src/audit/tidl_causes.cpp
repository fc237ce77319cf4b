#include "audit/tidl_causes.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "format/tidl_params.h"
#include "tensor/grid.h"

namespace qcalib {

namespace {

constexpr double least_bits = 0.01;

std::string tidl_bits(double bits) {
    const double rounded = std::round(bits * 100) / 100;
    return fmt::format("{:g} bit{}", rounded, rounded == 1 ? "" : "s");
}

bool whole_bits(double bits) {
    return std::abs(bits - std::round(bits)) < least_bits;
}

TidlElement element_of(const TidlTensor& tensor) {
    return *tidl_element(tensor.element_type);
}

// The end of the range that TIDL shows: what its scale follows from.
double shown_end(const TidlTensor& tensor) {
    return element_of(tensor).is_signed ? std::max(std::abs(tensor.min.value), std::abs(tensor.max.value))
                                        : tensor.max.value;
}

// The end that the given grid asks for.
double given_end(const ShownEncoding& given) {
    return std::ldexp(given.scale, given.offset == 0 ? given.bits : given.bits - 1);
}

bool same_end(double given, const TidlTensor& tensor) {
    const double allowed = std::max(tensor.min.half_unit, tensor.max.half_unit) + 4 * float_spacing(given);
    return std::abs(given - shown_end(tensor)) <= allowed;
}

bool is_power(double value) {
    return value > 0 && std::abs(power_of_two_above(value) / value - 1) < 1e-6;
}

void explain_width(const Comparison& comparison, bool parameter, Finding& finding) {
    finding.cause = comparison.detail;
    const char* list = parameter ? "params_16bit_names_list" : "output_feature_16bit_names_list";
    finding.advice = fmt::format(
        "{} in advanced_options:{} (the name of the layer's last fused output; other names are only printed "
        "as invalid), or give tensor_bits",
        comparison.given.bits > 8 ? "name it" : "do not name it, nor a tensor of its concat", list);
}

// The scale is coarser than the given range asks for by `bits`.
std::string coarser_cause(const TidlTensor& tensor, double given, double bits, bool lost_sign) {
    std::string cause = fmt::format("scale coarser than range by {}: ", tidl_bits(bits));
    if (lost_sign) {
        cause +=
            "its codes are signed where the encoding has none below zero: TIDL takes the sign from the "
            "graph, unsigned behind ReLU, ReLU6 or a Clip with min 0 alone";
        return cause;
    }
    if (!same_end(given, tensor) && is_power(tensor.scale.value) && !is_power(given) &&
        power_of_two_above(given) == shown_end(tensor)) {
        return cause + "the range was raised to the next power of two (quantization_scale_type 1)";
    }
    if (!same_end(given, tensor)) {
        return cause + fmt::format("the range is not the one given but TIDL's own, {:.7g} to {:.7g}",
                                   tensor.min.value, tensor.max.value);
    }
    if (is_power(tensor.scale.value) && !is_power(given))
        return cause + "the range was raised to the next power of two (quantization_scale_type 1)";
    cause += whole_bits(bits)
                 ? "the range was taken, but the scale halved: TIDL does that where a bias of a layer "
                   "behind would overflow (\"Tensor Scale for layer is reduced\" at debug_level 1)"
                 : "the range was taken, but the scale of an output is that of the accumulator over a "
                   "power of two (quantization_scale_type 0), up to one bit coarser";
    return cause;
}

const char* coarser_advice(bool lost_sign, bool parameter) {
    if (parameter) return "simulate with the scale found";
    if (lost_sign) return "put a Clip from 0 behind it: qcalib emit --emit tidl:tidl-onnx";
    return "a fused Clip from 0 or of both sides alike gets its scale exactly: qcalib emit --emit "
           "tidl:tidl-onnx; "
           "else simulate with the scale found";
}

bool is_first_input(const Match& match, const AuditContext& context) {
    if (context.model) return context.model->is_input(match.name);
    return match.found->tidl && match.found->tidl->data_id == 0;
}

// The tensor that a Clip on the input makes: by the model, else the one of the next data id, where its range
// is one of a Clip.
const Match* first_clip(const AuditContext& context, const Match& input) {
    if (context.model && context.model->has(input.name)) {
        for (const Node* reader : context.model->readers(input.name)) {
            if (reader->op_type == "Clip") return context.find(context.model->output_of(*reader));
        }
        return nullptr;
    }
    for (const Match& match : context.matches) {
        if (!match.found->tidl || match.found->tidl->data_id != input.found->tidl->data_id + 1) continue;
        const double end = match.found->tidl->max.value;
        return is_power(end) ? &match : nullptr;
    }
    return nullptr;
}

void note_input(const AuditContext& context, const Match& match, AuditResult& result) {
    const TidlTensor& tensor = *match.found->tidl;
    if (tensor.is_untouched_default())
        result.notes.push_back(
            fmt::format("'{}' ({}): {}", printable(match.name), match.found->where, tidl_words(tensor)));
    const Match* clip = first_clip(context, match);
    if (clip == nullptr || !clip->found->tidl) return;
    const double scale = clip->found->tidl->scale.value;
    if (std::abs(scale - tensor.scale.value) <= 1e-3 * scale) return;
    result.notes.push_back(fmt::format(
        "the input '{}' is coded at scale {:.7g} ({}), the Clip behind it, '{}', at {:.7g} ({}): the Clip "
        "does "
        "not say how the input is coded, and becomes a layer of its own, with a weight that saturates at "
        "127/128; leave it out (quantize_in=False), and give the input by TIDL's rule",
        printable(match.name), tensor.scale.value, element_of(tensor).words, printable(clip->name), scale,
        element_of(*clip->found->tidl).words));
}

}  // namespace

bool is_tidl(const AuditContext& context) {
    return std::any_of(context.matches.begin(), context.matches.end(),
                       [](const Match& match) { return match.found->tidl.has_value(); });
}

void explain_tidl_recomputed(const AuditContext& context, const Match& match, const Comparison& comparison,
                             Finding& finding) {
    const TidlTensor& tensor = *match.found->tidl;
    const bool parameter = match.found->kind == FoundTensor::Kind::parameter;
    const TidlElement type = element_of(tensor);
    if (comparison.reason == Comparison::Reason::width) return explain_width(comparison, parameter, finding);
    if (!finding.given || type.is_float || !(tensor.scale.value > 0)) {
        finding.cause = comparison.detail.empty() ? tidl_words(tensor) : comparison.detail;
        finding.advice = "see whether the layer ran on TIDL at all";
        return;
    }
    const double bits = -std::log2(finding.given->scale * tensor.scale.value);
    const bool lost_sign = type.is_signed && finding.given->offset == 0 && !parameter;
    const double given = given_end(*finding.given);
    if (bits > least_bits) {
        finding.cause = coarser_cause(tensor, given, bits, lost_sign && same_end(given, tensor));
        finding.advice = coarser_advice(lost_sign, parameter);
    } else if (bits < -least_bits) {
        finding.cause = fmt::format("the range was not used: TIDL's own, {:.7g} to {:.7g}, is finer by {}",
                                    tensor.min.value, tensor.max.value, tidl_bits(-bits));
        finding.advice =
            "every layer of the TIDL network has to have a range, else TIDL calibrates them all anew: see "
            "whether it printed \"Inadequate pararameters provided\"";
    } else {
        finding.cause = fmt::format("the scale is as given, but the codes are {}", type.words);
        finding.advice = "TIDL takes the sign from the graph: give the range that its sign asks for";
    }
    if (is_first_input(match, context) && !parameter) {
        finding.cause += "; an input's scale is TIDL's own: 128 / 2^ceil(log2(greatest magnitude)), signed";
        finding.advice = "give the input a range of both sides alike, up to a power of two";
    }
    finding.cause += "; it is " + tidl_words(tensor);
}

void explain_tidl_missing(const AuditContext& context, const Match& match, Finding& finding) {
    const bool parameter = match.found->kind == FoundTensor::Kind::parameter;
    finding.cause = fmt::format("no entry: {}", tidl_words(*match.found->tidl));
    if (match.found->name.starts_with("data ")) {
        finding.cause = "its name is not known; " + finding.cause;
        finding.advice = "give layer_info.txt as well, which names data ids: --log FILE";
    } else if (is_first_input(match, context)) {
        finding.advice = "an input's scale is TIDL's own; give an entry, so that a simulation uses it too";
    } else {
        finding.advice = parameter ? "complete the file: qcalib emit --base FILE"
                                   : "TIDL calibrated it, and all others with it: complete the file: qcalib "
                                     "emit --base FILE";
    }
}

void explain_tidl_run(const AuditContext& context, AuditResult& result) {
    std::size_t with_entry = 0;
    for (const Match& match : context.matches) {
        if (match.entry) ++with_entry;
        if (!match.found->tidl) continue;
        if (is_first_input(match, context)) note_input(context, match, result);
        const std::optional<double> coarser = match.found->tidl->coarser_by();
        if (match.entry || !coarser || *coarser < least_bits) continue;
        result.notes.push_back(fmt::format("'{}' ({}): {}", printable(match.name), match.found->where,
                                           tidl_words(*match.found->tidl)));
    }
    const ConverterReport& found = *context.input.found;
    for (const auto& [tensor, words] : found.tidl_weights)
        result.notes.push_back(fmt::format("'{}': {}", printable(tensor), words));
    if (with_entry > 1 && !context.entries_taken) {
        result.causes.emplace_back(
            "no entry was used: TIDL ignores a parameter file that lacks a layer of its network "
            "(\"Inadequate "
            "pararameters provided, running calibration!\"), and Clip nodes where a layer has none");
    }
    result.notes.insert(result.notes.end(), found.notes.begin(), found.notes.end());
}

}  // namespace qcalib
