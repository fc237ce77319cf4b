#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/remarks.h"
#include "encoding/encoding_file.h"

namespace qcalib {

// The encoding of codes of such a type ("uint8", "int8", "int16", "int32", "int64"); nothing where there is
// no such type, or the zero point is none of its codes.
std::optional<Encoding> circle_file_encoding(float scale, std::int64_t zero_point, const std::string& dtype);

// Whether the file is a .circle or .tflite model, by its content.
bool holds_circle_model(const std::filesystem::path& path);

// The encodings that a quantized .circle or .tflite model carries. Where it carries ranges alone, as
// record-minmax leaves them, these are the encodings that uint8 gives them, with a remark. A model with
// neither is an Error.
EncodingFile read_circle_quantization(const std::filesystem::path& path, Remarks& remarks);

}  // namespace qcalib
