#include "statistics/bin_counts.h"

#include <algorithm>

namespace qcalib {

namespace {

constexpr std::size_t cache_line = 64;

template <std::size_t count>
struct alignas(cache_line) Counts {
    std::array<std::uint32_t, count> counts = {};
};

}  // namespace

BinCounts::BinCounts(const BinCounts& other) {
    *this = other;
}

BinCounts& BinCounts::operator=(const BinCounts& other) {
    if (this == &other) return *this;
    if (other.empty()) {
        counts_.reset();
    } else {
        make();
        std::ranges::copy(other.all(), data());
    }
    return *this;
}

void BinCounts::make() {
    if (!empty()) return;
    const auto memory = std::make_shared<Counts<bins>>();
    counts_ = {memory, memory->counts.data()};
}

void BinCounts::adjoin(BinCounts& first, BinCounts& second) {
    const bool one_memory =
        !first.counts_.owner_before(second.counts_) && !second.counts_.owner_before(first.counts_);
    if (!first.empty() && one_memory && second.data() == first.data() + bins) return;
    const auto memory = std::make_shared<Counts<2 * bins>>();
    first.counts_ = {memory, memory->counts.data()};
    second.counts_ = {memory, memory->counts.data() + bins};
}

}  // namespace qcalib
