#include "runtime/buffer_layout.h"

#include <algorithm>
#include <numeric>

namespace qcalib {

namespace {

constexpr std::size_t alignment = 64;

std::size_t aligned(std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
}

// The start of the smallest gap of at least `bytes` between `taken` places (sorted by offset), or the end of
// them all.
std::size_t smallest_gap(std::span<const std::pair<std::size_t, std::size_t>> taken, std::size_t bytes) {
    std::size_t best = 0;
    std::size_t best_size = 0;
    bool found = false;
    std::size_t end = 0;
    for (const auto& [offset, size] : taken) {
        if (offset >= end + bytes && (!found || offset - end < best_size)) {
            best = end;
            best_size = offset - end;
            found = true;
        }
        end = std::max(end, offset + size);
    }
    return found ? best : end;
}

}  // namespace

BufferLayout lay_out(std::span<const BufferLife> buffers) {
    BufferLayout layout;
    layout.offsets.assign(buffers.size(), 0);
    std::vector<std::size_t> by_size(buffers.size());
    std::iota(by_size.begin(), by_size.end(), std::size_t{0});
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });

    std::vector<std::size_t> placed;  // sorted by offset
    std::vector<std::pair<std::size_t, std::size_t>> taken;
    for (const std::size_t index : by_size) {
        const BufferLife& life = buffers[index];
        taken.clear();
        for (const std::size_t other : placed) {
            if (buffers[other].first <= life.last && life.first <= buffers[other].last) {
                taken.emplace_back(layout.offsets[other], aligned(buffers[other].bytes));
            }
        }
        const std::size_t bytes = aligned(std::max<std::size_t>(1, life.bytes));
        const std::size_t offset = smallest_gap(taken, bytes);
        layout.offsets[index] = offset;
        layout.bytes = std::max(layout.bytes, offset + bytes);
        const auto position = std::upper_bound(
            placed.begin(), placed.end(), index,
            [&](std::size_t a, std::size_t b) { return layout.offsets[a] < layout.offsets[b]; });
        placed.insert(position, index);
    }
    return layout;
}

}  // namespace qcalib
