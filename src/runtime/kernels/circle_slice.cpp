// Operators of Circle that pick elements.
#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/circle_lowering.h"

namespace qcalib {

namespace {

using Operand = CircleLowering::Operand;
using Numbers = std::vector<std::int64_t>;

// Begins and sizes of every axis; -1 takes the rest.
void lower_slice(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Shape& shape = lowering.of(input).shape;
    const Numbers begins = lowering.context().integers(1);
    const Numbers sizes = lowering.context().integers(2);
    if (begins.size() != shape.size() || sizes.size() != shape.size()) {
        lowering.context().refuse(fmt::format("expected {} begins and sizes, found {} and {}", shape.size(),
                                              begins.size(), sizes.size()));
    }
    Numbers ends;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::int64_t size = sizes[i] == -1 ? shape[i] - begins[i] : sizes[i];
        if (begins[i] < 0 || size < 0 || begins[i] > shape[i] || size > shape[i] - begins[i]) {
            lowering.context().refuse(fmt::format("cannot take {} elements from {} on of dimension {} of {}",
                                                  size, begins[i], i, to_string(shape)));
        }
        ends.push_back(begins[i] + size);
    }
    lowering.result(0, lowering.run("Slice", {input, lowering.integers(begins), lowering.integers(ends)}));
}

// The arguments of STRIDED_SLICE. Bit i of a mask is of entry i of the lists.
struct StridedArguments {
    Numbers begins;
    Numbers ends;
    Numbers strides;
    std::int64_t begin_mask = 0;
    std::int64_t end_mask = 0;
    std::int64_t ellipsis_mask = 0;
    std::int64_t new_axis_mask = 0;
    std::int64_t shrink_mask = 0;
    bool offset = false;  // ends count from the begins

    static bool has(std::int64_t mask, std::size_t i) { return i < 63 && ((mask >> i) & 1) != 0; }
};

StridedArguments strided_arguments(const CircleLowering& lowering) {
    const NodeContext& context = lowering.context();
    const auto number = [&](std::string_view name) {
        return lowering.node().attribute<std::int64_t>(name, 0);
    };
    StridedArguments arguments{context.integers(1),     context.integers(2),        context.integers(3),
                               number("begin_mask"),    number("end_mask"),         number("ellipsis_mask"),
                               number("new_axis_mask"), number("shrink_axis_mask"), number("offset") != 0};
    const std::size_t count = arguments.begins.size();
    if (arguments.ends.size() != count || arguments.strides.size() != count) {
        context.refuse(fmt::format("expected as many begins as ends and strides, found {}, {} and {}", count,
                                   arguments.ends.size(), arguments.strides.size()));
    }
    if (std::count(arguments.strides.begin(), arguments.strides.end(), 0) > 0) {
        context.refuse("expected strides other than 0");
    }
    return arguments;
}

// What is kept of each axis, and which axes the output's dimensions are; no_axis: a new one.
constexpr std::size_t no_axis = std::numeric_limits<std::size_t>::max();
struct StridedSelection {
    Numbers starts;
    Numbers ends;
    Numbers steps;
    std::vector<std::size_t> dimensions;
};

void select_axis(const CircleLowering& lowering, const StridedArguments& arguments, std::size_t entry,
                 std::int64_t size, StridedSelection& selection) {
    const std::int64_t stride = arguments.strides[entry];
    std::int64_t begin = arguments.begins[entry];
    std::int64_t end = arguments.offset ? begin + arguments.ends[entry] : arguments.ends[entry];
    if (StridedArguments::has(arguments.shrink_mask, entry)) {
        const std::int64_t index = begin < 0 ? begin + size : begin;
        if (index < 0 || index >= size) {
            lowering.context().refuse(
                fmt::format("expected an index from {} to {}, found {}", -size, size - 1, begin));
        }
        selection.starts.push_back(index);
        selection.ends.push_back(index + 1);
        selection.steps.push_back(1);
        return;
    }
    constexpr std::int64_t far = std::numeric_limits<std::int32_t>::max();
    if (StridedArguments::has(arguments.begin_mask, entry)) begin = stride > 0 ? 0 : far;
    if (StridedArguments::has(arguments.end_mask, entry)) end = stride > 0 ? far : -far;
    selection.starts.push_back(begin);
    selection.ends.push_back(end);
    selection.steps.push_back(stride);
    selection.dimensions.push_back(selection.starts.size() - 1);
}

void keep_axis(std::int64_t size, StridedSelection& selection) {
    selection.starts.push_back(0);
    selection.ends.push_back(size);
    selection.steps.push_back(1);
    selection.dimensions.push_back(selection.starts.size() - 1);
}

StridedSelection select(const CircleLowering& lowering, const StridedArguments& arguments,
                        const Shape& shape) {
    const std::size_t entries = arguments.begins.size();
    std::size_t taken = 0;  // axes that entries speak of
    for (std::size_t i = 0; i < entries; ++i) {
        const bool other = StridedArguments::has(arguments.ellipsis_mask, i) ||
                           StridedArguments::has(arguments.new_axis_mask, i);
        if (!other) ++taken;
    }
    if (taken > shape.size()) {
        lowering.context().refuse(fmt::format("expected at most {} begins for a tensor of shape {}, found {}",
                                              shape.size(), to_string(shape), taken));
    }
    StridedSelection selection;
    std::size_t axis = 0;
    bool stretched = false;
    for (std::size_t i = 0; i < entries; ++i) {
        if (StridedArguments::has(arguments.ellipsis_mask, i)) {
            const std::size_t stop = stretched ? axis : axis + shape.size() - taken;
            while (axis < stop) keep_axis(shape[axis++], selection);
            stretched = true;
        } else if (StridedArguments::has(arguments.new_axis_mask, i)) {
            selection.dimensions.push_back(no_axis);
        } else {
            select_axis(lowering, arguments, i, shape[axis], selection);
            ++axis;
        }
    }
    while (axis < shape.size()) keep_axis(shape[axis++], selection);
    return selection;
}

void lower_strided_slice(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const StridedArguments arguments = strided_arguments(lowering);
    const StridedSelection selection = select(lowering, arguments, lowering.of(input).shape);
    Numbers axes(selection.starts.size());
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
    Operand sliced = input;
    if (!axes.empty()) {
        sliced = lowering.run("Slice",
                              {input, lowering.integers(selection.starts), lowering.integers(selection.ends),
                               lowering.integers(axes), lowering.integers(selection.steps)});
    }
    Shape shape;
    for (const std::size_t dimension : selection.dimensions) {
        shape.push_back(dimension == no_axis ? 1 : lowering.of(sliced).shape[dimension]);
    }
    lowering.result(0, lowering.as(sliced, shape));
}

// Slices along an axis, picked by index; with batch_dims, within each batch.
void lower_gather(CircleLowering& lowering) {
    Operand data = lowering.required_input(0);
    const Operand indices = lowering.required_input(1);
    const std::size_t rank = lowering.of(data).rank();
    const std::size_t axis =
        resolve_axis(lowering.context(), lowering.node().attribute<std::int64_t>("axis", 0), rank);
    auto batch = lowering.node().attribute<std::int64_t>("batch_dims", 0);
    const std::size_t index_rank = lowering.of(indices).rank();
    if (batch < 0) batch += static_cast<std::int64_t>(index_rank);
    if (batch == 0) {
        return lowering.result(
            0, lowering.run("Gather", {data, indices}, {{"axis", static_cast<std::int64_t>(axis)}}));
    }
    const auto batches = static_cast<std::size_t>(batch);
    if (batch < 0 || batches > axis || batches > index_rank) {
        lowering.context().refuse(
            fmt::format("cannot gather along axis {} in {} batch dimensions", axis, batch));
    }
    // The axis is brought behind the batch dimensions; coordinates of one number then pick slices.
    Numbers order(rank);
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::rotate(order.begin() + batch, order.begin() + static_cast<std::ptrdiff_t>(axis),
                order.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    data = lowering.run("Transpose", {data}, {{"perm", order}});
    Shape pointed = lowering.of(indices).shape;
    pointed.push_back(1);
    Operand picked = lowering.run("GatherND", {data, lowering.as(indices, pointed)}, {{"batch_dims", batch}});
    // [batch, indices, between, behind] to [batch, between, indices, behind]
    const std::size_t of_indices = index_rank - batches;
    const std::size_t between = axis - batches;
    Numbers back(lowering.of(picked).rank());
    std::iota(back.begin(), back.end(), std::int64_t{0});
    std::rotate(back.begin() + batch, back.begin() + batch + static_cast<std::ptrdiff_t>(of_indices),
                back.begin() + batch + static_cast<std::ptrdiff_t>(of_indices + between));
    lowering.result(0, lowering.run("Transpose", {picked}, {{"perm", back}}));
}

void lower_gather_nd(CircleLowering& lowering) {
    lowering.result(0, lowering.run("GatherND", {lowering.required_input(0), lowering.required_input(1)}));
}

void lower_embedding_lookup(CircleLowering& lowering) {
    lowering.result(0, lowering.run("Gather", {lowering.required_input(1), lowering.required_input(0)},
                                    {{"axis", std::int64_t{0}}}));
}

}  // namespace

void register_circle_slice(KernelRegistry& registry) {
    add_circle_operator<lower_slice>(registry, "SLICE", "a part of the input", {1, 2});
    add_circle_operator<lower_strided_slice>(registry, "STRIDED_SLICE", "every so many elements of a part",
                                             {1, 2, 3});
    add_circle_operator<lower_gather>(registry, "GATHER", "slices along an axis, picked by index");
    add_circle_operator<lower_gather_nd>(registry, "GATHER_ND", "slices picked by coordinates");
    add_circle_operator<lower_embedding_lookup>(registry, "EMBEDDING_LOOKUP",
                                                "rows of a table, picked by index");
}

}  // namespace qcalib
