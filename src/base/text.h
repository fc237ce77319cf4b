#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qcalib {

// The candidate that is least edits away from `name` (at most a third of its length, at least two), or "".
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// " (did you mean 'x'?)" for the nearest candidate, or "" where none is near: the tail of an error message.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

// True where `name` matches `pattern`: '*' stands for any run of bytes, '?' for one, all else for itself.
bool glob_match(std::string_view pattern, std::string_view name);

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);

// A name as it may be shown on a terminal: control bytes and malformed UTF-8 become \xNN.
std::string printable(std::string_view name);

// The whole text as a number, else an Error "<what>: expected a number, found '<text>'".
std::int64_t parse_integer(std::string_view text, std::string_view what);
double parse_real(std::string_view text, std::string_view what);

// "1.5 GiB", "320 KiB", "12 B".
std::string human_bytes(std::uint64_t bytes);

// Bytes of a memory size such as "512M", "2GiB" or "1000000"; an Error names `what`.
std::uint64_t parse_bytes(std::string_view text, std::string_view what);

}  // namespace qcalib
