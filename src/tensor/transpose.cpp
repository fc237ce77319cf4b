#include "tensor/transpose.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace qcalib {

namespace {

constexpr std::size_t word = 4;
constexpr std::size_t block = 4;  // words a vector holds
constexpr std::size_t tile = 16;  // rows and columns of a tile: its source and target lines stay in the cache

using Four = std::uint32_t __attribute__((vector_size(block * word)));

void transpose_block(const std::byte* source, std::size_t stride, std::byte* target,
                     std::size_t target_stride) {
    Four in[block];
    for (std::size_t r = 0; r < block; ++r) std::memcpy(&in[r], source + r * stride * word, sizeof(Four));
    const Four low01 = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
    const Four high01 = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
    const Four low23 = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
    const Four high23 = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
    const Four out[block] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                             __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                             __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                             __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    for (std::size_t c = 0; c < block; ++c) {
        std::memcpy(target + c * target_stride * word, &out[c], sizeof(Four));
    }
}

void transpose_by_words(const std::byte* source, const MatrixPlace& place, std::byte* target,
                        std::size_t target_stride) {
    for (std::size_t c = 0; c < place.columns; ++c) {
        for (std::size_t r = 0; r < place.rows; ++r) {
            std::memcpy(target + (c * target_stride + r) * word, source + (r * place.stride + c) * word,
                        word);
        }
    }
}

// A tile: blocks, then what is left at its right and lower edge.
void transpose_tile(const std::byte* source, const MatrixPlace& place, std::byte* target,
                    std::size_t target_stride) {
    const std::size_t rows = place.rows / block * block;
    const std::size_t columns = place.columns / block * block;
    for (std::size_t r = 0; r < rows; r += block) {
        for (std::size_t c = 0; c < columns; c += block) {
            transpose_block(source + (r * place.stride + c) * word, place.stride,
                            target + (c * target_stride + r) * word, target_stride);
        }
    }
    transpose_by_words(source + columns * word, {rows, place.columns - columns, place.stride},
                       target + columns * target_stride * word, target_stride);
    transpose_by_words(source + rows * place.stride * word, {place.rows - rows, place.columns, place.stride},
                       target + rows * word, target_stride);
}

// Three rows, as of a colour picture, woven into one: a b c a b c ...
void weave_three(const std::byte* source, std::size_t columns, std::size_t stride, std::byte* target) {
    std::size_t i = 0;
    for (; i + block <= columns; i += block) {
        Four row[3];
        for (std::size_t r = 0; r < 3; ++r)
            std::memcpy(&row[r], source + (r * stride + i) * word, sizeof(Four));
        const Four ab = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);  // a0 b0 a1 b1
        const Four bc = __builtin_shufflevector(row[1], row[2], 1, 5, 2, 6);  // b1 c1 b2 c2
        const Four ca = __builtin_shufflevector(row[2], row[0], 2, 7, 3, 7);  // c2 a3 c3 a3
        const Four out[3] = {__builtin_shufflevector(ab, row[2], 0, 1, 4, 2),
                             __builtin_shufflevector(bc, row[0], 0, 1, 6, 2),
                             __builtin_shufflevector(ca, row[1], 0, 1, 7, 2)};
        for (std::size_t r = 0; r < 3; ++r)
            std::memcpy(target + (3 * i + r * block) * word, &out[r], sizeof(Four));
    }
    transpose_by_words(source + i * word, {3, columns - i, stride}, target + 3 * i * word, 3);
}

}  // namespace

void transpose_words(const std::byte* source, const MatrixPlace& place, std::byte* target,
                     std::size_t target_stride) {
    if (place.rows == 3 && target_stride == 3)
        return weave_three(source, place.columns, place.stride, target);
    for (std::size_t c = 0; c < place.columns; c += tile) {
        const std::size_t columns = std::min(tile, place.columns - c);
        for (std::size_t r = 0; r < place.rows; r += tile) {
            transpose_tile(source + (r * place.stride + c) * word,
                           {std::min(tile, place.rows - r), columns, place.stride},
                           target + (c * target_stride + r) * word, target_stride);
        }
    }
}

}  // namespace qcalib
