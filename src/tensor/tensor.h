#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "tensor/data_type.h"
#include "tensor/elements.h"
#include "tensor/shape.h"

namespace qcalib {

// How the elements of a dense tensor lie in memory. The shape always keeps the graph's order (N, C, spatial).
enum class MemoryOrder : std::uint8_t {
    row_major,
    channels_last,  // N, spatial, C; for rank 3 to 5 only
};

struct TensorDescriptor {
    DataType type = DataType::undefined;
    Shape shape;
    MemoryOrder order = MemoryOrder::row_major;

    std::size_t elements() const { return static_cast<std::size_t>(element_count(shape)); }
    std::size_t bytes() const { return elements() * size_of(type); }
    std::size_t rank() const { return shape.size(); }
    bool operator==(const TensorDescriptor&) const = default;
};

// True where both memory orders put every element at the same place: one channel, one pixel, or no such
// order.
bool same_in_both_orders(std::span<const std::int64_t> shape);

// Elements somebody else owns, to read. The descriptor must outlive the view.
struct TensorView {
    const TensorDescriptor* descriptor = nullptr;
    const std::byte* data = nullptr;

    bool present() const { return descriptor != nullptr; }
    std::size_t elements() const { return descriptor->elements(); }
    std::span<const std::byte> bytes() const { return {data, descriptor->bytes()}; }
    // The elements as `T`, which must be the tensor's type.
    template <typename T>
    std::span<const T> as() const {
        return {reinterpret_cast<const T*>(data), elements()};
    }
};

// Elements somebody else owns, to write.
struct MutableTensorView {
    const TensorDescriptor* descriptor = nullptr;
    std::byte* data = nullptr;

    operator TensorView() const {
        return {descriptor, data};
    }  // NOLINT: a reader's view of the same elements
    std::size_t elements() const { return descriptor->elements(); }
    std::span<std::byte> bytes() const { return {data, descriptor->bytes()}; }
    template <typename T>
    std::span<T> as() const {
        return {reinterpret_cast<T*>(data), elements()};
    }
};

// A tensor that shares ownership of its elements: copies are cheap and nobody changes the elements once
// shared. They lie in memory of its own (64-byte aligned) or inside a mapped file (any alignment of whole
// elements).
class Tensor {
  public:
    Tensor() = default;
    // Owns elements: uninitialised numbers, or empty strings, or tensors that are not there yet.
    explicit Tensor(TensorDescriptor descriptor);
    // Shows `bytes`, a part of `file`, which must hold exactly the descriptor's bytes.
    Tensor(TensorDescriptor descriptor, std::shared_ptr<const MappedFile> file,
           std::span<const std::byte> bytes);

    // A row-major tensor with a copy of `values`.
    template <typename T>
    static Tensor of(Shape shape, std::span<const T> values);

    // A row-major tensor of strings.
    static Tensor of_strings(Shape shape, std::span<const std::string> strings);
    // A sequence of these, or an optional value that is the one or, without any, none.
    static Tensor of_tensors(DataType kind, std::vector<Tensor> tensors);

    const TensorDescriptor& descriptor() const { return descriptor_; }
    DataType type() const { return descriptor_.type; }
    const Shape& shape() const { return descriptor_.shape; }
    TensorView view() const { return {&descriptor_, data_}; }
    MutableTensorView mutable_view();  // asserts own memory
    const std::byte* data() const { return data_; }
    bool mapped() const { return file_ != nullptr; }

    // Where elements show what belongs to another tensor (long strings, the tensors of a sequence), makes
    // this one an owner of it, too: to be called on a copy of elements that is to outlive the other. Asserts
    // own memory.
    void own_elements();

    // Where the elements lie in a mapped file, gives their pages back (see MappedFile::release_pages).
    void release_pages() const;

  private:
    TensorDescriptor descriptor_;
    std::shared_ptr<std::byte> memory_;
    std::shared_ptr<const MappedFile> file_;
    std::shared_ptr<const void> shown_;  // what elements of own memory show
    const std::byte* data_ = nullptr;
};

// Copies `source` into `target` (same type and shape, any memory orders).
void copy_to_order(TensorView source, MutableTensorView target);

// Small integer tensors (shapes, axes, pads) as numbers; accepts int32 and int64.
std::vector<std::int64_t> integers_of(TensorView view);

// The strings of a string tensor, in memory order.
std::vector<std::string> strings_of(TensorView view);

// Float-like tensors of any type, one number per element in memory order; for small tensors and tests.
std::vector<double> numbers_of(TensorView view);

// float16, bfloat16 or double elements as float32 (double: rounded, a value beyond float32's range is an
// Error that starts with `what`); any other type is answered as it is.
Tensor to_float32(const Tensor& tensor, std::string_view what);

// Rounds float32 elements to the nearest float16 or bfloat16 value (ties to even), in place.
void round_to(DataType half_type, std::span<float> values);

template <typename T>
Tensor Tensor::of(Shape shape, std::span<const T> values) {
    Tensor tensor(TensorDescriptor{data_type_of<T>(), std::move(shape), MemoryOrder::row_major});
    auto target = tensor.mutable_view().as<T>();
    std::copy_n(values.begin(), target.size(), target.begin());
    return tensor;
}

}  // namespace qcalib
