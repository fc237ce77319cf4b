#include "runtime/kernels/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tensor/transpose.h"

namespace qcalib {

namespace {

// Merges neighbours where the outer axis goes on where the inner one ends, on both sides.
std::vector<CopyAxis> merge_axes(const std::vector<CopyAxis>& axes) {
    std::vector<CopyAxis> merged;
    for (const CopyAxis& axis : axes) {
        if (axis.size == 1) continue;
        if (!merged.empty()) {
            CopyAxis& outer = merged.back();
            if (outer.source_stride == axis.source_stride * axis.size &&
                outer.target_stride == axis.target_stride * axis.size) {
                outer = {outer.size * axis.size, axis.source_stride, axis.target_stride};
                continue;
            }
        }
        merged.push_back(axis);
    }
    return merged;
}

}  // namespace

StridedCopy::StridedCopy(std::vector<CopyAxis> axes, std::size_t element_size) : element_size_(element_size) {
    empty_ = std::any_of(axes.begin(), axes.end(), [](const CopyAxis& axis) { return axis.size == 0; });
    if (empty_) return;
    std::stable_sort(axes.begin(), axes.end(),
                     [](const CopyAxis& a, const CopyAxis& b) { return a.target_stride > b.target_stride; });
    axes_ = merge_axes(axes);
    if (axes_.empty()) axes_.push_back({1, 1, 1});
    if (axes_.size() < 2 || axes_.back().source_stride == 1) return;
    const auto densest = std::min_element(
        axes_.begin(), axes_.end(),
        [](const CopyAxis& a, const CopyAxis& b) { return a.source_stride < b.source_stride; });
    if (densest + 1 == axes_.end()) return;
    std::rotate(densest, densest + 1, axes_.end() - 1);
    tiled_ = true;
}

namespace {

constexpr std::int64_t tile = 16;

// Copies a box of `rows` x `columns` elements, element by element.
template <typename Element>
void copy_box(const Element* source, Element* target, const CopyAxis& rows, const CopyAxis& columns) {
    for (std::int64_t r = 0; r < rows.size; ++r) {
        const Element* from = source + r * rows.source_stride;
        Element* to = target + r * rows.target_stride;
        for (std::int64_t c = 0; c < columns.size; ++c) {
            to[c * columns.target_stride] = from[c * columns.source_stride];
        }
    }
}

}  // namespace

template <typename Element>
void StridedCopy::copy_tiles(const Element* source, Element* target) const {
    CopyAxis rows = axes_[axes_.size() - 2];  // densest in the source
    CopyAxis columns = axes_.back();          // densest in the target
    if constexpr (std::is_same_v<Element, std::uint32_t>) {
        if (rows.source_stride == 1 && columns.target_stride == 1) {
            const auto size = [](std::int64_t number) { return static_cast<std::size_t>(number); };
            transpose_words(reinterpret_cast<const std::byte*>(source),
                            {size(columns.size), size(rows.size), size(columns.source_stride)},
                            reinterpret_cast<std::byte*>(target), size(rows.target_stride));
            return;
        }
    }
    const std::int64_t row_count = rows.size;
    const std::int64_t column_count = columns.size;
    for (std::int64_t row = 0; row < row_count; row += tile) {
        rows.size = std::min(tile, row_count - row);
        for (std::int64_t column = 0; column < column_count; column += tile) {
            columns.size = std::min(tile, column_count - column);
            const Element* from = source + row * rows.source_stride + column * columns.source_stride;
            Element* to = target + row * rows.target_stride + column * columns.target_stride;
            copy_box(from, to, rows, columns);
        }
    }
}

template <typename Element>
void StridedCopy::copy(std::size_t axis, const Element* source, Element* target) const {
    if (tiled_ && axis + 2 == axes_.size()) {
        copy_tiles(source, target);
        return;
    }
    const CopyAxis& at = axes_[axis];
    if (axis + 1 < axes_.size()) {
        for (std::int64_t i = 0; i < at.size; ++i) {
            copy(axis + 1, source + i * at.source_stride, target + i * at.target_stride);
        }
    } else if (at.source_stride == 1 && at.target_stride == 1) {
        std::memcpy(target, source, static_cast<std::size_t>(at.size) * sizeof(Element));
    } else {
        for (std::int64_t i = 0; i < at.size; ++i)
            target[i * at.target_stride] = source[i * at.source_stride];
    }
}

void StridedCopy::run(const std::byte* source, std::byte* target) const {
    if (empty_) return;
    const auto copy_as = [&]<typename Element>(Element) {
        copy(0, reinterpret_cast<const Element*>(source), reinterpret_cast<Element*>(target));
    };
    switch (element_size_) {
        case 1:
            return copy_as(std::uint8_t{});
        case 2:
            return copy_as(std::uint16_t{});
        case 4:
            return copy_as(std::uint32_t{});
        default:
            return copy_as(std::uint64_t{});
    }
}

}  // namespace qcalib
