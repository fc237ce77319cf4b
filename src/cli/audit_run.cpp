#include "cli/audit_run.h"

#include <filesystem>
#include <memory>
#include <optional>

#include "audit/allow_list.h"
#include "audit/log_reader.h"
#include "audit/renames.h"
#include "base/text.h"
#include "cli/base_file.h"
#include "format/format.h"
#include "graph/model_file.h"
#include "simulate/encodings.h"
#include "statistics/statistics_file.h"
#include "target/target.h"

namespace qcalib {

namespace {

ConverterReport read_logs(const std::vector<std::string>& logs, Remarks& remarks) {
    ConverterReport report;
    std::vector<std::string> texts;
    for (const std::string& log : logs) read_converter_output(log, report, texts);
    for (std::string& text : texts) remarks.add(std::move(text));
    return report;
}

ConverterReport read_other(const AuditSettings& settings, const EncodingFile& given,
                           const std::optional<Model>& model, Remarks& remarks) {
    const EncodingFile other = read_encodings(settings.against, remarks);
    ConverterReport report = report_of(other);
    if (settings.against_model.empty()) {
        rename(report, given, renamed_weights(given, other));
    } else {
        rename(report, given, renamed_tensors(*model->graph, *read_model(settings.against_model).graph));
    }
    return report;
}

// What the converter was given: a file of encodings, or a model whose Clip or QuantizeLinear nodes are
// ranges.
EncodingFile read_given(const AuditSettings& settings, const Target& target,
                        const std::optional<Model>& model, std::vector<EntryFault>& faults,
                        Remarks& remarks) {
    if (!settings.encodings.ends_with(".onnx")) return read_encodings(settings.encodings, remarks, &faults);
    const std::shared_ptr<const Graph> own = read_model(settings.encodings).graph;
    BaseEncodings base = read_base(settings.encodings, model ? *model->graph : *own, remarks);
    put_on_grid(base.set, base.ranges_alone, target);
    EncodingFile given = encoding_file(base.set);
    given.path = settings.encodings;
    return given;
}

}  // namespace

AuditResult run_audit(const AuditSettings& settings, Remarks& remarks) {
    AuditInput input;
    const std::vector<Allowed> allowed =
        settings.allow.empty() ? std::vector<Allowed>{} : read_allow_list(settings.allow);
    const Target target =
        load_target(settings.target, settings.target_config.empty()
                                         ? std::nullopt
                                         : std::optional<std::filesystem::path>(settings.target_config));
    std::optional<Model> model;
    if (!settings.model.empty()) model.emplace(read_model(settings.model));
    const EncodingFile given = read_given(settings, target, model, input.faults, remarks);
    std::optional<StatisticsFile> statistics;
    if (!settings.statistics.empty()) statistics.emplace(settings.statistics);
    if (model && statistics && statistics->header().model_hash != model->hash) {
        remarks.add(printable(settings.statistics) + ": made from another model than " +
                    printable(settings.model));
    }
    const ConverterReport found = settings.against.empty() ? read_logs(settings.logs, remarks)
                                                           : read_other(settings, given, model, remarks);
    input.given = &given;
    input.found = &found;
    input.target = &target;
    input.graph = model ? model->graph.get() : nullptr;
    input.statistics = statistics ? &*statistics : nullptr;
    input.files_only = !settings.against.empty();
    AuditResult result = audit(input);
    accept(allowed, result);
    return result;
}

}  // namespace qcalib
