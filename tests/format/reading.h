#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/text.h"
#include "format/format.h"

namespace qcalib {

// A text that is read as the file "e.json", and what came of it.
struct Reading {
    EncodingFile file;
    std::string error;
    std::vector<std::string> remarks;
    std::vector<EntryFault> faults;

    const FileEntry& entry(const std::string& tensor) const {
        const auto found = std::find_if(file.entries.begin(), file.entries.end(),
                                        [&](const FileEntry& one) { return one.encoding.tensor == tensor; });
        REQUIRE_MESSAGE(found != file.entries.end(), tensor);
        return *found;
    }
    const Encoding& encoding(const std::string& tensor) const {
        REQUIRE(entry(tensor).encoding.encodings.size() == 1);
        return entry(tensor).encoding.encodings.front();
    }
};

inline Reading read_text(std::string text, bool collect_faults = false) {
    Reading reading;
    Remarks remarks;
    try {
        reading.file =
            parse_encodings(std::move(text), "e.json", remarks, collect_faults ? &reading.faults : nullptr);
    } catch (const Error& error) {
        reading.error = error.what();
    }
    reading.remarks = remarks.all();
    return reading;
}

// A file of SNPE's form with these activations.
inline Reading read_activations(const std::string& json, bool collect_faults = false) {
    return read_text("{\"activation_encodings\": {" + json + "}, \"param_encodings\": {}}", collect_faults);
}

}  // namespace qcalib
