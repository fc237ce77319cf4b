#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "encoding/encoding.h"

namespace qcalib {

// A file format encodings are written in.
class Format {
  public:
    virtual ~Format() = default;
    virtual std::string name() const = 0;
    virtual std::string summary() const = 0;  // what reads it, one paragraph
    virtual std::string suffix() const = 0;   // added to <stem>.<target>: ".json"
    // The file's text.
    virtual std::string emit(const EncodingSet& encodings) const = 0;
};

// All formats; listed in format/format.cpp.
std::span<const Format* const> formats();

// The format of that name; an Error offers the nearest.
const Format& find_format(const std::string& name);

}  // namespace qcalib
