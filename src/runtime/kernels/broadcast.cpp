#include "runtime/kernels/broadcast.h"

#include <cassert>

#include <fmt/format.h>

#include "runtime/kernels/axes.h"

namespace qcalib {

namespace {

// The elements between neighbours of `operand` along each axis of an output of rank `rank`; 0 where it is
// repeated.
std::vector<std::ptrdiff_t> repeated_steps(const TensorDescriptor& operand, std::size_t rank) {
    assert(operand.rank() <= rank);
    std::vector<std::ptrdiff_t> steps(rank, 0);
    const std::vector<std::int64_t> strides = element_strides(operand);
    for (std::size_t i = 0; i < operand.rank(); ++i) {
        if (operand.shape[i] != 1) steps[rank - operand.rank() + i] = strides[i];
    }
    return steps;
}

// True where going on by one along `outer` is the same as going through all of `inner`.
bool can_merge(const Broadcast::Loop& outer, const Broadcast::Loop& inner) {
    for (std::size_t k = 0; k < Broadcast::most_operands; ++k) {
        if (outer.steps[k] != inner.steps[k] * static_cast<std::ptrdiff_t>(inner.extent)) return false;
    }
    return true;
}

}  // namespace

Broadcast Broadcast::over(const TensorDescriptor& output, std::span<const TensorDescriptor> operands) {
    assert(operands.size() <= most_operands);
    std::array<std::vector<std::ptrdiff_t>, most_operands> steps;
    for (std::size_t k = 0; k < most_operands; ++k) {
        steps[k] = k < operands.size() ? repeated_steps(operands[k], output.rank())
                                       : std::vector<std::ptrdiff_t>(output.rank(), 0);
    }
    Broadcast result;
    for (const std::size_t axis : memory_axes(output)) {
        if (output.shape[axis] == 1) continue;
        Loop loop{static_cast<std::size_t>(output.shape[axis]), {}};
        for (std::size_t k = 0; k < most_operands; ++k) loop.steps[k] = steps[k][axis];
        if (!result.loops.empty() && can_merge(result.loops.back(), loop)) {
            loop.extent *= result.loops.back().extent;
            result.loops.back() = loop;
        } else {
            result.loops.push_back(loop);
        }
    }
    // A lone element counts as one along which all operands are dense.
    if (result.loops.empty()) result.loops.push_back({1, {1, 1, 1}});
    if (result.loops.size() == 1) result.loops.insert(result.loops.begin(), Loop{});
    return result;
}

Shape broadcast_inputs(const NodeContext& context) {
    Shape shape;
    for (std::size_t i = 0; i < context.input_count(); ++i) {
        if (!context.has_input(i)) context.refuse(fmt::format("expected input {}, which is left out", i));
        const std::optional<Shape> wider = broadcast_shapes(shape, context.input(i).shape);
        if (!wider) {
            context.refuse(fmt::format("expected inputs that broadcast to one shape, found {} and {}",
                                       to_string(shape), to_string(context.input(i).shape)));
        }
        shape = *wider;
    }
    return shape;
}

MemoryOrder broadcast_order(const NodeContext& context, const Shape& shape) {
    if (same_in_both_orders(shape)) return MemoryOrder::row_major;
    for (const InputInfo& input : context.inputs) {
        const TensorDescriptor& descriptor = input.descriptor;
        if (descriptor.rank() == shape.size() && descriptor.order == MemoryOrder::channels_last) {
            return MemoryOrder::channels_last;
        }
    }
    return MemoryOrder::row_major;
}

BroadcastWalk::BroadcastWalk(const Shape& output, std::span<const Shape> operands) : output_(output) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
        const Shape& shape = operands[k];
        steps_[k].assign(output.size(), 0);
        std::ptrdiff_t step = 1;
        for (std::size_t i = shape.size(); i-- > 0;) {
            if (shape[i] != 1) steps_[k][output.size() - shape.size() + i] = step;
            step *= shape[i];
        }
    }
    for (std::size_t k = operands.size(); k < steps_.size(); ++k) steps_[k].assign(output.size(), 0);
}

}  // namespace qcalib
