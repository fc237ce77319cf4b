#include "cli/audit_run.h"

#include <filesystem>
#include <optional>

#include "audit/allow_list.h"
#include "audit/log_reader.h"
#include "audit/renames.h"
#include "base/text.h"
#include "format/format.h"
#include "graph/onnx_file.h"
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
        rename(report, given, renamed_tensors(*model->graph, *read_onnx_file(settings.against_model).graph));
    }
    return report;
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
    const EncodingFile given = read_encodings(settings.encodings, remarks, &input.faults);
    std::optional<Model> model;
    if (!settings.model.empty()) model.emplace(read_onnx_file(settings.model));
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
