#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "dataset/sample_reader.h"

namespace qcalib {

// Makes the row-major tensor of one input from one file; throws Error "<file>: ...".
using ReadFile = Tensor (*)(const std::filesystem::path& path, const InputSpec& input,
                            const Preprocessing& preprocessing);

// The reader for a file, chosen by the ending of its name in lower case; raw data where no other reader
// claims it.
ReadFile reader_for(const std::filesystem::path& path);

// The readers. A new one is a file of its own, its declaration here and its line in the table of
// file_reader.cpp.
Tensor read_raw_file(const std::filesystem::path& path, const InputSpec& input,
                     const Preprocessing& preprocessing);
Tensor read_npy_file(const std::filesystem::path& path, const InputSpec& input,
                     const Preprocessing& preprocessing);
Tensor read_picture(const std::filesystem::path& path, const InputSpec& input,
                    const Preprocessing& preprocessing);

}  // namespace qcalib
