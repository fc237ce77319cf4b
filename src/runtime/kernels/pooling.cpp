#include <algorithm>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/pooling_loops.h"
#include "runtime/onednn.h"

namespace qcalib {

namespace {

using onednn::PoolingKind;
using onednn::PoolingShape;

// Pads at least as large as the kernel leave windows without any element.
void require_pads_below_kernel(const NodeContext& context, const Window& window) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t pad = std::max(window.pad_begin[axis], window.pad_end[axis]);
        if (pad < window.kernel[axis]) continue;
        context.refuse(fmt::format("padding of {} should be less than the kernel's {} (spatial dimension {})",
                                   pad, window.kernel[axis], axis - (3 - window.rank)));
    }
}

PoolingShape read_pooling(const NodeContext& context, PoolingKind kind) {
    if (!context.has_input(0)) context.refuse("input 0 should be there");
    require_spatial(context, 0);
    PoolingShape shape;
    shape.kind = kind;
    shape.input = context.input(0);
    const Extents extents = spatial_extents(shape.input.shape);
    if (!context.node.has_attribute("kernel_shape")) context.refuse("attribute 'kernel_shape' is missing");
    shape.window = read_window(context, number_list(context, "kernel_shape", shape.input.rank() - 2, 1, 1));
    apply_auto_pad(read_auto_pad(context), extents, shape.window);
    require_pads_below_kernel(context, shape.window);
    const bool ceil = context.node.attribute<std::int64_t>("ceil_mode", 0) != 0;
    const Extents output = output_extents(context, shape.window, extents, ceil);
    shape.output = {shape.input.type,
                    shape_of(shape.input.shape[0], shape.input.shape[1], output, shape.window.rank),
                    shape.input.order};
    return shape;
}

// True where a window reaches beyond the declared padding: oneDNN divides by the whole kernel there, ONNX
// does not.
bool reaches_beyond_padding(const PoolingShape& shape) {
    const Extents input = spatial_extents(shape.input.shape);
    const Extents output = spatial_extents(shape.output.shape);
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t end = (output[axis] - 1) * shape.window.stride[axis] + shape.window.reach(axis);
        if (end > input[axis] + shape.window.pad_begin[axis] + shape.window.pad_end[axis]) return true;
    }
    return false;
}

// `fast`: oneDNN in channels-last order where it can, else plain loops.
class PoolingKernel : public Kernel {
  public:
    explicit PoolingKernel(bool fast) : fast_(fast) {}

    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        const bool any_order = fast_ && context.node.outputs.size() < 2;
        return any_order ? first_channels_last(context) : all_row_major(context);
    }

    std::unique_ptr<KernelState> make_state() const override {
        return primitive_ == nullptr ? nullptr : primitive_->make_state();
    }

  protected:
    Prepared prepare_shape(PoolingShape shape) {
        shape_ = std::move(shape);
        primitive_.reset();
        Prepared prepared;
        prepared.outputs = {shape_.output};
        const bool averaging_corners =
            shape_.kind == PoolingKind::average_counting_pads && reaches_beyond_padding(shape_);
        if (!fast_ || averaging_corners || shape_.input.type != DataType::float32) return prepared;
        if (shape_.input.elements() == 0 || shape_.output.elements() == 0) return prepared;
        primitive_ = onednn::make_pooling(shape_);
        if (primitive_ != nullptr) prepared.scratch_bytes = primitive_->scratch_bytes();
        return prepared;
    }

    // False where there is no primitive: the plain loops' turn.
    bool run_primitive(TensorView input, MutableTensorView output, Workspace& workspace) const {
        if (primitive_ == nullptr) return false;
        onednn::Operands operands;
        operands.source = input.data;
        operands.target = output.data;
        primitive_->execute(operands, workspace);
        return true;
    }

    void forget_primitive() { primitive_.reset(); }
    const PoolingShape& shape() const { return shape_; }

  private:
    bool fast_;
    PoolingShape shape_;
    std::unique_ptr<onednn::Primitive> primitive_;
};

template <bool fast>
class AveragePool : public PoolingKernel {
  public:
    AveragePool() : PoolingKernel(fast) {}

    Prepared prepare(const NodeContext& context) override {
        if (context.has_input(0)) require_one_float_type(context);
        const bool with_padding = context.node.attribute<std::int64_t>("count_include_pad", 0) != 0;
        return prepare_shape(
            read_pooling(context, with_padding ? PoolingKind::average_counting_pads : PoolingKind::average));
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (run_primitive(inputs[0], outputs[0], workspace)) return;
        if (shape().input.type == DataType::float64) {
            pool_average<double>(shape(), inputs[0].as<double>().data(), outputs[0].as<double>().data());
        } else {
            pool_average<float>(shape(), inputs[0].as<float>().data(), outputs[0].as<float>().data());
        }
    }
};

// Output 1, where wanted, says where each greatest element lies; it comes from the plain loops.
template <bool fast>
class MaxPool : public PoolingKernel {
  public:
    MaxPool() : PoolingKernel(fast) {}

    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = prepare_shape(read_pooling(context, PoolingKind::max));
        const DataType type = context.input(0).type;
        if (type != DataType::float32 && type != DataType::float64 && type != DataType::int8 &&
            type != DataType::uint8) {
            context.refuse(fmt::format("input 0 should be float32, int8 or uint8, found {}", name_of(type)));
        }
        column_major_ = context.node.attribute<std::int64_t>("storage_order", 0) != 0;
        if (context.node.outputs.size() < 2) return prepared;
        forget_primitive();
        prepared.scratch_bytes = 0;
        prepared.outputs.push_back({DataType::int64, shape().output.shape, MemoryOrder::row_major});
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (run_primitive(inputs[0], outputs[0], workspace)) return;
        switch (shape().input.type) {
            case DataType::float64:
                return run_loops<double>(inputs[0], outputs);
            case DataType::int8:
                return run_loops<std::int8_t>(inputs[0], outputs);
            case DataType::uint8:
                return run_loops<std::uint8_t>(inputs[0], outputs);
            default:
                return run_loops<float>(inputs[0], outputs);
        }
    }

  private:
    template <typename T>
    void run_loops(TensorView input, std::span<const MutableTensorView> outputs) const {
        const T* x = input.as<T>().data();
        T* y = outputs[0].as<T>().data();
        if (outputs.size() > 1 && outputs[1].data != nullptr) {
            pool_greatest_indexed<T>(shape(), x, y, outputs[1].as<std::int64_t>().data(), column_major_);
        } else {
            pool_greatest<T>(shape(), x, y);
        }
    }

    bool column_major_ = false;
};

}  // namespace

void register_pooling(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "MaxPool",
                  .since = 1,
                  .summary = "the greatest element under a sliding window",
                  .make = make_kernel<MaxPool<true>>,
                  .make_reference = make_kernel<MaxPool<false>>});
    registry.add({.domain = "",
                  .op_type = "AveragePool",
                  .since = 7,
                  .summary = "the mean of the elements under a sliding window",
                  .make = make_kernel<AveragePool<true>>,
                  .make_reference = make_kernel<AveragePool<false>>});
}

}  // namespace qcalib
