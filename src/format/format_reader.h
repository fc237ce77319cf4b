#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding_file.h"
#include "format/json_reader.h"
#include "format/offset_conventions.h"

namespace qcalib {

// An encodings file while it is read: its text or JSON, what was found in it, what is wrong with it.
class FormatReader {
  public:
    // JSON faults of a text that starts as JSON does are an Error.
    FormatReader(std::string text, std::filesystem::path path);
    FormatReader(const FormatReader&) = delete;
    FormatReader& operator=(const FormatReader&) = delete;

    const std::filesystem::path& path() const { return file_.path; }
    const std::string& text() const { return text_; }  // without byte order mark
    // The root where it is an object, else nullptr.
    const JsonValue* object() const;
    // The member of the root object, or nullptr.
    const JsonValue* member(std::string_view key) const;
    const JsonDocument* json() const { return json_ ? &*json_ : nullptr; }
    std::size_t line(const JsonValue& value) const { return json_->line(value.begin); }
    UnknownKey unknown(const std::string& key, const JsonValue& value) const;

    // Something wrong with a tensor's entry; with the file where `tensor` is "".
    void fault(std::string tensor, std::size_t line, std::string text);
    // Something odd about one tensor; all of the same `text` become one remark "<file>: N entries (names):
    // <text>".
    void note(const std::string& text, const std::string& tensor);
    void note_file(const std::string& text) { file_notes_.push_back(text); }

    // Adds an entry whose encodings follow from `entry.given`, `bits` and the offset rule (see
    // offset_conventions.h); a fault leaves it out. Without given numbers the entry is taken as it is.
    void add(FileEntry entry, int bits, const OffsetRule& rule);

    EncodingFile& file() { return file_; }
    // The file as read. Faults are thrown as one Error, or those of entries added to `faults`.
    EncodingFile finish(Remarks& remarks, std::vector<EntryFault>* faults);

  private:
    bool encode(FileEntry& entry, int bits, const OffsetRule& rule, std::uint8_t& candidates);
    void note_repetitions();
    void note_duplicates();
    void settle_conventions();
    void throw_or_hand_over(std::vector<EntryFault>* faults);

    std::string text_;
    EncodingFile file_;
    std::optional<JsonDocument> json_;
    std::vector<EntryFault> faults_;
    std::vector<std::string> file_notes_;
    std::map<std::string, std::vector<std::string>> notes_;
    std::vector<std::uint8_t> candidates_;    // of each entry: the conventions that explain its offsets
    std::vector<OffsetConvention> expected_;  // of each entry: the one its format documents
};

// "'a', 'b', 'c' and 7 more".
std::string name_list(const std::vector<std::string>& names);

}  // namespace qcalib
