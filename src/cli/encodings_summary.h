#pragma once

#include <cstddef>
#include <string>

#include "encoding/encoding_file.h"

namespace qcalib {

// What is in an encodings file, for a terminal of that width: format, counts, widths, conventions of offsets,
// unknown keys, and a row for each entry whose tensor fits `pattern`, but no more than `most`. No such tensor
// is an Error.
std::string encodings_summary(const EncodingFile& file, const std::string& pattern, std::size_t most,
                              std::size_t width);

}  // namespace qcalib
