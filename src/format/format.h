#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "encoding/encoding_file.h"
#include "graph/graph.h"
#include "target/decision.h"
#include "target/target.h"

namespace qcalib {

class FormatReader;

// What formats that hold more than encodings know of the model they are for.
struct EmittedModel {
    const Model& model;
    // The value of an initializer or of what hangs on initializers alone (float32 for all float types), or
    // nullptr.
    std::function<const Tensor*(ValueId)> constant;
    const Target& target;
    std::span<const Decision> decisions;  // what led to each encoding, or to none
    std::filesystem::path patch;          // a file of the format to change instead of making one; "": none
};

// A file of an emission.
struct FormattedFile {
    std::filesystem::path path;  // relative to the folder of the output
    std::string bytes;
};

// A file format encodings are written in.
class Format {
  public:
    virtual ~Format() = default;
    virtual std::string name() const = 0;
    virtual std::string summary() const = 0;  // what writes and reads it, one paragraph
    virtual std::string limits() const = 0;   // what it cannot express, one sentence
    virtual std::string suffix() const = 0;   // added to <stem>.<target>: ".json"
    virtual bool writable() const = 0;

    // How surely `reader`'s file is of this format: 0 (it is not) to 100.
    virtual int recognise(const FormatReader& reader) const = 0;
    // Adds what the file says to reader.file(), and its faults and remarks to the reader.
    virtual void read(FormatReader& reader) const = 0;

    // The file's text. What the format cannot express is left out with a remark that names it; keys the
    // format does not know are kept where `file` is of this format. Error: a name that is no UTF-8, a format
    // that is only read.
    std::string emit(const EncodingFile& file, Remarks& remarks) const;
    std::string emit(const EncodingSet& encodings, Remarks& remarks) const;

    // All files of an emission; `name` is that of the first, which a converter is given. Here it is the one
    // that emit() answers. Errors as there.
    virtual std::vector<FormattedFile> files(const EncodingSet& encodings, const EmittedModel& model,
                                             const std::filesystem::path& name, Remarks& remarks) const;

  protected:
    virtual std::string write(const EncodingFile& file, Remarks& remarks) const = 0;
};

// All formats; listed in format/format.cpp.
std::span<const Format* const> formats();

// The format of that name; an Error offers the nearest.
const Format& find_format(const std::string& name);

// Reads a file of any format of the registry, recognised by what is in it. Conventions found, elements mended
// and odd numbers become remarks that start with the file. All faults of a file are one Error, a line
// "file:line: 'tensor': text" each; where `faults` is given, those of single entries are added to it instead
// and the entries left out.
EncodingFile read_encodings(const std::filesystem::path& path, Remarks& remarks,
                            std::vector<EntryFault>* faults = nullptr);
// The same for a text; `path` is what messages call it.
EncodingFile parse_encodings(std::string text, const std::filesystem::path& path, Remarks& remarks,
                             std::vector<EntryFault>* faults = nullptr);

}  // namespace qcalib
