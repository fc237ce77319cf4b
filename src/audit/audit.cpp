#include "audit/audit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "audit/causes.h"
#include "audit/compare.h"
#include "audit/evidence.h"
#include "audit/run_causes.h"
#include "audit/tensor_names.h"
#include "audit/tidl_causes.h"
#include "base/text.h"
#include "format/tidl_weight_names.h"

namespace qcalib {

namespace {

bool is_parameter(const FoundTensor& tensor) {
    return tensor.kind == FoundTensor::Kind::parameter;
}

// Brings tensors of the result and entries of the file together, and says of each what became of it.
class Auditor {
  public:
    explicit Auditor(const AuditInput& input) : input_(input), context_{input, {}, {}, false} {
        if (input.graph != nullptr) context_.model.emplace(*input.graph, *input.target);
        std::vector<std::string> names;
        for (const FileEntry& entry : input.given->entries) names.push_back(entry.encoding.tensor);
        for (const EntryFault& fault : input.faults) names.push_back(fault.tensor);
        match_all(NameMatcher(names));
        file_has_parameters_ = std::any_of(input.given->entries.begin(), input.given->entries.end(),
                                           [&](const FileEntry& entry) { return is_parameter_entry(entry); });
    }

    AuditResult run() {
        context_.entries_taken =
            std::any_of(context_.matches.begin(), context_.matches.end(), [&](const Match& match) {
                return match.entry &&
                       as_given(compare(context_.entry(match), *match.found, *input_.target).status);
            });
        for (const Match& match : context_.matches) look_at(match);
        for (std::size_t i = 0; i < input_.given->entries.size(); ++i) look_at_unused(i);
        for (const EntryFault& fault : input_.faults) add_fault(fault);
        if (is_tidl(context_)) {
            explain_tidl_run(context_, result_);
        } else {
            explain_run(context_, measured_, result_);
        }
        return std::move(result_);
    }

  private:
    // A tensor of the result whose entry has an impossible value.
    struct FaultyMatch {
        std::size_t fault = 0;
        const FoundTensor* found = nullptr;
    };

    // Formats without sections do not say it.
    bool is_parameter_entry(const FileEntry& entry) const {
        if (entry.section != Section::any) return entry.section == Section::parameter;
        const std::string& name = entry.encoding.tensor;
        if (context_.model && context_.model->has(name)) return context_.model->is_constant(name);
        return entry.encoding.encodings.size() > 1 || names_parameter(name);
    }

    std::size_t entries() const { return input_.given->entries.size(); }

    // The name that the tensor of a result has in the model.
    std::string source_name(const FoundTensor& tensor, const std::optional<NameMatcher>& model_names,
                            const std::vector<std::string>& names) const {
        if (!context_.model) return tensor.name;
        if (tidl_names_ && tensor.tidl && tensor.role == "weight") {
            const std::string weight = tidl_names_->of_layer(tensor.layer);
            return weight.empty() ? tensor.name : weight;
        }
        if (!tensor.role.empty()) {
            const std::string parameter = context_.model->parameter_of(tensor.layer, tensor.role);
            if (!parameter.empty()) return parameter;
        }
        if (context_.model->has(tensor.name)) return tensor.name;
        const auto place = model_names->match(tensor.name);
        return place ? names[*place] : tensor.name;
    }

    const std::string& given_name(std::size_t place) const {
        return place < entries() ? input_.given->entries[place].encoding.tensor
                                 : input_.faults[place - entries()].tensor;
    }

    void match_all(const NameMatcher& matcher) {
        std::vector<std::string> model_names;
        std::optional<NameMatcher> model_matcher;
        if (context_.model) {
            model_names = context_.model->tensor_names();
            model_matcher.emplace(model_names);
            const auto is_of_tidl = [](const FoundTensor& one) { return one.tidl.has_value(); };
            const std::vector<FoundTensor>& found = input_.found->tensors;
            if (std::any_of(found.begin(), found.end(), is_of_tidl)) tidl_names_.emplace(*input_.graph);
        }
        for (const FoundTensor& tensor : input_.found->tensors) found_names_.insert(tensor.name);
        for (const FoundTensor& tensor : input_.found->tensors) {
            Match& match = context_.matches.emplace_back();
            match.found = &tensor;
            match.name = source_name(tensor, model_matcher, model_names);
            auto place = input_.files_only ? matcher.exactly(tensor.name) : matcher.match(match.name);
            // TIDL's files name weights by their layers.
            if (!place && tensor.tidl) place = matcher.exactly(tensor.name);
            if (place) match_entry(match, *place);
        }
    }

    // The entry is the tensor's own, or that of the one it is a copy of.
    void match_entry(Match& match, std::size_t place) {
        const std::string& name = given_name(place);
        const std::string& found_name = match.found->name;
        match.copy = name != found_name && (found_names_.contains(name) || used_.contains(place));
        match.name = match.copy ? found_name : name;
        if (place >= entries()) {
            faulty_.push_back({place - entries(), match.found});
            return;
        }
        match.entry = place;
        used_.insert(place);
        note_section(match);
    }

    void note_section(Match& match) const {
        const Section section = input_.given->entries[*match.entry].section;
        if (section == Section::any || match.found->kind == FoundTensor::Kind::unknown) return;
        match.wrong_section = (section == Section::parameter) != is_parameter(*match.found);
    }

    void look_at(const Match& match) {
        const auto is_faulty = [&](const FaultyMatch& one) { return one.found == match.found; };
        if (std::any_of(faulty_.begin(), faulty_.end(), is_faulty)) return;
        Finding finding;
        finding.tensor = match.name;
        if (!match.found->encodings.empty()) finding.found = shown(match.found->encodings.front());
        const std::string fault = fault_of_result(*match.found);
        if (!fault.empty()) {
            if (match.entry) finding.given = shown_first(context_.entry(match));
            finding.status = Status::impossible;
            finding.cause = fmt::format("{}: {}", match.found->where, fault);
            finding.advice = "see which operator it is of, and whether the target takes this width";
        } else if (match.entry) {
            compare_with_entry(match, finding);
        } else if (!look_at_missing(match, finding)) {
            return;
        }
        count_measured(match, finding);
        result_.findings.push_back(std::move(finding));
    }

    // Why what was found is no encoding, or "".
    std::string fault_of_result(const FoundTensor& tensor) const {
        for (const FoundEncoding& encoding : tensor.encodings) {
            std::string fault = fault_of(encoding);
            if (!fault.empty()) return fault;
            const std::vector<int>& widths = input_.target->weights.widths;
            if (tensor.role == "weight" && !widths.empty() &&
                std::find(widths.begin(), widths.end(), encoding.bits) == widths.end()) {
                return fmt::format("a weight of {} bits: expected {}", encoding.bits,
                                   fmt::join(widths, ", "));
            }
        }
        return "";
    }

    void compare_with_entry(const Match& match, Finding& finding) {
        const Comparison comparison = compare(context_.entry(match), *match.found, *input_.target);
        finding.status = comparison.status;
        finding.given = comparison.given;
        finding.found = comparison.found;
        finding.steps = comparison.steps;
        finding.close = comparison.close;
        if (match.wrong_section) return explain_section(match, finding);
        if (comparison.status == Status::recomputed && match.found->tidl) {
            explain_tidl_recomputed(context_, match, comparison, finding);
        } else if (comparison.status == Status::recomputed) {
            explain_recomputed(context_, match, comparison, finding);
        } else if (comparison.status == Status::nudged) {
            finding.cause =
                fmt::format("both ends moved by {:.2g} steps, so that zero is a code", *finding.steps);
        } else if (match.copy) {
            finding.cause = fmt::format("a copy of '{}' that the converter inserted",
                                        printable(context_.entry(match).encoding.tensor));
        } else {
            finding.cause = comparison.detail;
            if (match.found->tidl && finding.cause.empty()) finding.cause = tidl_words(*match.found->tidl);
        }
        if (match.found->renamed_from.empty()) return;
        finding.cause = fmt::format("called '{}' in the other file{}{}", printable(match.found->renamed_from),
                                    finding.cause.empty() ? "" : "; ", finding.cause);
    }

    static void explain_section(const Match& match, Finding& finding) {
        const bool parameter = is_parameter(*match.found);
        const std::string_view stands = parameter ? "activation_encodings" : "param_encodings";
        const std::string_view belongs = parameter ? "param_encodings" : "activation_encodings";
        finding.advice = fmt::format("move it to {}", belongs);
        if (as_given(finding.status)) {
            finding.cause = fmt::format("taken, though it stands under {}", stands);
            return;
        }
        finding.status = Status::unused;
        finding.close = false;
        finding.cause =
            fmt::format("wrong section: it stands under {}, and the converter does not use it there", stands);
    }

    // False where it needs no finding.
    bool look_at_missing(const Match& match, Finding& finding) const {
        const FoundTensor& tensor = *match.found;
        if (!input_.files_only) {
            if (tensor.encodings.empty() && !tensor.fell_back)
                return false;  // float, as nobody asked otherwise
            const bool bias =
                tensor.role == "bias" || (!tensor.encodings.empty() && tensor.encodings.front().bits == 32);
            if (is_parameter(tensor) && (!file_has_parameters_ || bias)) return false;
        }
        finding.status = Status::missing;
        if (tensor.tidl) {
            explain_tidl_missing(context_, match, finding);
        } else {
            explain_missing(context_, match, finding);
        }
        return true;
    }

    void count_measured(const Match& match, const Finding& finding) {
        const bool own = finding.status == Status::missing || finding.status == Status::recomputed;
        if (!own || input_.statistics == nullptr || match.found->encodings.empty()) return;
        const auto evidence =
            measured(*input_.statistics, match.name, match.found->encodings.front(), *input_.target);
        if (evidence) ++(evidence->known ? measured_.known : measured_.unknown);
    }

    void look_at_unused(std::size_t index) {
        const FileEntry& entry = input_.given->entries[index];
        if (used_.contains(index)) return;
        const bool parameter = is_parameter_entry(entry);
        const bool shown_at_all = parameter
                                      ? input_.found->shows_parameters
                                      : input_.found->shows_activations || input_.found->tensors.empty();
        if (!shown_at_all && !input_.files_only) return;
        Finding finding;
        finding.tensor = entry.encoding.tensor;
        finding.status = Status::unused;
        finding.given = shown_first(entry);
        explain_unused(context_, entry, finding);
        result_.findings.push_back(std::move(finding));
    }

    void add_fault(const EntryFault& fault) {
        Finding finding;
        finding.tensor = fault.tensor;
        finding.status = Status::impossible;
        for (const FaultyMatch& match : faulty_) {
            if (input_.faults[match.fault].tensor == fault.tensor && !match.found->encodings.empty())
                finding.found = shown(match.found->encodings.front());
        }
        finding.cause = describe(input_.given->path, {"", fault.line, fault.text});
        finding.advice = "mend the entry";
        result_.findings.push_back(std::move(finding));
    }

    const AuditInput& input_;
    AuditContext context_;
    std::optional<TidlWeightNames> tidl_names_;
    std::unordered_set<std::string> found_names_;
    std::unordered_set<std::size_t> used_;
    std::vector<FaultyMatch> faulty_;
    bool file_has_parameters_ = false;
    MeasuredRanges measured_;
    AuditResult result_;
};

FoundEncoding found_encoding(const Encoding& encoding) {
    FoundEncoding found;
    found.bits = encoding.bits;
    found.min.value = encoding.min;
    found.max.value = encoding.max;
    found.scale = PrintedNumber{encoding.scale};
    found.offset = PrintedNumber{static_cast<double>(encoding.offset)};
    return found;
}

}  // namespace

ConverterReport report_of(const EncodingFile& file) {
    ConverterReport report;
    for (const FileEntry& entry : file.entries) {
        FoundTensor tensor;
        tensor.name = entry.encoding.tensor;
        if (entry.section == Section::activation) tensor.kind = FoundTensor::Kind::activation;
        if (entry.section == Section::parameter) tensor.kind = FoundTensor::Kind::parameter;
        for (const Encoding& encoding : entry.encoding.encodings)
            tensor.encodings.push_back(found_encoding(encoding));
        if (tensor.encodings.size() > 1) tensor.channels = tensor.encodings.size();
        if (entry.encoding.type == CodeType::floating)
            tensor.data_type = fmt::format("Float_{}", entry.encoding.bits);
        tensor.where = printable(file.path.string());
        if (entry.line > 0) tensor.where += fmt::format(":{}", entry.line);
        report.shows_parameters |= entry.section != Section::activation;
        report.shows_activations |= entry.section != Section::parameter;
        report.tensors.push_back(std::move(tensor));
    }
    return report;
}

AuditResult audit(const AuditInput& input) {
    return Auditor(input).run();
}

}  // namespace qcalib
