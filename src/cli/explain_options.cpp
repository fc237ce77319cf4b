#include "cli/explain_options.h"

#include <unordered_map>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "report/explanation.h"

namespace qcalib {

namespace {

std::string text_of(const Evidence& evidence) {
    return fmt::format("{} ({})", evidence.source, name_of(evidence.confidence));
}

std::size_t samples_with_data(const StatisticsFile& file, std::size_t tensor) {
    std::size_t count = 0;
    for (std::size_t row = 0; row < file.rows(); ++row) count += file.entry(row, tensor).has_data ? 1 : 0;
    return count;
}

// The encodings that were written for a target, by the names of tensors, and what led to them.
class Explainer {
  public:
    Explainer(const Target& target, const EmittedEncodings& emitted, const StatisticsFile& file)
        : target_(target), file_(file) {
        for (const Decision& decision : emitted.decisions) decision_of_.emplace(decision.tensor, &decision);
        for (const auto* entries : {&emitted.encodings.activations, &emitted.encodings.parameters}) {
            for (const TensorEncoding& entry : *entries) entry_of_.emplace(entry.tensor, &entry);
        }
    }

    std::string explain(const std::string& tensor) const {
        Explanation explanation;
        explanation.tensor = tensor;
        explanation.target = target_.name;
        add_statistics(explanation);
        add_decision(explanation);
        const auto entry = entry_of_.find(tensor);
        if (entry != entry_of_.end()) {
            explanation.encodings = entry->second->encodings;
            explanation.axis = entry->second->axis;
        }
        return qcalib::explain(explanation);
    }

    bool knows(const std::string& tensor) const { return decision_of_.contains(tensor); }

  private:
    void add_statistics(Explanation& explanation) const {
        const std::optional<std::size_t> place = file_.find(explanation.tensor);
        if (!place) return;
        explanation.statistics = &file_.tensor(*place);
        if (file_.header().tensors[*place].constant) return;
        explanation.samples = samples_with_data(file_, *place);
        explanation.movement = movement_of(file_, *place);
    }

    void add_decision(Explanation& explanation) const {
        const auto found = decision_of_.find(explanation.tensor);
        if (found == decision_of_.end()) {
            explanation.kind = "no operand";
            explanation.no_encoding = explanation.statistics != nullptr
                                          ? "a constant that meets no activation"
                                          : "it holds no floating-point numbers, or was not counted";
            return;
        }
        const Decision& decision = *found->second;
        explanation.kind = name_of(decision.kind);
        explanation.method = decision.method;
        explanation.ranges = decision.ranges;
        explanation.rules = decision.rules;
        explanation.no_encoding = decision.no_encoding;
        explanation.overrides = decision.overrides;
        explanation.notes = decision.notes;
        explanation.by_rules = decision.by_rules;
        const Evidence& own = decision.kind == Decision::Kind::activation ? target_.activations.evidence
                              : decision.kind == Decision::Kind::weight   ? target_.weights.evidence
                                                                          : target_.constants.evidence;
        explanation.evidence = {text_of(own), text_of(target_.arithmetic_evidence)};
        if (explanation.evidence[0] == explanation.evidence[1]) explanation.evidence.pop_back();
    }

    const Target& target_;
    const StatisticsFile& file_;
    std::unordered_map<std::string, const Decision*> decision_of_;
    std::unordered_map<std::string, const TensorEncoding*> entry_of_;
};

bool is_pattern(const std::string& text) {
    return text.find_first_of("*?") != std::string::npos;
}

}  // namespace

void ExplainOptions::add_to(CLI::App& app) {
    app.add_option("--explain", patterns_,
                   "Print how a tensor (a name, or a pattern with * and ?) came to its encoding: statistics, "
                   "method, range, the target's rules; may be given again")
        ->group("Encodings")
        ->allow_extra_args(false);
}

void ExplainOptions::check(const Graph& graph, std::span<const Emission> emissions) const {
    if (patterns_.empty()) return;
    if (emissions.empty()) fail("--explain: expected --emit to say for which target, found none");
    std::vector<std::string> names;
    for (const Value& value : graph.values) names.push_back(value.name);
    for (const std::string& pattern : patterns_) {
        const bool any = std::any_of(names.begin(), names.end(),
                                     [&](const std::string& name) { return glob_match(pattern, name); });
        if (!any) {
            fail("--explain: no tensor of the model fits '{}'{}", printable(pattern),
                 did_you_mean(pattern, names));
        }
    }
}

std::string ExplainOptions::text(std::span<const Emission> emissions,
                                 std::span<const EmittedEncodings> emitted, const Graph& graph,
                                 const StatisticsFile& statistics) const {
    if (patterns_.empty()) return "";
    std::string text;
    for (std::size_t i = 0; i < emissions.size(); ++i) {
        const Explainer explainer(emissions[i].target, emitted[i], statistics);
        for (const Value& value : graph.values) {
            const bool asked = std::any_of(patterns_.begin(), patterns_.end(), [&](const auto& pattern) {
                return glob_match(pattern, value.name) &&
                       (!is_pattern(pattern) || explainer.knows(value.name));
            });
            if (asked) text += "\n" + explainer.explain(value.name);
        }
    }
    return text;
}

}  // namespace qcalib
