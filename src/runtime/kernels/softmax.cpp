#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/softmax_rows.h"

namespace qcalib {

namespace {

constexpr std::int64_t one_axis_since = 13;

bool one_axis(const NodeContext& context) {
    return context.node.opset >= one_axis_since;
}

std::size_t axis_of(const NodeContext& context) {
    const std::int64_t axis = context.node.attribute<std::int64_t>("axis", one_axis(context) ? -1 : 1);
    const std::size_t rank = context.input(0).rank();
    if (rank == 0 && (axis == 0 || axis == -1)) return 0;
    // Below opset 13 the axis may be the rank: each element is a softmax of its own.
    if (!one_axis(context) && axis == static_cast<std::int64_t>(rank)) return rank;
    return resolve_axis(context, axis, rank);
}

// The blocks of the input as it lies in memory. Where all axes from `axis` on count, channels-last memory
// must keep them together, which it does for axis 0 and 1.
AxisBlocks blocks_of(const NodeContext& context) {
    const TensorDescriptor& input = context.input(0);
    const std::size_t axis = axis_of(context);
    AxisBlocks blocks;
    if (!one_axis(context)) {
        for (std::size_t i = 0; i < input.rank(); ++i) {
            (i < axis ? blocks.outer : blocks.axis) *= static_cast<std::size_t>(input.shape[i]);
        }
        return blocks;
    }
    std::size_t* extent = &blocks.outer;
    for (const std::size_t i : memory_axes(input)) {
        if (i == axis) {
            blocks.axis = static_cast<std::size_t>(input.shape[i]);
            extent = &blocks.inner;
        } else {
            *extent *= static_cast<std::size_t>(input.shape[i]);
        }
    }
    return blocks;
}

// Sums in double.
template <typename T>
void softmax_plain(const T* in, T* out, const AxisBlocks& blocks, bool logarithm) {
    for (std::size_t outer = 0; outer < blocks.outer; ++outer) {
        for (std::size_t inner = 0; inner < blocks.inner; ++inner) {
            const T* from = in + outer * blocks.axis * blocks.inner + inner;
            T* to = out + outer * blocks.axis * blocks.inner + inner;
            double greatest = -std::numeric_limits<double>::infinity();
            double sum = 0;
            for (std::size_t k = 0; k < blocks.axis; ++k) {
                greatest = std::max(greatest, static_cast<double>(from[k * blocks.inner]));
            }
            for (std::size_t k = 0; k < blocks.axis; ++k) sum += std::exp(from[k * blocks.inner] - greatest);
            for (std::size_t k = 0; k < blocks.axis; ++k) {
                const double shifted = from[k * blocks.inner] - greatest;
                to[k * blocks.inner] =
                    static_cast<T>(logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
            }
        }
    }
}

class SoftmaxKernel : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        if (!context.has_input(0)) context.refuse("expected one input, found none");
        const TensorDescriptor& input = context.input(0);
        if (input.type != DataType::float32 && input.type != DataType::float64) {
            context.refuse(fmt::format("expected an input of a float type, found {}", name_of(input.type)));
        }
        logarithm_ = context.node.op_type == "LogSoftmax";
        blocks_ = blocks_of(context);
        Prepared prepared;
        prepared.outputs = {input};
        prepared.in_place = {0};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        if (inputs[0].descriptor->type == DataType::float32) {
            softmax_plain(inputs[0].as<float>().data(), outputs[0].as<float>().data(), blocks_, logarithm_);
        } else {
            softmax_plain(inputs[0].as<double>().data(), outputs[0].as<double>().data(), blocks_, logarithm_);
        }
    }

  protected:
    AxisBlocks blocks_;
    bool logarithm_ = false;
};

class FastSoftmaxKernel : public SoftmaxKernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        if (context.has_input(0) && (one_axis(context) || axis_of(context) <= 1))
            return keep_first_order(context);
        return all_row_major(context);
    }

    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = SoftmaxKernel::prepare(context);
        if (context.input(0).type == DataType::float32) fast_ = fast_softmax(logarithm_);
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (fast_ == nullptr) return SoftmaxKernel::run(inputs, outputs, workspace);
        fast_(inputs[0].as<float>().data(), outputs[0].as<float>().data(), blocks_);
    }

  private:
    SoftmaxFunction fast_ = nullptr;
};

}  // namespace

void register_softmax(KernelRegistry& registry) {
    for (const char* name : {"Softmax", "LogSoftmax"}) {
        for (const std::int64_t since : {std::int64_t{1}, one_axis_since}) {
            OperatorEntry entry;
            entry.op_type = name;
            entry.since = since;
            entry.summary = since < one_axis_since ? "over all axes from `axis` on" : "along `axis`";
            entry.make = make_kernel<FastSoftmaxKernel>;
            entry.make_reference = make_kernel<SoftmaxKernel>;
            registry.add(std::move(entry));
        }
    }
}

}  // namespace qcalib
