#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "runtime/kernel.h"

namespace qcalib {

// How up to three operands lie along an output that they broadcast to (numpy's and ONNX's multidirectional
// rule).
struct Broadcast {
    static constexpr std::size_t most_operands = 3;
    using Steps = std::array<std::ptrdiff_t, most_operands>;

    // One loop over the output's memory. Going on by one moves each operand by `steps` elements; 0 repeats
    // it.
    struct Loop {
        std::size_t extent = 1;
        Steps steps{};
    };

    // Neighbouring loops that no operand tells apart are one. Outermost first, at least two; the output is
    // dense.
    std::vector<Loop> loops;

    const Loop& rows() const { return loops[loops.size() - 2]; }
    const Loop& columns() const { return loops.back(); }

    // The loops of an output of this shape and memory order over `operands`, each in its own memory order,
    // which must broadcast to it.
    static Broadcast over(const TensorDescriptor& output, std::span<const TensorDescriptor> operands);

    // Calls block(output element, operand elements) at the start of each pass through the two innermost
    // loops.
    template <typename Block>
    void for_each_block(const Block& block) const {
        walk(0, 0, {}, block);
    }

  private:
    template <typename Block>
    std::size_t walk(std::size_t depth, std::size_t output, Steps operands, const Block& block) const {
        if (depth + 2 == loops.size()) {
            if (rows().extent != 0 && columns().extent != 0) block(output, operands);
            return output + rows().extent * columns().extent;
        }
        for (std::size_t i = 0; i < loops[depth].extent; ++i) {
            output = walk(depth + 1, output, operands, block);
            for (std::size_t k = 0; k < most_operands; ++k) operands[k] += loops[depth].steps[k];
        }
        return output;
    }
};

// The shape that all inputs of the node that are there broadcast to. Refuses ones that do not fit.
Shape broadcast_inputs(const NodeContext& context);

// The memory order of an output of `shape`: channels-last where an input of its rank has it and it matters.
MemoryOrder broadcast_order(const NodeContext& context, const Shape& shape);

// Where operand elements lie for the plain kernels: walks the coordinates of a row-major output one by one.
class BroadcastWalk {
  public:
    // `operands` are row-major shapes that broadcast to `output`.
    BroadcastWalk(const Shape& output, std::span<const Shape> operands);

    // Calls visit(output element, operand elements) for each output element in row-major order.
    template <typename Visit>
    void for_each(const Visit& visit) const {
        Broadcast::Steps elements{};
        std::size_t output = 0;
        walk(0, output, elements, visit);
    }

  private:
    template <typename Visit>
    void walk(std::size_t axis, std::size_t& output, Broadcast::Steps elements, const Visit& visit) const {
        if (axis == output_.size()) return visit(output++, elements);
        for (std::int64_t i = 0; i < output_[axis]; ++i) {
            walk(axis + 1, output, elements, visit);
            for (std::size_t k = 0; k < steps_.size(); ++k) elements[k] += steps_[k][axis];
        }
    }

    Shape output_;
    std::array<std::vector<std::ptrdiff_t>, Broadcast::most_operands> steps_;  // per operand and output axis
};

}  // namespace qcalib
