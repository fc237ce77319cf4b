#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qcalib {

// Instruction sets a run may be held to; `best` is whatever the machine has.
enum class Isa { baseline, avx2, avx512, best };

// "sse4", "avx2", "avx512", "best"; an Error offers the nearest.
Isa parse_isa(std::string_view text);

// Holds oneDNN and Highway to `isa`. To be called once, before any kernel is prepared.
void limit_isa(Isa isa);

// The instruction set in force, e.g. "avx512" or "avx2": what a statistics file records.
std::string isa_in_force();

}  // namespace qcalib
