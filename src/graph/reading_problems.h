#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/files.h"

namespace qcalib {

// Throws one Error "<path>: ..." that lists all that is wrong with a model file.
[[noreturn]] void refuse_model(const std::filesystem::path& path, std::span<const std::string> problems);

// "double is computed as float32 ('x' and others)", the remark on a model's double tensors.
std::string double_remark(std::span<const std::string> tensors);

// Adds a mapped file to the digest; the pages of a large one are given back piece by piece.
void hash_file(Sha256& hash, const MappedFile& file);

}  // namespace qcalib
