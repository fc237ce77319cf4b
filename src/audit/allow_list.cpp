#include "audit/allow_list.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "base/yaml_reader.h"

namespace qcalib {

namespace {

const std::vector<YamlSection> schema = {{"the file", {"allow"}},
                                         {"an accepted finding", {"tensor", "status", "reason"}}};

// Names of tensors with another status, to say why an entry is for none.
std::string why_unused(const Allowed& entry, const AuditResult& result) {
    std::vector<std::string> names;
    for (const Finding& finding : result.findings) {
        if (glob_match(entry.tensor, finding.tensor))
            return fmt::format("'{}' is {}", printable(finding.tensor), name_of(finding.status));
        names.push_back(finding.tensor);
    }
    return "no finding is of that tensor" + did_you_mean(entry.tensor, names);
}

}  // namespace

std::vector<Allowed> read_allow_list(const std::filesystem::path& path) {
    const std::string file = printable(path.string());
    YamlFaults faults(file);
    const YAML::Node node = parse_yaml(read_text_file(path), file);
    const YamlMap map(node, schema.front().name, schema, faults);
    std::vector<Allowed> allowed;
    for (const YamlMap& entry : map.maps("allow", schema.back().name)) {
        Allowed one;
        one.tensor = entry.text("tensor");
        one.status = all_statuses[entry.choice(
            "status", {"applied", "nudged", "recomputed", "missing", "unused", "impossible"})];
        one.reason = entry.text("reason");
        if (trim(one.reason).empty())
            entry.fault("reason", "expected why the finding is accepted, found nothing");
        one.where = fmt::format("{}:{}", file, entry.mark("tensor").line + 1);
        allowed.push_back(std::move(one));
    }
    faults.throw_if_any();
    return allowed;
}

void accept(const std::vector<Allowed>& allowed, AuditResult& result) {
    for (const Allowed& entry : allowed) {
        bool used = false;
        for (Finding& finding : result.findings) {
            if (finding.status != entry.status || !glob_match(entry.tensor, finding.tensor)) continue;
            used = true;
            if (!finding.accepted) finding.accepted = entry.reason;
        }
        if (!used) {
            result.notes.push_back(fmt::format("{}: '{}' {} is for no finding: {}", entry.where,
                                               printable(entry.tensor), name_of(entry.status),
                                               why_unused(entry, result)));
        }
    }
}

}  // namespace qcalib
