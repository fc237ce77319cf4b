#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataset/file_reader.h"
#include "dataset/input_names.h"
#include "dataset/picture_axes.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

using PartialShape = std::vector<std::optional<std::int64_t>>;

PartialShape channels_last(const PartialShape& shape) {
    return {shape[0], shape[2], shape[3], shape[1]};
}

bool fits(std::span<const std::int64_t> shape, const PartialShape& wanted) {
    return std::equal(shape.begin(), shape.end(), wanted.begin(), wanted.end(),
                      [](std::int64_t size, const auto& open) { return !open || *open == size; });
}

// `shape` with the batch of 1 that it leaves out put in front, where that makes it fit `wanted`.
std::optional<Shape> fitted(const Shape& shape, const PartialShape& wanted) {
    if (fits(shape, wanted)) return shape;
    Shape with_batch = shape;
    with_batch.insert(with_batch.begin(), 1);
    if (fits(with_batch, wanted)) return with_batch;
    return std::nullopt;
}

void check_type(const Tensor& tensor, const std::string& shown, const InputSpec& input) {
    if (tensor.type() == input.type) return;
    fail("{}: expected {} for {}, found {}; convert it with numpy's astype('{}')", shown, name_of(input.type),
         describe(input), name_of(tensor.type()), name_of(input.type));
}

// The shape the file's elements have in the file's own layout.
Shape stored_shape(const Shape& found, const std::string& shown, const InputSpec& input, bool permuted) {
    if (!input.rank_known) return found;
    const PartialShape wanted = permuted ? channels_last(input.shape) : input.shape;
    if (auto shape = fitted(found, wanted)) return std::move(*shape);
    std::string hint;
    if (input.shape.size() == 4 && fitted(found, permuted ? input.shape : channels_last(input.shape))) {
        hint =
            permuted ? "; leave out --data-layout nhwc" : "; for channels-last files give --data-layout nhwc";
    }
    fail("{}: expected shape {}{} for {}, found {}{}", shown, to_string(wanted),
         permuted ? " (channels last)" : "", describe(input), to_string(found), hint);
}

}  // namespace

Tensor read_npy_file(const std::filesystem::path& path, const InputSpec& input,
                     const Preprocessing& preprocessing) {
    const std::string shown = printable(path.string());
    Tensor source = read_npy(path);
    check_type(source, shown, input);
    const bool permuted = to_be_permuted(input, preprocessing.layout);
    Shape shape = stored_shape(source.shape(), shown, input, permuted);
    if (permuted) shape = {shape[0], shape[3], shape[1], shape[2]};
    TensorDescriptor descriptor{input.type, std::move(shape), MemoryOrder::row_major};
    const bool dynamic =
        !input.rank_known || std::count(input.shape.begin(), input.shape.end(), std::nullopt) > 0;
    if (dynamic && descriptor.elements() == 0) {
        fail("{}: no elements for {}, found shape {}", shown, describe(input), to_string(source.shape()));
    }
    if (descriptor == source.descriptor() && !source.mapped()) return source;
    TensorDescriptor stored = descriptor;
    if (permuted) stored.order = MemoryOrder::channels_last;
    Tensor tensor(std::move(descriptor));
    copy_to_order({&stored, source.data()}, tensor.mutable_view());
    return tensor;
}

}  // namespace qcalib
