#pragma once

#include <span>
#include <string_view>

namespace qcalib {

// A file of configs/targets, compiled in.
struct BuiltinTarget {
    std::string_view name;  // of the file, without its extension
    std::string_view text;
};

// All of them in alphabetical order. embed_targets.cmake writes the definition when the project is built.
std::span<const BuiltinTarget> builtin_targets();

}  // namespace qcalib
