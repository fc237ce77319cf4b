#include "audit/finding.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace qcalib {

namespace {

using Json = nlohmann::ordered_json;

constexpr int indent = 2;

Json json_number(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// An integer where it is one: offsets may come from logs that print them with decimals.
Json whole(double value) {
    constexpr double most = 1e15;
    if (std::abs(value) < most && value == std::floor(value)) return static_cast<std::int64_t>(value);
    return json_number(value);
}

Json to_json(const std::optional<ShownEncoding>& encoding) {
    if (!encoding) return nullptr;
    Json json;
    json["bitwidth"] = encoding->bits;
    json["min"] = json_number(encoding->min);
    json["max"] = json_number(encoding->max);
    json["scale"] = json_number(encoding->scale);
    json["offset"] = whole(encoding->offset);
    if (encoding->channel) json["channel"] = *encoding->channel;
    return json;
}

}  // namespace

std::string_view name_of(Status status) {
    constexpr std::array<std::string_view, all_statuses.size()> names = {"applied", "nudged", "recomputed",
                                                                         "missing", "unused", "impossible"};
    return names[static_cast<std::size_t>(status)];
}

bool as_given(Status status) {
    return status == Status::applied || status == Status::nudged;
}

std::size_t AuditResult::count(Status status) const {
    return static_cast<std::size_t>(std::count_if(
        findings.begin(), findings.end(), [&](const Finding& finding) { return finding.status == status; }));
}

bool AuditResult::objections() const {
    return std::any_of(findings.begin(), findings.end(),
                       [](const Finding& finding) { return !as_given(finding.status) && !finding.accepted; });
}

std::string to_json(const AuditResult& result) {
    Json file;
    for (const Status status : all_statuses)
        file["summary"][std::string(name_of(status))] = result.count(status);
    file["findings"] = Json::array();
    for (const Finding& finding : result.findings) {
        Json json;
        json["tensor"] = printable(finding.tensor);
        json["status"] = name_of(finding.status);
        json["given"] = to_json(finding.given);
        json["found"] = to_json(finding.found);
        json["steps"] = finding.steps ? json_number(*finding.steps) : Json(nullptr);
        json["cause"] = finding.cause;
        if (finding.accepted) {
            json["cause"] = finding.cause + (finding.cause.empty() ? "" : "; ") +
                            "accepted: " + printable(*finding.accepted);
        }
        json["advice"] = finding.advice;
        file["findings"].push_back(std::move(json));
    }
    return file.dump(indent) + "\n";
}

}  // namespace qcalib
