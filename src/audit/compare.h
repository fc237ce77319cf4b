#pragma once

#include <string>
#include <vector>

#include "audit/converter_report.h"
#include "audit/finding.h"
#include "encoding/encoding_file.h"
#include "target/target.h"

namespace qcalib {

// What comparing a tensor's given encodings with those found comes to; of several channels the worst.
struct Comparison {
    enum class Reason : std::uint8_t {
        none,
        width,      // other bits than given
        floating,   // left in float, or quantized where float was given
        channels,   // another number of encodings
        widened,    // what was given, widened to contain zero or to the least range
        symmetric,  // what was given, made symmetric
    };
    Status status = Status::applied;  // applied, nudged or recomputed
    Reason reason = Reason::none;
    ShownEncoding given;
    std::optional<ShownEncoding> found;
    std::optional<double> steps;
    bool close = false;
    std::string detail;  // about the reason
};

Comparison compare(const FileEntry& given, const FoundTensor& found, const Target& target);

// The first encoding of an entry with the very ends the file gives; nothing where it has none.
std::optional<ShownEncoding> shown_first(const FileEntry& entry);

// An encoding as findings show it.
ShownEncoding shown(const Encoding& encoding);
ShownEncoding shown(const FoundEncoding& encoding);

// Whether the grid that the target's rule gives a range is the one found.
bool gives(Range range, const FoundEncoding& found, const Target& target);

// "-17.53 to 12.27, 8 bit"
std::string range_text(const ShownEncoding& encoding);

}  // namespace qcalib
