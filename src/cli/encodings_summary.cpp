#include "cli/encodings_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "report/table.h"

namespace qcalib {

namespace {

std::string number(double value) {
    return fmt::format("{:.7g}", value);
}

std::string type_of(const TensorEncoding& encoding) {
    if (!encoding.float_name.empty()) return encoding.float_name;
    return fmt::format("{}{}", encoding.type == CodeType::floating ? "float" : "int", encoding.width());
}

std::string layout_of(const TensorEncoding& encoding) {
    if (encoding.encodings.empty()) return encoding.type == CodeType::floating ? "float" : "width only";
    if (encoding.lpbq) return fmt::format("LPBQ of {}", encoding.block_size);
    if (encoding.per_block()) return fmt::format("per block of {}", encoding.block_size);
    if (encoding.axis) return fmt::format("per channel of axis {}", *encoding.axis);
    return "per tensor";
}

// The layout without its numbers: "per channel".
std::string kind_of(const TensorEncoding& encoding) {
    const std::string layout = layout_of(encoding);
    return layout.substr(0, layout.find(" of "));
}

std::string_view name_of(Section section) {
    switch (section) {
        case Section::activation:
            return "activation";
        case Section::parameter:
            return "parameter";
        case Section::any:
            break;
    }
    return "";
}

// "3 int8, 1 float16".
std::string counts_text(const std::map<std::string, std::size_t>& counts) {
    std::vector<std::string> parts;
    parts.reserve(counts.size());
    for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", count, name));
    return join(parts, ", ");
}

std::vector<std::string> unknown_keys(const EncodingFile& file) {
    std::set<std::string> of_entries;
    for (const FileEntry& entry : file.entries) {
        for (const std::vector<UnknownKey>& element : entry.unknown) {
            for (const UnknownKey& one : element) of_entries.insert(printable(one.key));
        }
    }
    std::vector<std::string> keys;
    for (const UnknownKey& one : file.unknown) keys.push_back(printable(one.key));
    keys.insert(keys.end(), of_entries.begin(), of_entries.end());
    return keys;
}

std::string facts_text(const EncodingFile& file, std::size_t width) {
    std::map<std::string, std::size_t> kinds;
    std::map<std::string, std::size_t> activations;
    std::map<std::string, std::size_t> parameters;
    std::map<std::string, std::size_t> any;
    std::map<std::string, std::size_t> conventions;
    std::size_t encodings = 0;
    std::size_t symmetric = 0;
    for (const FileEntry& entry : file.entries) {
        const TensorEncoding& encoding = entry.encoding;
        ++kinds[kind_of(encoding)];
        auto& widths = entry.section == Section::activation  ? activations
                       : entry.section == Section::parameter ? parameters
                                                             : any;
        ++widths[type_of(encoding)];
        encodings += encoding.encodings.size();
        const bool all =
            !encoding.encodings.empty() && std::all_of(encoding.encodings.begin(), encoding.encodings.end(),
                                                       [](const Encoding& one) { return one.symmetric; });
        symmetric += all ? 1 : 0;
        if (entry.convention != OffsetConvention::none) ++conventions[std::string(name_of(entry.convention))];
    }
    Table facts;
    facts.column("").column("");
    facts.row({"format", file.format});
    if (!file.version.empty()) facts.row({"version", printable(file.version)});
    facts.row({"entries", fmt::format("{} of {} encodings{}{}", file.entries.size(), encodings,
                                      kinds.empty() ? "" : ": ", counts_text(kinds))});
    if (!activations.empty()) facts.row({"activations", counts_text(activations)});
    if (!parameters.empty()) facts.row({"parameters", counts_text(parameters)});
    if (!any.empty()) facts.row({"in no section", counts_text(any)});
    facts.row({"symmetric", std::to_string(symmetric)});
    if (!conventions.empty()) facts.row({"offsets", counts_text(conventions)});
    const std::vector<std::string> keys = unknown_keys(file);
    if (!keys.empty()) facts.row({"other keys", join(keys, ", ")});
    return facts.text(width);
}

std::vector<std::string> row_of(const FileEntry& entry) {
    const TensorEncoding& encoding = entry.encoding;
    std::vector<std::string> cells = {printable(encoding.tensor), std::string(name_of(entry.section)),
                                      type_of(encoding), layout_of(encoding)};
    cells.resize(9);
    if (encoding.encodings.empty()) return cells;
    const auto text = [&](const auto& member, const auto& print) {
        const auto [least, most] =
            std::minmax_element(encoding.encodings.begin(), encoding.encodings.end(),
                                [&](const Encoding& a, const Encoding& b) { return member(a) < member(b); });
        const std::string low = print(member(*least));
        const std::string high = print(member(*most));
        return low == high ? low : low + " .. " + high;
    };
    const auto& all = encoding.encodings;
    cells[4] = number(std::min_element(all.begin(), all.end(), [](const Encoding& a, const Encoding& b) {
                          return a.min < b.min;
                      })->min);
    cells[5] = number(std::max_element(all.begin(), all.end(), [](const Encoding& a, const Encoding& b) {
                          return a.max < b.max;
                      })->max);
    cells[6] = text([](const Encoding& one) { return one.scale; }, number);
    cells[7] = text([](const Encoding& one) { return one.offset; },
                    [](std::int64_t value) { return std::to_string(value); });
    cells[8] = all.front().symmetric ? "yes" : "";
    return cells;
}

}  // namespace

std::string encodings_summary(const EncodingFile& file, const std::string& pattern, std::size_t most,
                              std::size_t width) {
    using enum Table::Align;
    Table table;
    table.column("tensor").column("section").column("type").column("layout").column("min", right);
    table.column("max", right).column("scale", right).column("offset", right).column("symmetric");
    std::size_t fitting = 0;
    for (const FileEntry& entry : file.entries) {
        if (!glob_match(pattern, entry.encoding.tensor)) continue;
        if (++fitting <= most) table.row(row_of(entry));
    }
    if (fitting == 0 && !file.entries.empty()) {
        std::vector<std::string> names;
        for (const FileEntry& entry : file.entries) names.push_back(entry.encoding.tensor);
        fail("{}: no tensor fits '{}'{}", printable(file.path.string()), printable(pattern),
             did_you_mean(pattern, names));
    }
    std::string text = facts_text(file, width);
    if (!table.empty()) text += "\n" + table.text(width);
    if (fitting > most) text += fmt::format("... and {} more: choose with --tensor\n", fitting - most);
    return text;
}

}  // namespace qcalib
