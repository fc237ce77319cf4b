#include "runtime/kernels/index_map.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/kernels/axes.h"

namespace qcalib {

IndexMap map_axes(const TensorDescriptor& source,
                  const std::vector<std::vector<std::int64_t>>& source_indices) {
    const std::vector<std::int64_t> strides = element_strides(source);
    IndexMap map;
    for (const std::size_t axis : memory_axes(source)) {
        std::vector<std::int64_t> offsets = source_indices[axis];
        for (std::int64_t& offset : offsets) {
            if (offset != IndexMap::outside) offset *= strides[axis];
        }
        map.offsets.push_back(std::move(offsets));
    }
    return map;
}

std::vector<std::int64_t> identity_indices(std::int64_t size) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(size));
    std::iota(indices.begin(), indices.end(), std::int64_t{0});
    return indices;
}

ElementCopy::ElementCopy(IndexMap map, std::size_t element_size)
    : map_(std::move(map)), element_size_(element_size), elements_(1) {
    for (const auto& offsets : map_.offsets) elements_ *= static_cast<std::int64_t>(offsets.size());
}

std::int64_t ElementCopy::source_of(std::int64_t target_index) const {
    std::int64_t source = 0;
    for (std::size_t axis = map_.offsets.size(); axis-- > 0;) {
        const auto& offsets = map_.offsets[axis];
        const auto size = static_cast<std::int64_t>(offsets.size());
        const std::int64_t offset = offsets[static_cast<std::size_t>(target_index % size)];
        if (offset == IndexMap::outside) return IndexMap::outside;
        source += offset;
        target_index /= size;
    }
    return source;
}

void ElementCopy::run(const std::byte* source, std::byte* target, const std::byte* fill) const {
    for (std::int64_t i = 0; i < elements_; ++i) {
        const std::int64_t from = source_of(i);
        const std::byte* element =
            from == IndexMap::outside ? fill : source + from * static_cast<std::int64_t>(element_size_);
        std::memcpy(target + static_cast<std::size_t>(i) * element_size_, element, element_size_);
    }
}

namespace {

// True where the entries lie one after the other, `step` apart.
bool contiguous(const std::vector<std::int64_t>& table, std::int64_t step) {
    if (table.empty() || table[0] == IndexMap::outside) return false;
    for (std::size_t i = 1; i < table.size(); ++i) {
        if (table[i] == IndexMap::outside || table[i] != table[i - 1] + step) return false;
    }
    return true;
}

// memcpy for the short runs of a few pixels: a loop of 16-byte steps with an overlapping last one.
inline void copy_short(std::byte* target, const std::byte* source, std::size_t bytes) {
    if (bytes > 256 || bytes < 16) {
        std::memcpy(target, source, bytes);
        return;
    }
    std::size_t i = 0;
    for (; i + 16 <= bytes; i += 16) std::memcpy(target + i, source + i, 16);
    std::memcpy(target + bytes - 16, source + bytes - 16, 16);
}

template <typename Element>
void gather_row(const std::byte* source, std::byte* target, const std::vector<std::int64_t>& offsets) {
    auto* to = reinterpret_cast<Element*>(target);
    for (std::size_t i = 0; i < offsets.size(); ++i)
        to[i] = *reinterpret_cast<const Element*>(source + offsets[i]);
}

}  // namespace

RunCopy::RunCopy(IndexMap map, std::size_t element_size)
    : chunk_bytes_(element_size), element_size_(element_size) {
    auto& axes = map.offsets;
    empty_ = std::any_of(axes.begin(), axes.end(), [](const auto& table) { return table.empty(); });
    if (empty_) return;
    for (auto& table : axes) {
        for (std::int64_t& offset : table) {
            if (offset != IndexMap::outside) offset *= static_cast<std::int64_t>(element_size);
        }
    }
    std::vector<std::int64_t> row{0};
    std::int64_t base = 0;
    while (!axes.empty()) {
        row = std::move(axes.back());
        axes.pop_back();
        if (!contiguous(row, static_cast<std::int64_t>(chunk_bytes_))) break;
        base += row[0];
        chunk_bytes_ *= row.size();
        row = {0};
    }
    for (std::int64_t& offset : row) {
        if (offset != IndexMap::outside) offset += base;
    }
    outer_ = std::move(axes);
    prepare_rows(row);
    block_bytes_.resize(outer_.size());
    std::size_t bytes = chunk_bytes_ * row.size();
    for (std::size_t axis = outer_.size(); axis-- > 0;) {
        block_bytes_[axis] = bytes;
        bytes *= outer_[axis].size();
    }
}

void RunCopy::prepare_rows(const std::vector<std::int64_t>& table) {
    for (const std::int64_t offset : table) {
        const bool fills = offset == IndexMap::outside;
        if (!runs_.empty()) {
            Run& last = runs_.back();
            const bool last_fills = last.source == IndexMap::outside;
            if (fills == last_fills &&
                (fills || last.source + static_cast<std::int64_t>(last.bytes) == offset)) {
                last.bytes += chunk_bytes_;
                continue;
            }
        }
        runs_.push_back({offset, chunk_bytes_});
    }
    const bool any_outside = std::find(table.begin(), table.end(), IndexMap::outside) != table.end();
    if (any_outside || runs_.size() * 4 < table.size()) return;
    form_ = chunk_bytes_ == element_size_ ? RowForm::elements : RowForm::chunks;
    chunk_offsets_ = table;
}

void RunCopy::run(const std::byte* source, std::byte* target, const std::byte* fill) const {
    if (!empty_) copy_block(0, source, target, fill);
}

void RunCopy::copy_block(std::size_t axis, const std::byte* source, std::byte* target,
                         const std::byte* fill) const {
    if (axis == outer_.size()) {
        copy_row(source, target, fill);
        return;
    }
    const auto& offsets = outer_[axis];
    const std::size_t bytes = block_bytes_[axis];
    for (std::size_t i = 0; i < offsets.size(); ++i, target += bytes) {
        if (offsets[i] == IndexMap::outside) {
            fill_elements(target, bytes, fill, element_size_);
        } else if (i > 0 && offsets[i] == offsets[i - 1]) {
            std::memcpy(target, target - bytes, bytes);
        } else {
            copy_block(axis + 1, source + offsets[i], target, fill);
        }
    }
}

void RunCopy::copy_row(const std::byte* source, std::byte* target, const std::byte* fill) const {
    if (form_ == RowForm::elements) {
        switch (element_size_) {
            case 1:
                return gather_row<std::uint8_t>(source, target, chunk_offsets_);
            case 2:
                return gather_row<std::uint16_t>(source, target, chunk_offsets_);
            case 4:
                return gather_row<std::uint32_t>(source, target, chunk_offsets_);
            default:
                return gather_row<std::uint64_t>(source, target, chunk_offsets_);
        }
    }
    if (form_ == RowForm::chunks) {
        for (const std::int64_t offset : chunk_offsets_) {
            copy_short(target, source + offset, chunk_bytes_);
            target += chunk_bytes_;
        }
        return;
    }
    for (const Run& part : runs_) {
        if (part.source == IndexMap::outside) {
            fill_elements(target, part.bytes, fill, element_size_);
        } else {
            copy_short(target, source + part.source, part.bytes);
        }
        target += part.bytes;
    }
}

namespace {

template <typename Element>
void fill_typed(std::byte* target, std::size_t bytes, const std::byte* fill) {
    Element value;
    std::memcpy(&value, fill, sizeof(Element));
    std::fill_n(reinterpret_cast<Element*>(target), bytes / sizeof(Element), value);
}

}  // namespace

void fill_elements(std::byte* target, std::size_t bytes, const std::byte* fill, std::size_t element_size) {
    switch (element_size) {
        case 1:
            return fill_typed<std::uint8_t>(target, bytes, fill);
        case 2:
            return fill_typed<std::uint16_t>(target, bytes, fill);
        case 4:
            return fill_typed<std::uint32_t>(target, bytes, fill);
        default:
            return fill_typed<std::uint64_t>(target, bytes, fill);
    }
}

void copy_rows(const std::byte* source, std::size_t source_stride, std::byte* target,
               std::size_t target_stride, std::size_t bytes, std::size_t rows) {
    if (bytes == 0 || rows == 0) return;
    if (source_stride == bytes && target_stride == bytes) {
        std::memcpy(target, source, bytes * rows);
        return;
    }
    for (std::size_t row = 0; row < rows; ++row) {
        copy_short(target, source, bytes);
        source += source_stride;
        target += target_stride;
    }
}

}  // namespace qcalib
