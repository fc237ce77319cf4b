#include "tensor/transpose.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

namespace qcalib {

TEST_CASE("rows become columns for any extents, strides and alignment, and nothing else is touched") {
    for (const std::size_t rows : {1U, 3U, 4U, 16U, 17U, 49U}) {
        for (const std::size_t columns : {1U, 2U, 5U, 16U, 31U, 36U}) {
            const std::size_t stride = columns + 3;
            const std::size_t target_stride = rows == 3 && columns != 5 ? rows : rows + 2;
            std::vector<std::uint32_t> source(rows * stride);
            for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint32_t>(i + 1);
            std::vector<std::byte> bytes(source.size() * 4 + 1);
            std::memcpy(bytes.data() + 1, source.data(), source.size() * 4);
            std::vector<std::uint32_t> target(columns * target_stride, 0);
            transpose_words(bytes.data() + 1, {rows, columns, stride},
                            reinterpret_cast<std::byte*>(target.data()), target_stride);
            std::size_t wrong = 0;
            for (std::size_t c = 0; c < columns; ++c) {
                for (std::size_t r = 0; r < target_stride; ++r) {
                    const std::uint32_t expected = r < rows ? source[r * stride + c] : 0;
                    wrong += target[c * target_stride + r] == expected ? 0 : 1;
                }
            }
            CHECK(wrong == 0);
        }
    }
}

}  // namespace qcalib
