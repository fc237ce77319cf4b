#include "cli/report_file.h"

#include <unordered_map>

#include "base/digest.h"
#include "base/files.h"
#include "base/text.h"
#include "report/calibration_report.h"

namespace qcalib {

namespace {

ReportedEncoding reported(const Decision& decision, const TensorEncoding* entry) {
    ReportedEncoding reported;
    reported.tensor = decision.tensor;
    reported.kind = name_of(decision.kind);
    reported.method = decision.method;
    reported.origin = decision.origin;
    reported.ranges = decision.ranges;
    if (entry != nullptr) reported.encoding = *entry;
    reported.no_encoding = decision.no_encoding;
    reported.overrides = decision.overrides;
    reported.notes = decision.notes;
    return reported;
}

std::vector<std::string> format_names(const Emission& emission) {
    std::vector<std::string> names;
    for (const EmissionFile& file : emission.files) names.push_back(file.format->name());
    return names;
}

ReportedTarget reported(const Emission& emission, const EncodingOptions& options,
                        const EmittedEncodings& emitted) {
    ReportedTarget target{emission.target.name,
                          join(format_names(emission), ", "),
                          emission.file().filename().string(),
                          options.describe(emission.target),
                          {}};
    std::unordered_map<std::string, const TensorEncoding*> entry_of;
    for (const auto* entries : {&emitted.encodings.activations, &emitted.encodings.parameters}) {
        for (const TensorEncoding& entry : *entries) entry_of.emplace(entry.tensor, &entry);
    }
    for (const Decision& decision : emitted.decisions) {
        const auto entry = entry_of.find(decision.tensor);
        target.encodings.push_back(reported(decision, entry == entry_of.end() ? nullptr : entry->second));
    }
    return target;
}

constexpr std::uintmax_t most_hashed = std::uintmax_t{64} << 20;  // bytes; more are data, not a list

std::string sha256_of_list(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return "";
    if (std::filesystem::file_size(path, error) > most_hashed) return "";
    const MappedFile file(path);
    Sha256 digest;
    digest.update(file.bytes());
    return to_hex(digest.finish());
}

}  // namespace

void write_report(const std::filesystem::path& file, const ReportedRun& run, const EncodingOptions& options,
                  std::span<const Emission> emissions, std::span<const EmittedEncodings> emitted,
                  const StatisticsFile& statistics, const Remarks& remarks) {
    CalibrationReport report;
    report.program_version = QCALIB_VERSION;
    report.model = std::filesystem::path(run.model).filename().string();
    if (!run.data.empty()) {
        report.data = std::filesystem::path(run.data).filename().string();
        report.data_sha256 = sha256_of_list(run.data);
    }
    report.shuffle_seed = run.shuffle_seed;
    for (std::size_t i = 0; i < emissions.size(); ++i) {
        report.targets.push_back(reported(emissions[i], options, emitted[i]));
    }
    report.remarks = remarks.all();
    write_file(file, report_json(report, statistics));
}

}  // namespace qcalib
