#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataset/file_reader.h"
#include "dataset/input_names.h"
#include "dataset/picture_axes.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

void check_type(const Tensor& tensor, const std::string& shown, const InputSpec& input) {
    if (tensor.type() == input.type) return;
    fail("{}: expected {} for {}, found {}; convert it with numpy's astype('{}')", shown, name_of(input.type),
         describe(input), name_of(tensor.type()), name_of(input.type));
}

// The shape the file's elements have in the file's own layout.
Shape stored_shape(const Shape& found, const std::string& shown, const InputSpec& input, DataMove move) {
    if (!input.rank_known) return found;
    const PartialShape wanted = shape_before(input.shape, move);
    if (auto shape = fitted_shape(found, wanted)) return std::move(*shape);
    std::string hint;
    if (move != DataMove::none && fitted_shape(found, input.shape))
        hint = fmt::format("; leave out --data-layout {}", move == DataMove::from_nhwc ? "nhwc" : "nchw");
    fail("{}: expected shape {}{} for {}, found {}{}", shown, to_string(wanted), layout_remark(move),
         describe(input), to_string(found), hint);
}

bool fits_shape(const Shape& shape, const PartialShape& wanted) {
    return shape.size() == wanted.size() && fitted_shape(shape, wanted).has_value();
}

// How an array is cut for an input of shape `wanted` (in the file's own layout).
struct Cut {
    Shape step;             // its shape in the file, the batch put in front where the array has none
    std::int64_t rows = 0;  // of the array's first axis, that make a step
};

// A stack of inputs [steps, ...input]; or an array whose first axis is longer than the input's, of the
// input's rank or without its batch of 1. Nothing where the array is one step, or does not fit.
std::optional<Cut> cut_of(const Shape& found, const PartialShape& wanted) {
    if (found.empty() || fitted_shape(found, wanted)) return std::nullopt;
    const Shape rest(found.begin() + 1, found.end());
    if (fits_shape(rest, wanted)) return Cut{rest, 1};
    const std::size_t axis = found.size() + 1 == wanted.size() ? 1 : 0;
    if (found.size() + axis != wanted.size() || !wanted[axis] || *wanted[axis] < 1) return std::nullopt;
    Cut cut{rest, *wanted[axis]};
    cut.step.insert(cut.step.begin(), cut.rows);
    if (axis == 1) cut.step.insert(cut.step.begin(), 1);
    if (found[0] < cut.rows || !fits_shape(cut.step, wanted)) return std::nullopt;
    return cut;
}

}  // namespace

std::optional<FileSteps> cut_array(const Tensor& source, const std::string& shown, const InputSpec& input,
                                   const Preprocessing& preprocessing) {
    if (!input.rank_known) return std::nullopt;
    check_type(source, shown, input);
    const DataMove move = data_move(input, preprocessing.layout().data);
    const auto cut = cut_of(source.shape(), shape_before(input.shape, move));
    if (!cut || element_count(cut->step) == 0) return std::nullopt;
    FileSteps steps;
    steps.elements = source;
    steps.stored = {input.type, cut->step, MemoryOrder::row_major};
    steps.move = move;
    const std::int64_t rows = source.shape()[0];
    steps.count = static_cast<std::size_t>(rows / cut->rows);
    if (rows % cut->rows != 0) steps.left_over = fmt::format("{} of {} rows", rows % cut->rows, cut->rows);
    return steps;
}

Tensor fit_array(Tensor source, const std::string& shown, const InputSpec& input,
                 const Preprocessing& preprocessing) {
    check_type(source, shown, input);
    const DataMove move = data_move(input, preprocessing.layout().data, source.shape(), shown);
    const Shape stored = stored_shape(source.shape(), shown, input, move);
    const bool dynamic =
        !input.rank_known || std::count(input.shape.begin(), input.shape.end(), std::nullopt) > 0;
    if (dynamic && element_count(stored) == 0) {
        fail("{}: no elements for {}, found shape {}", shown, describe(input), to_string(source.shape()));
    }
    const TensorDescriptor as_is{input.type, stored, MemoryOrder::row_major};
    if (move == DataMove::none && as_is == source.descriptor() && !source.mapped()) return source;
    return moved_data(input.type, stored, source.data(), move);
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
