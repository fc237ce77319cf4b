#include "report/audit_report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "report/table.h"

namespace qcalib {

namespace {

constexpr std::size_t least_width = 40;
constexpr std::size_t widest_prose = 110;

std::string sentence(const std::string& text) {
    return text.ends_with('?') ? text : text + ".";
}

// The text broken at blanks; lines after the first are indented.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
    const std::size_t columns = std::clamp(width, least_width, widest_prose);
    std::string result;
    std::string line;
    for (const std::string& word : split(text, ' ')) {
        if (!line.empty() && line.size() + 1 + word.size() > columns) {
            result += line + "\n";
            line = std::string(indent, ' ') + word;
        } else {
            line += (line.empty() ? "" : " ") + word;
        }
    }
    return result + line + "\n";
}

std::string range_cell(const std::optional<ShownEncoding>& encoding, int digits) {
    if (!encoding) return "-";
    std::string cell = fmt::format("{:.{}g} .. {:.{}g}", encoding->min, digits, encoding->max, digits);
    if (encoding->channel) cell += fmt::format(" [{}]", *encoding->channel);
    return cell;
}

// "8", or "16 -> 8" where another width came out than was given.
std::string bits_cell(const Finding& finding) {
    if (finding.given && finding.found && finding.given->bits != finding.found->bits)
        return fmt::format("{} -> {}", finding.given->bits, finding.found->bits);
    const std::optional<ShownEncoding>& known = finding.found ? finding.found : finding.given;
    return known ? std::to_string(known->bits) : "-";
}

std::string status_cell(const Finding& finding, int digits) {
    constexpr int digits_of_narrow_tables = 3;
    std::string cell(name_of(finding.status));
    if (digits <= digits_of_narrow_tables) return cell;
    if (finding.accepted) return cell + ", accepted";
    return finding.close ? cell + ", close" : cell;
}

std::string summary_line(const AuditResult& result) {
    std::vector<std::string> parts;
    for (const Status status : all_statuses) {
        if (const std::size_t count = result.count(status); count > 0)
            parts.push_back(fmt::format("{} {}", count, name_of(status)));
    }
    return fmt::format("{} tensors: {}\n", result.findings.size(),
                       parts.empty() ? "none" : join(parts, ", "));
}

Table table_of(const AuditResult& result, bool all, int digits) {
    using enum Table::Align;
    Table table;
    table.column("tensor").column("status").column("bits", right);
    table.column("given", right).column("found", right).column("steps", right);
    for (const Finding& finding : result.findings) {
        if (!all && finding.status == Status::applied) continue;
        table.row({printable(finding.tensor), status_cell(finding, digits), bits_cell(finding),
                   range_cell(finding.given, digits), range_cell(finding.found, digits),
                   finding.steps ? fmt::format("{:.{}g}", *finding.steps, std::min(digits, 5)) : "-"});
    }
    return table;
}

bool fits(const std::string& text, std::size_t width) {
    const auto characters = [](const std::string& line) {
        return std::count_if(line.begin(), line.end(),
                             [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
    };
    const std::vector<std::string> lines = split(text, '\n');
    return std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return static_cast<std::size_t>(characters(line)) <= width;
    });
}

// With as many digits as the width has room for.
std::string table_text(const AuditResult& result, bool all, std::size_t width) {
    std::string text;
    for (const int digits : {7, 5, 4, 3, 2}) {
        const Table table = table_of(result, all, digits);
        if (table.empty()) return "";
        text = "\n" + table.text(width);
        if (fits(text, width)) break;
    }
    return text;
}

// Findings that are explained by the same words.
struct Group {
    Status status = Status::applied;
    std::string cause;
    std::string advice;
    std::vector<std::string> tensors;
};

std::vector<Group> groups_of(const AuditResult& result) {
    std::vector<Group> groups;
    for (const Finding& finding : result.findings) {
        if (finding.status == Status::applied || finding.status == Status::nudged || finding.cause.empty())
            continue;
        std::string cause = finding.cause;
        if (finding.accepted) cause += "; accepted: " + printable(*finding.accepted);
        const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
            return group.status == finding.status && group.cause == cause && group.advice == finding.advice;
        });
        Group& group = same == groups.end() ? groups.emplace_back() : *same;
        group.status = finding.status;
        group.cause = std::move(cause);
        group.advice = finding.advice;
        group.tensors.push_back(printable(finding.tensor));
    }
    return groups;
}

std::string group_text(const Group& group, std::size_t width) {
    constexpr std::size_t most_names = 4;
    std::vector<std::string> names = group.tensors;
    if (names.size() > most_names) names.resize(most_names);
    std::string text = fmt::format("{} {}", name_of(group.status), join(names, ", "));
    if (group.tensors.size() > most_names)
        text += fmt::format(" and {} more", group.tensors.size() - most_names);
    text = wrapped(fmt::format("{}: {}.", text, group.cause), 2, width);
    if (!group.advice.empty()) text += wrapped("  -> " + sentence(group.advice), 5, width);
    return text;
}

}  // namespace

std::string audit_text(const AuditResult& result, bool all, std::size_t width) {
    std::string text;
    for (const std::string& cause : result.causes) text += wrapped("Likely cause: " + cause + ".", 2, width);
    if (!text.empty()) text += "\n";
    text += summary_line(result) + table_text(result, all, width);
    const std::vector<Group> groups = groups_of(result);
    if (!groups.empty()) text += "\n";
    for (const Group& group : groups) text += group_text(group, width);
    if (!result.notes.empty()) text += "\n";
    for (const std::string& note : result.notes) text += wrapped("Note: " + note + ".", 2, width);
    return text;
}

}  // namespace qcalib
