#include "audit/run_causes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace qcalib {

namespace {

// What the comparisons of entries with rows came to.
struct Tally {
    std::size_t rows = 0;        // activations of the result
    std::size_t with_entry = 0;  // of them
    std::size_t taken = 0;       // of these, applied or nudged
    std::size_t other_width = 0;
};

bool is_activation(const Match& match) {
    return match.found->kind != FoundTensor::Kind::parameter && !match.copy;
}

Tally count(const AuditContext& context, const AuditResult& result) {
    Tally tally;
    for (const Match& match : context.matches) {
        if (!is_activation(match)) continue;
        ++tally.rows;
        if (!match.entry) continue;
        const auto finding = std::find_if(result.findings.begin(), result.findings.end(),
                                          [&](const Finding& one) { return one.tensor == match.name; });
        if (finding == result.findings.end() || !finding->given || !finding->found) continue;
        ++tally.with_entry;
        if (as_given(finding->status)) ++tally.taken;
        if (finding->given->bits != finding->found->bits) ++tally.other_width;
    }
    return tally;
}

// The width that all entries of a section have, or 0.
int common_width(const EncodingFile& file, Section section) {
    int width = 0;
    for (const FileEntry& entry : file.entries) {
        if (entry.section != section) continue;
        if (width != 0 && entry.encoding.width() != width) return 0;
        width = entry.encoding.width();
    }
    return width;
}

bool has_wide_biases(const EncodingFile& file) {
    return std::any_of(file.entries.begin(), file.entries.end(), [](const FileEntry& entry) {
        return entry.section == Section::parameter && entry.encoding.width() == 32;
    });
}

// "snpe-dlc-quantize --input_dlc m.dlc --input_list list.txt --override_params --act_bitwidth 16"
std::string quantizer_command(const EncodingFile& file) {
    std::string command = "snpe-dlc-quantize --input_dlc MODEL.dlc --input_list LIST --override_params";
    if (common_width(file, Section::activation) == 16) command += " --act_bitwidth 16";
    if (has_wide_biases(file)) command += " --bias_bitwidth 32";
    if (common_width(file, Section::parameter) == 16) command += " --weights_bitwidth 16";
    return command;
}

void explain_nothing_taken(const AuditContext& context, const Tally& tally, AuditResult& result) {
    constexpr std::size_t least = 2;
    if (tally.with_entry < least || tally.taken > 0) return;
    if (tally.other_width == tally.with_entry) {
        result.causes.push_back(
            fmt::format("all {} entries have another width than the result: the quantizer's --act_bitwidth "
                        "decides, it seems; "
                        "give: {}",
                        tally.with_entry, quantizer_command(*context.input.given)));
    } else if (context.input.found->override_params) {
        result.causes.push_back(
            fmt::format("none of the {} ranges given is in the result, though --override_params was "
                        "given: the converter had another file, or the result is of another run",
                        tally.with_entry));
    } else {
        result.causes.push_back(
            fmt::format("none of the {} ranges given is in the result: the quantizer ran without "
                        "--override_params, or the converter without --quantization_overrides; "
                        "give: {}",
                        tally.with_entry, quantizer_command(*context.input.given)));
    }
}

void explain_names(const AuditContext& context, AuditResult& result) {
    const ConverterReport& found = *context.input.found;
    if (!found.processed || context.input.given->entries.empty()) return;
    if (*found.processed == 0) {
        result.causes.push_back(
            fmt::format("{}: the converter processed 0 encodings of {}: it found none of the "
                        "names, which have to be those of the source model's tensors",
                        found.processed_where, context.input.given->entries.size()));
        return;
    }
    const auto activations = static_cast<std::size_t>(
        std::count_if(context.input.given->entries.begin(), context.input.given->entries.end(),
                      [](const FileEntry& entry) { return entry.section != Section::parameter; }));
    if (*found.processed < activations) {
        result.notes.push_back(
            fmt::format("{}: the converter processed {} encodings, and the file has {} "
                        "activations: it does not know some of the names",
                        found.processed_where, *found.processed, activations));
    }
}

void explain_coverage(const AuditContext& context, const Tally& tally, AuditResult& result) {
    constexpr std::size_t least_rows = 8;
    constexpr std::size_t least_share = 4;  // a quarter
    if (context.input.found->float_fallbacks > 0) {
        result.causes.push_back(
            fmt::format("{} of {} tensors without an entry were left in float16: Quantizer V2 does "
                        "not measure them; complete the file, biases included",
                        context.input.found->float_fallbacks, context.input.found->missing_encodings));
    }
    if (tally.rows < least_rows || tally.with_entry * least_share >= tally.rows) return;
    result.causes.push_back(
        fmt::format("the file has entries for {} of the {} tensors of the result: the converter "
                    "chose all other ranges (or float types) itself",
                    tally.with_entry, tally.rows));
}

void explain_data(const MeasuredRanges& measured, AuditResult& result) {
    constexpr std::size_t least = 3;
    if (measured.unknown >= least && measured.unknown > measured.known) {
        result.causes.push_back(
            fmt::format("{} of the {} ranges the converter chose itself are not those of the "
                        "statistics: it was given another input list, or other preprocessing",
                        measured.unknown, measured.unknown + measured.known));
    }
}

void note(AuditResult& result, std::string_view text) {
    result.notes.emplace_back(text);
}

// Notes on files that Qualcomm's quantizer reads.
void add_qualcomm_notes(const EncodingFile& given, const ConverterReport& found, AuditResult& result) {
    const bool parameters =
        std::any_of(given.entries.begin(), given.entries.end(),
                    [](const FileEntry& entry) { return entry.section == Section::parameter; });
    if (!parameters) {
        note(result,
             "the file has no parameters (MQBench's never have): the converter derives the encodings "
             "of weights from the weights in the model");
    } else if (!found.shows_parameters && !found.tensors.empty()) {
        note(result,
             "the logs show no parameters, so those of the file were not looked at; the output of "
             "snpe-dlc-info shows them");
    }
    if (given.version == "2.0.0") {
        note(result,
             "version 2.0.0 of the file selects Quantizer V2: what has no entry is left in float "
             "instead of measured; some backends refuse its results");
    }
    if (has_wide_biases(given) && !found.bias_bitwidth) {
        note(result,
             "the file has parameters of 32 bits: the quantizer makes biases of 32 bits only where it is "
             "given "
             "--bias_bitwidth 32");
    }
}

// What a user should know of such files whatever came out.
void add_notes(const AuditContext& context, AuditResult& result) {
    const Target& target = *context.input.target;
    if (target.tidl == nullptr && target.circle == nullptr) {
        add_qualcomm_notes(*context.input.given, *context.input.found, result);
    }
    const bool input = std::any_of(context.matches.begin(), context.matches.end(), [&](const Match& match) {
        return context.model ? context.model->is_input(match.name) : match.found->layer == match.name;
    });
    if (input && target.name == "snpe") {
        note(result,
             "snpe-net-run quantizes inputs by the range of each sample unless --static_min_max is "
             "given: ranges of inputs hold on a device only then");
    }
    const std::vector<std::string>& found = context.input.found->notes;
    result.notes.insert(result.notes.end(), found.begin(), found.end());
}

}  // namespace

void explain_run(const AuditContext& context, const MeasuredRanges& measured, AuditResult& result) {
    if (context.input.files_only) return;
    const Tally tally = count(context, result);
    explain_names(context, result);
    if (context.input.found->tensors.empty()) {
        result.causes.push_back(fmt::format("the logs have no quantized tensors: {}; run: {}",
                                            context.input.found->quantizer_ran
                                                ? "the quantizer printed none"
                                                : "only the conversion ran, the quantizer did not",
                                            quantizer_command(*context.input.given)));
    }
    explain_nothing_taken(context, tally, result);
    explain_coverage(context, tally, result);
    explain_data(measured, result);
    add_notes(context, result);
}

}  // namespace qcalib
