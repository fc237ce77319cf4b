#include "format/format_reader.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr std::size_t most_faults_shown = 100;

bool looks_like_json(std::string_view text) {
    const std::string_view start = trim(text.substr(0, 1000));
    return start.starts_with('{') || start.starts_with('[');
}

void remove_byte_order_mark(std::string& text) {
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
}

bool has(std::uint8_t candidates, OffsetConvention convention) {
    return ((candidates >> static_cast<unsigned>(convention)) & 1U) != 0;
}

// The tensor a repeated key belongs to: the second key of its path, or the key itself where it stands in a
// section.
std::string tensor_of(const JsonRepetition& repetition) {
    if (repetition.path.size() == 1) return repetition.key;
    if (repetition.path.size() > 1) return repetition.path[1];
    return {};
}

}  // namespace

std::string name_list(const std::vector<std::string>& names) {
    constexpr std::size_t most = 5;
    std::vector<std::string> shown;
    for (const std::string& name : names) {
        if (shown.size() == most && names.size() > most) {
            return join(shown, ", ") + fmt::format(" and {} more", names.size() - most);
        }
        shown.push_back(fmt::format("'{}'", printable(name)));
    }
    return join(shown, ", ");
}

FormatReader::FormatReader(std::string text, std::filesystem::path path) : text_(std::move(text)) {
    remove_byte_order_mark(text_);
    file_.path = std::move(path);
    if (looks_like_json(text_)) json_.emplace(text_, file_.path);
}

const JsonValue* FormatReader::object() const {
    return json_ && json_->root().is(JsonValue::Kind::object) ? &json_->root() : nullptr;
}

const JsonValue* FormatReader::member(std::string_view key) const {
    return object() == nullptr ? nullptr : object()->find(key);
}

UnknownKey FormatReader::unknown(const std::string& key, const JsonValue& value) const {
    return {key, std::string(json_->raw(value))};
}

void FormatReader::fault(std::string tensor, std::size_t line, std::string text) {
    faults_.push_back({std::move(tensor), line, std::move(text)});
}

void FormatReader::note(const std::string& text, const std::string& tensor) {
    notes_[text].push_back(tensor);
}

// Fills the entry's encodings from its given numbers; false where there is a fault.
bool FormatReader::encode(FileEntry& entry, int bits, const OffsetRule& rule, std::uint8_t& candidates) {
    TensorEncoding& encoding = entry.encoding;
    bool good = true;
    candidates = 0xff;
    const auto note_where = [&](bool odd, const char* text) {
        if (odd) note(text, encoding.tensor);
    };
    for (std::size_t i = 0; i < entry.given.size(); ++i) {
        const CompletedEncoding completed = complete_encoding(bits, entry.given[i], rule);
        if (!completed.fault.empty()) {
            const std::string where = entry.given.size() > 1 ? fmt::format("encoding {}: ", i) : "";
            fault(encoding.tensor, entry.line, where + completed.fault);
            good = false;
            continue;
        }
        encoding.encodings.push_back(completed.encoding);
        if (completed.candidates > 1) candidates &= completed.candidates;
        if (i > 0 && entry.given.size() > 16) continue;  // one remark a tensor is enough
        note_where(completed.without_zero, "the range does not contain 0 and is widened to it");
        note_where(completed.empty_range,
                   "min and max are 0; the least range 0.01 is taken where no scale tells");
        note_where(completed.odd_scale, "the scale does not fit min and max, which are taken");
        note_where(completed.odd_offset, "the offset does not fit min and scale; min is taken");
    }
    if (candidates == 0xff) candidates = 0;
    return good;
}

void FormatReader::add(FileEntry entry, int bits, const OffsetRule& rule) {
    std::uint8_t candidates = 0;
    if (!entry.given.empty() && !encode(entry, bits, rule, candidates)) return;
    candidates_.push_back(candidates);
    expected_.push_back(rule.expected);
    file_.entries.push_back(std::move(entry));
}

// Of the conventions that explain an entry's offsets, the one that explains most of the file is meant.
void FormatReader::settle_conventions() {
    constexpr std::array all = {OffsetConvention::negative, OffsetConvention::positive,
                                OffsetConvention::positive_less_one, OffsetConvention::signed_negative,
                                OffsetConvention::signed_positive};
    std::array<std::size_t, 8> counts{};
    for (const std::uint8_t candidates : candidates_) {
        for (const OffsetConvention one : all)
            counts[static_cast<std::size_t>(one)] += has(candidates, one) ? 1 : 0;
    }
    for (std::size_t i = 0; i < file_.entries.size(); ++i) {
        OffsetConvention& chosen = file_.entries[i].convention;
        std::size_t most = 0;
        for (const OffsetConvention one : all) {
            if (!has(candidates_[i], one) || counts[static_cast<std::size_t>(one)] <= most) continue;
            most = counts[static_cast<std::size_t>(one)];
            chosen = one;
        }
        if (chosen == OffsetConvention::none || chosen == expected_[i]) continue;
        note(fmt::format("the offset is written as {}, not as {}", name_of(chosen), name_of(expected_[i])),
             file_.entries[i].encoding.tensor);
    }
}

void FormatReader::note_repetitions() {
    if (!json_) return;
    for (const JsonRepetition& repetition : json_->repetitions()) {
        fault(tensor_of(repetition), json_->line(repetition.second),
              fmt::format("key '{}' is given twice, first in line {}", printable(repetition.key),
                          json_->line(repetition.first)));
    }
}

// Faults of tensors with several entries; the first of each stays.
void FormatReader::note_duplicates() {
    std::unordered_set<std::string> repeated_keys;
    for (const EntryFault& one : faults_) repeated_keys.insert(one.tensor);
    std::unordered_map<std::string, std::pair<std::size_t, Section>> first_of;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < file_.entries.size(); ++i) {
        const FileEntry& entry = file_.entries[i];
        const std::string& tensor = entry.encoding.tensor;
        const auto [first, added] = first_of.emplace(tensor, std::pair(entry.line, entry.section));
        const bool elsewhere = first->second.second != entry.section;
        if (!added && (elsewhere || !repeated_keys.contains(tensor))) {
            fault(tensor, entry.line,
                  fmt::format("{}, first in line {}",
                              elsewhere ? "is an activation and a parameter" : "has two entries",
                              first->second.first));
        }
        if (!added) continue;
        if (kept != i) {
            file_.entries[kept] = std::move(file_.entries[i]);
            candidates_[kept] = candidates_[i];
            expected_[kept] = expected_[i];
        }
        ++kept;
    }
    file_.entries.resize(kept);
}

void FormatReader::throw_or_hand_over(std::vector<EntryFault>* faults) {
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](const EntryFault& a, const EntryFault& b) { return a.line < b.line; });
    std::vector<std::string> lines;
    std::size_t hidden = 0;
    for (EntryFault& one : faults_) {
        if (faults != nullptr && !one.tensor.empty()) {
            faults->push_back(std::move(one));
        } else if (lines.size() < most_faults_shown) {
            lines.push_back(describe(file_.path, one));
        } else {
            ++hidden;
        }
    }
    if (lines.empty()) return;
    if (hidden > 0) lines.push_back(fmt::format("{}: and {} more", printable(file_.path.string()), hidden));
    throw Error(join(lines, "\n"));
}

EncodingFile FormatReader::finish(Remarks& remarks, std::vector<EntryFault>* faults) {
    note_repetitions();
    note_duplicates();
    throw_or_hand_over(faults);
    settle_conventions();
    const std::string name = printable(file_.path.string());
    for (const std::string& text : file_notes_) remarks.add(fmt::format("{}: {}", name, text));
    for (const auto& [text, tensors] : notes_) {
        remarks.add(fmt::format("{}: {} {} ({}): {}", name, tensors.size(),
                                tensors.size() == 1 ? "entry" : "entries", name_list(tensors), text));
    }
    return std::move(file_);
}

}  // namespace qcalib
