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

// How an array is cut for an input of shape `wanted` (in the file's own layout).
struct Cut {
    Shape step;             // its shape in the file, the batch put in front where the array has none
    std::int64_t rows = 0;  // of the array's first axis, that make a step
};

// A stack of inputs [steps, ...input]; or an array whose first axis is longer than the input's, of the
// input's rank or without its batch of 1. Nothing where the array is one step, or does not fit.
std::optional<Cut> cut_of(const Shape& found, const PartialShape& wanted) {
    if (found.empty() || fitted(found, wanted)) return std::nullopt;
    const Shape rest(found.begin() + 1, found.end());
    if (fits(rest, wanted)) return Cut{rest, 1};
    const std::size_t axis = found.size() + 1 == wanted.size() ? 1 : 0;
    if (found.size() + axis != wanted.size() || !wanted[axis] || *wanted[axis] < 1) return std::nullopt;
    Cut cut{rest, *wanted[axis]};
    cut.step.insert(cut.step.begin(), cut.rows);
    if (axis == 1) cut.step.insert(cut.step.begin(), 1);
    if (found[0] < cut.rows || !fits(cut.step, wanted)) return std::nullopt;
    return cut;
}

}  // namespace

std::optional<FileSteps> cut_array(const Tensor& source, const std::string& shown, const InputSpec& input,
                                   const Preprocessing& preprocessing) {
    if (!input.rank_known) return std::nullopt;
    check_type(source, shown, input);
    const bool permuted = to_be_permuted(input, preprocessing.layout().data);
    const auto cut = cut_of(source.shape(), permuted ? channels_last(input.shape) : input.shape);
    if (!cut || element_count(cut->step) == 0) return std::nullopt;
    FileSteps steps;
    steps.elements = source;
    steps.stored.type = input.type;
    steps.stored.shape = cut->step;
    if (permuted) {
        steps.stored.shape = {cut->step[0], cut->step[3], cut->step[1], cut->step[2]};
        steps.stored.order = MemoryOrder::channels_last;
    }
    const std::int64_t rows = source.shape()[0];
    steps.count = static_cast<std::size_t>(rows / cut->rows);
    if (rows % cut->rows != 0) steps.left_over = fmt::format("{} of {} rows", rows % cut->rows, cut->rows);
    return steps;
}

Tensor fit_array(Tensor source, const std::string& shown, const InputSpec& input,
                 const Preprocessing& preprocessing) {
    check_type(source, shown, input);
    const bool permuted = to_be_permuted(input, preprocessing.layout().data);
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

std::optional<FileSteps> cut_npy_file(const std::filesystem::path& path, const InputSpec& input,
                                      const Preprocessing& preprocessing) {
    if (!input.rank_known) return std::nullopt;
    return cut_array(read_npy(path), printable(path.string()), input, preprocessing);
}

Tensor read_npy_file(const std::filesystem::path& path, const InputSpec& input,
                     const Preprocessing& preprocessing) {
    return fit_array(read_npy(path), printable(path.string()), input, preprocessing);
}

}  // namespace qcalib
