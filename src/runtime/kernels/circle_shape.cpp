// Operators of Circle that show the same elements in another shape or order, or put tensors together.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/circle_lowering.h"

namespace qcalib {

namespace {

using Operand = CircleLowering::Operand;
using Numbers = std::vector<std::int64_t>;

Numbers counted_from_front(const CircleLowering& lowering, std::span<const std::int64_t> axes,
                           std::size_t rank) {
    const std::vector<std::size_t> resolved = resolve_axes(lowering.context(), axes, rank);
    return {resolved.begin(), resolved.end()};
}

std::int64_t axis_from(const CircleLowering& lowering, std::int64_t axis, std::size_t rank) {
    return static_cast<std::int64_t>(resolve_axis(lowering.context(), axis, rank));
}

// The one number of an integer input.
std::int64_t one_number(const CircleLowering& lowering, std::size_t input) {
    const Numbers numbers = lowering.context().integers(input);
    if (numbers.size() != 1) {
        lowering.context().refuse(
            fmt::format("expected one number as input {}, found {}", input, numbers.size()));
    }
    return numbers[0];
}

// The input as a shape of as many elements; one dimension of -1 is what the others leave.
Operand reshaped(CircleLowering& lowering, Operand input, Shape shape) {
    const auto elements = static_cast<std::int64_t>(lowering.of(input).elements());
    const auto open = std::find(shape.begin(), shape.end(), -1);
    const auto refuse = [&] {
        lowering.context().refuse(
            fmt::format("cannot show {} as {}", to_string(lowering.of(input).shape), to_string(shape)));
    };
    const auto is_bad = [](std::int64_t size) { return size < -1; };
    if (std::any_of(shape.begin(), shape.end(), is_bad) || std::count(shape.begin(), shape.end(), -1) > 1)
        refuse();
    if (open != shape.end()) {
        const auto place = open - shape.begin();
        Shape others = shape;
        others.erase(others.begin() + place);
        const std::int64_t known = element_count(others);
        if (known == 0 || elements % known != 0) refuse();
        shape[static_cast<std::size_t>(place)] = elements / known;
    }
    if (element_count(shape) != elements) refuse();
    return lowering.as(input, shape);
}

// The shape is input 1, or in old files an option.
void lower_reshape(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Shape shape = lowering.input(1) != CircleLowering::absent
                            ? lowering.context().integers(1)
                            : lowering.node().attribute<Numbers>("new_shape", {});
    lowering.result(0, reshaped(lowering, input, shape));
}

void lower_squeeze(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Shape& shape = lowering.of(input).shape;
    const Numbers axes =
        counted_from_front(lowering, lowering.node().attribute<Numbers>("squeeze_dims", {}), shape.size());
    Shape left;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const bool named = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
        if (named && shape[i] != 1) {
            lowering.context().refuse(
                fmt::format("expected a dimension {} of 1, found {}", i, to_string(shape)));
        }
        if (!named && (!axes.empty() || shape[i] != 1)) left.push_back(shape[i]);
    }
    lowering.result(0, lowering.as(input, left));
}

void lower_expand_dims(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    Shape shape = lowering.of(input).shape;
    const std::int64_t axis = axis_from(lowering, one_number(lowering, 1), shape.size() + 1);
    shape.insert(shape.begin() + axis, 1);
    lowering.result(0, lowering.as(input, shape));
}

void lower_transpose(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Numbers order =
        counted_from_front(lowering, lowering.context().integers(1), lowering.of(input).rank());
    if (order.size() != lowering.of(input).rank()) {
        lowering.context().refuse(fmt::format("expected an order of {} axes, found {}",
                                              lowering.of(input).rank(), to_string(order)));
    }
    lowering.result(0, lowering.run("Transpose", {input}, {{"perm", order}}));
}

Tensor int32_tensor(const Shape& shape, const Numbers& numbers) {
    const std::vector<std::int32_t> narrow(numbers.begin(), numbers.end());
    return Tensor::of<std::int32_t>(shape, std::span<const std::int32_t>(narrow));
}

void lower_shape(CircleLowering& lowering) {
    const Shape& shape = lowering.of(lowering.required_input(0)).shape;
    const bool wide = lowering.node().attribute<std::string>("out_type", "int32") == "int64";
    const Shape of_answer{static_cast<std::int64_t>(shape.size())};
    lowering.result(0, wide ? lowering.integers(shape) : lowering.constant(int32_tensor(of_answer, shape)));
}

void lower_rank(CircleLowering& lowering) {
    const auto rank = static_cast<std::int64_t>(lowering.of(lowering.required_input(0)).rank());
    lowering.result(0, lowering.constant(int32_tensor({}, {rank})));
}

void lower_concatenation(CircleLowering& lowering) {
    std::vector<Operand> inputs;
    for (std::size_t i = 0; i < lowering.node().inputs.size(); ++i)
        inputs.push_back(lowering.required_input(i));
    const auto axis = lowering.node().attribute<std::int64_t>("axis", 0);
    lowering.activated_result(lowering.run("Concat", inputs, {{"axis", axis}}));
}

void lower_pack(CircleLowering& lowering) {
    std::vector<Operand> inputs;
    std::int64_t axis = 0;
    for (std::size_t i = 0; i < lowering.node().inputs.size(); ++i) {
        const Operand input = lowering.required_input(i);
        Shape shape = lowering.of(input).shape;
        axis = axis_from(lowering, lowering.node().attribute<std::int64_t>("axis", 0), shape.size() + 1);
        shape.insert(shape.begin() + axis, 1);
        inputs.push_back(lowering.as(input, shape));
    }
    lowering.result(0, lowering.run("Concat", inputs, {{"axis", axis}}));
}

void split_into(CircleLowering& lowering, Operand input, std::int64_t axis, const Numbers& sizes,
                bool drop_axis) {
    const std::size_t outputs = lowering.node().outputs.size();
    if (sizes.size() != outputs) {
        lowering.context().refuse(
            fmt::format("expected {} parts, one per output, found {}", outputs, sizes.size()));
    }
    const std::vector<Operand> parts =
        lowering.run_all("Split", {input}, outputs, {{"axis", axis}, {"split", sizes}}, 2);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Shape shape = lowering.of(parts[i]).shape;
        if (drop_axis) shape.erase(shape.begin() + axis);
        lowering.result(i, lowering.as(parts[i], shape));
    }
}

// Inputs: the axis, then what is split.
void lower_split(CircleLowering& lowering) {
    const Operand input = lowering.required_input(1);
    const Shape& shape = lowering.of(input).shape;
    const std::int64_t axis = axis_from(lowering, one_number(lowering, 0), shape.size());
    const auto parts = static_cast<std::int64_t>(lowering.node().outputs.size());
    const std::int64_t size = shape[static_cast<std::size_t>(axis)];
    if (size % parts != 0) {
        lowering.context().refuse(
            fmt::format("cannot split a dimension of {} into {} equal parts", size, parts));
    }
    split_into(lowering, input, axis, Numbers(static_cast<std::size_t>(parts), size / parts), false);
}

// Inputs: what is split, the sizes (one may be -1: the rest), the axis.
void lower_split_v(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Shape& shape = lowering.of(input).shape;
    const std::int64_t axis = axis_from(lowering, one_number(lowering, 2), shape.size());
    Numbers sizes = lowering.context().integers(1);
    const auto rest = std::find(sizes.begin(), sizes.end(), -1);
    if (rest != sizes.end()) {
        const std::int64_t others = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1});
        *rest = shape[static_cast<std::size_t>(axis)] - others;
    }
    split_into(lowering, input, axis, sizes, false);
}

void lower_unpack(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const std::int64_t axis =
        axis_from(lowering, lowering.node().attribute<std::int64_t>("axis", 0), lowering.of(input).rank());
    const std::int64_t size = lowering.of(input).shape[static_cast<std::size_t>(axis)];
    split_into(lowering, input, axis, Numbers(static_cast<std::size_t>(size), 1), true);
}

// The shape is the batch dimensions' broadcast to; input 1 tells it.
void lower_broadcast_to(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    lowering.result(0, lowering.run("Expand", {input, lowering.integers(lowering.context().integers(1))}));
}

void lower_fill(CircleLowering& lowering) {
    const Operand value = lowering.required_input(1);
    lowering.result(0, lowering.run("Expand", {value, lowering.integers(lowering.context().integers(0))}));
}

void lower_zeros_like(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Operand shape = lowering.integers(lowering.of(input).shape);
    lowering.result(0, lowering.run("Expand", {lowering.number_like(input, 0), shape}));
}

void lower_tile(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    lowering.result(0, lowering.run("Tile", {input, lowering.integers(lowering.context().integers(1))}));
}

void lower_range(CircleLowering& lowering) {
    lowering.result(0, lowering.run("Range", {lowering.required_input(0), lowering.required_input(1),
                                              lowering.required_input(2)}));
}

// Begins and ends of each axis as pairs, input 1 [rank, 2].
struct Borders {
    Numbers before;
    Numbers after;
};

Borders borders_of(const CircleLowering& lowering, std::size_t rank) {
    const Numbers pairs = lowering.context().integers(1);
    if (pairs.size() != 2 * rank) {
        lowering.context().refuse(
            fmt::format("expected {} pads for {} axes, found {}", 2 * rank, rank, pairs.size()));
    }
    Borders borders;
    for (std::size_t i = 0; i < rank; ++i) {
        if (pairs[2 * i] < 0 || pairs[2 * i + 1] < 0) {
            lowering.context().refuse(fmt::format("expected pads of 0 or more, found {}", to_string(pairs)));
        }
        borders.before.push_back(pairs[2 * i]);
        borders.after.push_back(pairs[2 * i + 1]);
    }
    return borders;
}

void pad_with(CircleLowering& lowering, Operand value, CircleLowering::Attributes attributes) {
    const Operand input = lowering.required_input(0);
    const Borders borders = borders_of(lowering, lowering.of(input).rank());
    Numbers pads = borders.before;
    pads.insert(pads.end(), borders.after.begin(), borders.after.end());
    lowering.result(0, lowering.run("Pad", {input, lowering.integers(pads), value}, std::move(attributes)));
}

void lower_pad(CircleLowering& lowering) {
    pad_with(lowering, CircleLowering::absent, {});
}

void lower_pad_v2(CircleLowering& lowering) {
    pad_with(lowering, lowering.required_input(2), {});
}

// Which element of an axis stands at each place of the mirrored one: REFLECT does not repeat the ends,
// SYMMETRIC does.
Numbers mirrored_indices(const CircleLowering& lowering, std::int64_t size, std::int64_t before,
                         std::int64_t after, bool symmetric) {
    const std::int64_t most = symmetric ? size : size - 1;
    if (before > most || after > most) {
        lowering.context().refuse(
            fmt::format("cannot mirror {} and {} elements of a dimension of {}", before, after, size));
    }
    Numbers indices;
    for (std::int64_t at = -before; at < size + after; ++at) {
        std::int64_t index = at;
        if (at < 0) index = symmetric ? -at - 1 : -at;
        if (at >= size) index = symmetric ? 2 * size - 1 - at : 2 * size - 2 - at;
        indices.push_back(index);
    }
    return indices;
}

void lower_mirror_pad(CircleLowering& lowering) {
    const bool symmetric = lowering.node().attribute<std::string>("mode", "REFLECT") == "SYMMETRIC";
    Operand padded = lowering.required_input(0);
    const Shape shape = lowering.of(padded).shape;
    const Borders borders = borders_of(lowering, shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (borders.before[i] == 0 && borders.after[i] == 0) continue;
        const Numbers indices =
            mirrored_indices(lowering, shape[i], borders.before[i], borders.after[i], symmetric);
        padded = lowering.run("Gather", {padded, lowering.integers(indices)},
                              {{"axis", static_cast<std::int64_t>(i)}});
    }
    lowering.result(0, padded);
}

void lower_reverse_v2(CircleLowering& lowering) {
    Operand reversed = lowering.required_input(0);
    const Shape shape = lowering.of(reversed).shape;
    for (const std::size_t axis :
         resolve_axes(lowering.context(), lowering.context().integers(1), shape.size())) {
        Numbers indices(static_cast<std::size_t>(shape[axis]));
        std::iota(indices.rbegin(), indices.rend(), std::int64_t{0});
        reversed = lowering.run("Gather", {reversed, lowering.integers(indices)},
                                {{"axis", static_cast<std::int64_t>(axis)}});
    }
    lowering.result(0, reversed);
}

// What SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND are told: the blocks of the spatial axes, which are those
// behind the first, and pairs for each.
struct BlockArguments {
    Numbers blocks;
    Numbers before;
    Numbers after;
};

BlockArguments block_arguments(const CircleLowering& lowering, std::size_t rank) {
    BlockArguments arguments;
    arguments.blocks = lowering.context().integers(1);
    const Numbers pairs = lowering.context().integers(2);
    const std::size_t spatial = arguments.blocks.size();
    const auto is_bad = [](std::int64_t block) { return block < 1; };
    if (spatial + 1 > rank || pairs.size() != 2 * spatial ||
        std::any_of(arguments.blocks.begin(), arguments.blocks.end(), is_bad) ||
        std::any_of(pairs.begin(), pairs.end(), [](std::int64_t pad) { return pad < 0; })) {
        lowering.context().refuse(
            fmt::format("expected blocks of the {} axes behind the first and a pair of "
                        "numbers for each, found {} and {}",
                        rank - 1, to_string(arguments.blocks), to_string(pairs)));
    }
    for (std::size_t i = 0; i < spatial; ++i) {
        arguments.before.push_back(pairs[2 * i]);
        arguments.after.push_back(pairs[2 * i + 1]);
    }
    return arguments;
}

// [n, s/b * b, ..., rest] with pads becomes [b..., n, s/b..., rest] with all but the last in the batch.
void lower_space_to_batch(CircleLowering& lowering) {
    Operand input = lowering.required_input(0);
    const std::size_t rank = lowering.of(input).rank();
    const BlockArguments arguments = block_arguments(lowering, rank);
    const std::size_t spatial = arguments.blocks.size();
    Numbers pads(2 * rank);
    for (std::size_t i = 0; i < spatial; ++i) {
        pads[1 + i] = arguments.before[i];
        pads[rank + 1 + i] = arguments.after[i];
    }
    input = lowering.run("Pad", {input, lowering.integers(pads)});
    const Shape shape = lowering.of(input).shape;
    Shape parted{shape[0]};
    Shape result{shape[0]};
    Numbers order;
    for (std::size_t i = 0; i < spatial; ++i) {
        const std::int64_t block = arguments.blocks[i];
        if (shape[1 + i] % block != 0) {
            lowering.context().refuse(
                fmt::format("cannot cut a dimension of {} into blocks of {}", shape[1 + i], block));
        }
        parted.insert(parted.end(), {shape[1 + i] / block, block});
        result[0] *= block;
        result.push_back(shape[1 + i] / block);
        order.push_back(static_cast<std::int64_t>(2 + 2 * i));
    }
    order.push_back(0);
    for (std::size_t i = 0; i < spatial; ++i) order.push_back(static_cast<std::int64_t>(1 + 2 * i));
    for (std::size_t i = 1 + spatial; i < rank; ++i) {
        order.push_back(static_cast<std::int64_t>(parted.size()));
        parted.push_back(shape[i]);
        result.push_back(shape[i]);
    }
    const Operand turned = lowering.run("Transpose", {lowering.as(input, parted)}, {{"perm", order}});
    lowering.result(0, lowering.as(turned, result));
}

void lower_batch_to_space(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Shape shape = lowering.of(input).shape;
    const BlockArguments arguments = block_arguments(lowering, shape.size());
    const auto spatial = static_cast<std::int64_t>(arguments.blocks.size());
    const std::int64_t blocks = element_count(arguments.blocks);
    if (shape[0] % blocks != 0) {
        lowering.context().refuse(fmt::format("cannot take blocks of {} out of a batch of {}",
                                              to_string(arguments.blocks), shape[0]));
    }
    Shape parted = arguments.blocks;
    parted.push_back(shape[0] / blocks);
    parted.insert(parted.end(), shape.begin() + 1, shape.end());
    Numbers order{spatial};
    Shape whole{shape[0] / blocks};
    Numbers starts;
    Numbers ends;
    Numbers axes;
    for (std::int64_t i = 0; i < spatial; ++i) {
        const auto at = static_cast<std::size_t>(i);
        order.insert(order.end(), {spatial + 1 + i, i});
        whole.push_back(shape[1 + at] * arguments.blocks[at]);
        starts.push_back(arguments.before[at]);
        ends.push_back(whole.back() - arguments.after[at]);
        axes.push_back(1 + i);
        if (starts.back() > ends.back()) lowering.context().refuse("its crops leave nothing");
    }
    for (std::size_t i = 1 + arguments.blocks.size(); i < shape.size(); ++i) {
        order.push_back(static_cast<std::int64_t>(arguments.blocks.size() + i));
        whole.push_back(shape[i]);
    }
    const Operand turned = lowering.run("Transpose", {lowering.as(input, parted)}, {{"perm", order}});
    lowering.result(0, lowering.run("Slice", {lowering.as(turned, whole), lowering.integers(starts),
                                              lowering.integers(ends), lowering.integers(axes)}));
}

}  // namespace

void register_circle_shape(KernelRegistry& registry) {
    add_circle_operator<lower_reshape>(registry, "RESHAPE", "the same elements in another shape", {1});
    add_circle_operator<lower_squeeze>(registry, "SQUEEZE", "without dimensions of 1");
    add_circle_operator<lower_expand_dims>(registry, "EXPAND_DIMS", "with one more dimension of 1", {1});
    add_circle_operator<lower_transpose>(registry, "TRANSPOSE", "the axes in another order", {1});
    add_circle_operator<lower_shape>(registry, "SHAPE", "the shape", {}, true);
    add_circle_operator<lower_rank>(registry, "RANK", "the number of dimensions", {}, true);
    add_circle_operator<lower_concatenation>(registry, "CONCATENATION", "inputs joined along an axis");
    add_circle_operator<lower_pack>(registry, "PACK", "inputs joined along a new axis");
    add_circle_operator<lower_split>(registry, "SPLIT", "equal parts along an axis", {0});
    add_circle_operator<lower_split_v>(registry, "SPLIT_V", "parts along an axis", {1, 2});
    add_circle_operator<lower_unpack>(registry, "UNPACK", "parts along an axis that goes away");
    add_circle_operator<lower_broadcast_to>(registry, "BROADCAST_TO", "the input broadcast to a shape", {1});
    add_circle_operator<lower_fill>(registry, "FILL", "a shape filled with a number", {0});
    add_circle_operator<lower_zeros_like>(registry, "ZEROS_LIKE", "zeros in the shape of the input");
    add_circle_operator<lower_tile>(registry, "TILE", "the input repeated along its axes", {1});
    add_circle_operator<lower_range>(registry, "RANGE", "numbers from a start to a limit", {0, 1, 2});
    add_circle_operator<lower_pad>(registry, "PAD", "a border of zeros", {1});
    add_circle_operator<lower_pad_v2>(registry, "PADV2", "a border of a number", {1});
    add_circle_operator<lower_mirror_pad>(registry, "MIRROR_PAD", "a border of mirrored elements", {1});
    add_circle_operator<lower_reverse_v2>(registry, "REVERSE_V2", "axes turned round", {1});
    add_circle_operator<lower_space_to_batch>(registry, "SPACE_TO_BATCH_ND", "blocks of pixels as batch",
                                              {1, 2});
    add_circle_operator<lower_batch_to_space>(registry, "BATCH_TO_SPACE_ND", "batch as blocks of pixels",
                                              {1, 2});
}

}  // namespace qcalib
