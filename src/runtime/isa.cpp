#include "runtime/isa.h"

#include <array>
#include <utility>
#include <vector>

#include <hwy/highway.h>

#include "base/error.h"
#include "base/text.h"
#include "runtime/onednn.h"

namespace qcalib {

namespace {

constexpr std::array<std::pair<std::string_view, Isa>, 4> isa_names{
    {{"sse4", Isa::baseline}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}, {"best", Isa::best}}};

// Highway numbers its x86 targets from the best (lowest bit) to the plainest.
std::int64_t targets_above(Isa isa) {
    if (isa == Isa::baseline) return HWY_SSE4 - 1;
    return isa == Isa::avx2 ? HWY_AVX2 - 1 : 0;
}

}  // namespace

Isa parse_isa(std::string_view text) {
    std::vector<std::string> names;
    for (const auto& [name, isa] : isa_names) {
        if (name == text) return isa;
        names.emplace_back(name);
    }
    fail("--isa: expected sse4, avx2, avx512 or best, found '{}'{}", printable(text),
         did_you_mean(text, names));
}

void limit_isa(Isa isa) {
    if (isa == Isa::best) return;
    if (!onednn::limit_isa(isa)) fail("--isa: oneDNN is in use already and its instruction set is fixed");
    if (const std::int64_t above = targets_above(isa); above != 0) hwy::DisableTargets(above);
}

std::string isa_in_force() {
    const std::int64_t targets = hwy::SupportedTargets();
    if ((targets & (HWY_AVX2 - 1)) != 0) return "avx512";
    if ((targets & HWY_AVX2) != 0) return "avx2";
    if ((targets & HWY_SSE4) != 0) return "sse4";
    return "baseline";
}

}  // namespace qcalib
