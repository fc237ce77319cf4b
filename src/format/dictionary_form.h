#pragma once

#include <string>
#include <vector>

#include "format/format.h"
#include "format/json_writer.h"
#include "format/losses.h"
#include "format/offset_conventions.h"

namespace qcalib {

class Element;

// What sets the formats apart that keep encodings in two dictionaries: activation_encodings and
// param_encodings, each from tensor name to a list of encodings (one, or one a channel).
struct DictionarySchema {
    std::string version;       // "" where the file has none
    bool scale_offset = true;  // an encoding has scale and offset
    bool symmetric = true;     // is_symmetric
    bool dtype = true;         // dtype, and so float entries
    bool width_only = false;   // entries without a range
    OffsetRule offsets;
    std::vector<std::string> other_keys;  // documented keys of the file beside version and sections
};

class DictionaryForm : public Format {
  public:
    explicit DictionaryForm(DictionarySchema schema) : schema_(std::move(schema)) {}

    std::string suffix() const override { return ".json"; }
    bool writable() const override { return true; }
    // By the version.
    int recognise(const FormatReader& reader) const override;
    void read(FormatReader& reader) const override;

  protected:
    std::string write(const EncodingFile& file, Remarks& remarks) const override;

  private:
    void write_section(JsonWriter& json, const EncodingFile& file, Section section, Losses& losses) const;
    void write_entry(JsonWriter& json, const FileEntry& entry, Losses& losses) const;
    void write_encoding(JsonWriter& json, const Encoding& encoding) const;
    bool can_express(const FileEntry& entry, Losses& losses) const;

    DictionarySchema schema_;
};

// Whether the file has a section that is a dictionary.
bool has_dictionaries(const FormatReader& reader);

// What the encodings of a dictionary file without a version have, for telling the formats apart.
struct DictionaryTraits {
    std::size_t encodings = 0;
    bool only_ranges = true;   // no key but bitwidth, min and max
    bool has_flags = false;    // is_symmetric or dtype
    std::size_t positive = 0;  // offsets
    std::size_t negative = 0;
};
DictionaryTraits traits_of(const FormatReader& reader);

// The text of the version, as the file gives it; "" where it has none.
std::string version_of(const FormatReader& reader);

// Top-level keys that a format may not have: members that are neither `known` nor look like a section are
// kept as unknown keys; misspelt sections are faults.
void read_other_keys(FormatReader& reader, const std::vector<std::string>& known);

}  // namespace qcalib
