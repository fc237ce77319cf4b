#include "tensor/tensor.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <new>

#include <Eigen/Core>

#include "base/error.h"
#include "tensor/transpose.h"

namespace qcalib {

namespace {

constexpr std::align_val_t alignment{64};

std::shared_ptr<std::byte> allocate(std::size_t bytes) {
    auto* memory = static_cast<std::byte*>(::operator new(bytes == 0 ? 1 : bytes, alignment));
    return {memory, [](std::byte* pointer) { ::operator delete(pointer, alignment); }};
}

// Copies [outer][rows][columns] elements of `size` bytes to [outer][columns][rows]. Elements may lie
// unaligned inside a mapped file, so they are moved by memcpy.
template <std::size_t size>
void transpose_planes(const std::byte* source, std::byte* target, std::size_t outer, std::size_t rows,
                      std::size_t columns) {
    constexpr std::size_t tile = 16;
    for (std::size_t plane = 0; plane < outer; ++plane) {
        if constexpr (size == 4) {
            transpose_words(source, {rows, columns, columns}, target, rows);
            source += rows * columns * size;
            target += rows * columns * size;
            continue;
        }
        for (std::size_t column = 0; column < columns; column += tile) {
            const std::size_t column_end = std::min(columns, column + tile);
            for (std::size_t row = 0; row < rows; ++row) {
                for (std::size_t c = column; c < column_end; ++c) {
                    std::memcpy(target + (c * rows + row) * size, source + (row * columns + c) * size, size);
                }
            }
        }
        source += rows * columns * size;
        target += rows * columns * size;
    }
}

}  // namespace

bool same_in_both_orders(std::span<const std::int64_t> shape) {
    if (shape.size() < 3 || shape.size() > 5) return true;
    return shape[1] == 1 || element_count(shape.subspan(2)) == 1 || element_count(shape) == 0;
}

Tensor::Tensor(TensorDescriptor descriptor) : descriptor_(std::move(descriptor)) {
    memory_ = allocate(descriptor_.bytes());
    data_ = memory_.get();
    if (!is_numeric(descriptor_.type)) std::memset(memory_.get(), 0, descriptor_.bytes());
}

Tensor::Tensor(TensorDescriptor descriptor, std::shared_ptr<const MappedFile> file,
               std::span<const std::byte> bytes)
    : descriptor_(std::move(descriptor)), file_(std::move(file)), data_(bytes.data()) {
    assert(bytes.size() == descriptor_.bytes());
}

MutableTensorView Tensor::mutable_view() {
    assert(memory_ != nullptr);
    return {&descriptor_, memory_.get()};
}

Tensor Tensor::of_strings(Shape shape, std::span<const std::string> strings) {
    Tensor tensor(TensorDescriptor{DataType::string, std::move(shape), MemoryOrder::row_major});
    const std::span<StringElement> elements = tensor.mutable_view().as<StringElement>();
    assert(elements.size() == strings.size());
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i].show(strings[i]);
    tensor.own_elements();
    return tensor;
}

Tensor Tensor::of_tensors(DataType kind, std::vector<Tensor> tensors) {
    assert(kind == DataType::sequence || (kind == DataType::optional && tensors.size() <= 1));
    Tensor tensor(TensorDescriptor{kind, {static_cast<std::int64_t>(tensors.size())}});
    const std::span<TensorElement> elements = tensor.mutable_view().as<TensorElement>();
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = &tensors[i];
    tensor.own_elements();
    return tensor;
}

void Tensor::own_elements() {
    if (is_numeric(type()) || descriptor_.elements() == 0) return;
    if (type() == DataType::string) {
        const auto strings = std::make_shared<const std::vector<std::string>>(strings_of(view()));
        const std::span<StringElement> elements = mutable_view().as<StringElement>();
        for (std::size_t i = 0; i < elements.size(); ++i) elements[i].show((*strings)[i]);
        shown_ = strings;
        return;
    }
    const auto tensors = std::make_shared<std::vector<Tensor>>();
    const std::span<TensorElement> elements = mutable_view().as<TensorElement>();
    for (const TensorElement element : elements) tensors->push_back(element == nullptr ? Tensor() : *element);
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = &(*tensors)[i];
    shown_ = tensors;
}

void Tensor::release_pages() const {
    if (file_) file_->release_pages({data_, descriptor_.bytes()});
}

void copy_to_order(TensorView source, MutableTensorView target) {
    assert(source.descriptor->type == target.descriptor->type &&
           source.descriptor->shape == target.descriptor->shape);
    const Shape& shape = source.descriptor->shape;
    if (source.descriptor->bytes() == 0) return;
    if (source.descriptor->order == target.descriptor->order || same_in_both_orders(shape)) {
        std::memcpy(target.data, source.data, source.descriptor->bytes());
        return;
    }
    const auto outer = static_cast<std::size_t>(shape[0]);
    const auto channels = static_cast<std::size_t>(shape[1]);
    const auto pixels = static_cast<std::size_t>(element_count(std::span(shape).subspan(2)));
    const bool to_channels_last = target.descriptor->order == MemoryOrder::channels_last;
    const std::size_t rows = to_channels_last ? channels : pixels;
    const std::size_t columns = to_channels_last ? pixels : channels;
    switch (size_of(source.descriptor->type)) {
        case 1:
            return transpose_planes<1>(source.data, target.data, outer, rows, columns);
        case 2:
            return transpose_planes<2>(source.data, target.data, outer, rows, columns);
        case 4:
            return transpose_planes<4>(source.data, target.data, outer, rows, columns);
        case sizeof(StringElement):
            return transpose_planes<sizeof(StringElement)>(source.data, target.data, outer, rows, columns);
        default:
            return transpose_planes<8>(source.data, target.data, outer, rows, columns);
    }
}

namespace {

// Elements may lie unaligned inside a mapped file, so they are read by memcpy.
template <typename Stored, typename Number>
std::vector<Number> read_numbers(TensorView view) {
    std::vector<Number> numbers(view.elements());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        Stored stored;
        std::memcpy(&stored, view.data + i * sizeof(Stored), sizeof(Stored));
        numbers[i] = static_cast<Number>(stored);
    }
    return numbers;
}

}  // namespace

std::vector<std::int64_t> integers_of(TensorView view) {
    if (view.descriptor->type == DataType::int64) return read_numbers<std::int64_t, std::int64_t>(view);
    if (view.descriptor->type == DataType::int32) return read_numbers<std::int32_t, std::int64_t>(view);
    fail("expected an int32 or int64 tensor, found {}", name_of(view.descriptor->type));
}

std::vector<std::string> strings_of(TensorView view) {
    assert(view.descriptor->type == DataType::string);
    std::vector<std::string> strings;
    for (const StringElement& element : view.as<StringElement>()) strings.emplace_back(element.text());
    return strings;
}

std::vector<double> numbers_of(TensorView view) {
    switch (view.descriptor->type) {
        case DataType::float32:
            return read_numbers<float, double>(view);
        case DataType::float64:
            return read_numbers<double, double>(view);
        case DataType::float16:
            return read_numbers<Eigen::half, double>(view);
        case DataType::bfloat16:
            return read_numbers<Eigen::bfloat16, double>(view);
        case DataType::int8:
            return read_numbers<std::int8_t, double>(view);
        case DataType::boolean:
        case DataType::uint8:
            return read_numbers<std::uint8_t, double>(view);
        case DataType::int16:
            return read_numbers<std::int16_t, double>(view);
        case DataType::uint16:
            return read_numbers<std::uint16_t, double>(view);
        case DataType::int32:
            return read_numbers<std::int32_t, double>(view);
        case DataType::uint32:
            return read_numbers<std::uint32_t, double>(view);
        case DataType::int64:
            return read_numbers<std::int64_t, double>(view);
        case DataType::uint64:
            return read_numbers<std::uint64_t, double>(view);
        case DataType::undefined:
        case DataType::string:
        case DataType::sequence:
        case DataType::optional:
            break;
    }
    fail("expected a tensor of numbers, found {}", name_of(view.descriptor->type));
}

namespace {

template <typename Stored>
void convert_to_float(const std::byte* source, std::span<float> target) {
    for (std::size_t i = 0; i < target.size(); ++i) {
        Stored stored;
        std::memcpy(&stored, source + i * sizeof(Stored), sizeof(Stored));
        target[i] = static_cast<float>(stored);
    }
}

}  // namespace

Tensor to_float32(const Tensor& tensor, std::string_view what) {
    const DataType type = tensor.type();
    if (!is_floating(type) || type == DataType::float32) return tensor;
    Tensor result(TensorDescriptor{DataType::float32, tensor.shape(), tensor.descriptor().order});
    const std::span<float> target = result.mutable_view().as<float>();
    if (type == DataType::float16) {
        convert_to_float<Eigen::half>(tensor.data(), target);
    } else if (type == DataType::bfloat16) {
        convert_to_float<Eigen::bfloat16>(tensor.data(), target);
    } else {
        for (std::size_t i = 0; i < target.size(); ++i) {
            double stored = 0;
            std::memcpy(&stored, tensor.data() + i * sizeof(double), sizeof(double));
            target[i] = static_cast<float>(stored);
            if (std::isinf(target[i]) && std::isfinite(stored)) {
                fail("{}: expected values within float32's range, found {}", what, stored);
            }
        }
    }
    return result;
}

void round_to(DataType half_type, std::span<float> values) {
    if (half_type == DataType::float16) {
        for (float& value : values) value = static_cast<float>(Eigen::half(value));
    } else if (half_type == DataType::bfloat16) {
        for (float& value : values) value = static_cast<float>(Eigen::bfloat16(value));
    }
}

}  // namespace qcalib
