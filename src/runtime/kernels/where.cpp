#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/broadcast.h"

namespace qcalib {

namespace {

// `count` elements along a loop whose steps are given for condition, x and y.
template <typename T>
void select_row(const std::byte* condition, const std::byte* x, const std::byte* y, std::byte* out,
                std::size_t count, const Broadcast::Steps& steps) {
    const auto* truth = reinterpret_cast<const std::uint8_t*>(condition);
    const auto* from_x = reinterpret_cast<const T*>(x);
    const auto* from_y = reinterpret_cast<const T*>(y);
    auto* to = reinterpret_cast<T*>(out);
    for (std::size_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::ptrdiff_t>(i);
        const T value_x = from_x[at * steps[1]];
        const T value_y = from_y[at * steps[2]];
        to[i] = truth[at * steps[0]] != 0 ? value_x : value_y;
    }
}

using SelectRow = void (*)(const std::byte*, const std::byte*, const std::byte*, std::byte*, std::size_t,
                           const Broadcast::Steps&);

SelectRow select_row_for(std::size_t size) {
    switch (size) {
        case 1:
            return &select_row<std::uint8_t>;
        case 2:
            return &select_row<std::uint16_t>;
        case 4:
            return &select_row<std::uint32_t>;
        case 8:
            return &select_row<std::uint64_t>;
        default:
            return nullptr;
    }
}

class WhereKernel : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        if (context.input_count() != 3) {
            context.refuse(fmt::format("expected three inputs, found {}", context.input_count()));
        }
        const Shape shape = broadcast_inputs(context);
        const DataType type = context.input(1).type;
        row_ = select_row_for(size_of(type));
        if (context.input(0).type != DataType::boolean || context.input(2).type != type || row_ == nullptr) {
            context.refuse(fmt::format("expected a bool and two tensors of one type, found {}, {} and {}",
                                       name_of(context.input(0).type), name_of(type),
                                       name_of(context.input(2).type)));
        }
        const TensorDescriptor output{type, shape, broadcast_order(context, shape)};
        Prepared prepared;
        prepared.outputs = {output};
        for (std::size_t i = 1; i < 3; ++i) {
            const bool same_place = context.input(i).order == output.order || same_in_both_orders(shape);
            if (context.input(i).shape == shape && same_place) prepared.in_place.push_back(i);
        }
        prepare_loops(context, output);
        return prepared;
    }

  protected:
    virtual void prepare_loops(const NodeContext& context, const TensorDescriptor& output) = 0;

    SelectRow row_ = nullptr;
};

class FastWhereKernel : public WhereKernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return follow_inputs(context);
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const std::size_t size = size_of(outputs[0].descriptor->type);
        const auto step = static_cast<std::ptrdiff_t>(size);
        const Broadcast::Loop& rows = broadcast_.rows();
        const Broadcast::Loop& columns = broadcast_.columns();
        broadcast_.for_each_block([&](std::size_t element, Broadcast::Steps at) {
            for (std::size_t row = 0; row < rows.extent; ++row) {
                row_(inputs[0].data + at[0], inputs[1].data + at[1] * step, inputs[2].data + at[2] * step,
                     outputs[0].data + (element + row * columns.extent) * size, columns.extent,
                     columns.steps);
                for (std::size_t k = 0; k < at.size(); ++k) at[k] += rows.steps[k];
            }
        });
    }

  protected:
    void prepare_loops(const NodeContext& context, const TensorDescriptor& output) override {
        const TensorDescriptor operands[] = {context.input(0), context.input(1), context.input(2)};
        broadcast_ = Broadcast::over(output, operands);
    }

  private:
    Broadcast broadcast_;
};

class ReferenceWhereKernel : public WhereKernel {
  public:
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const std::size_t size = size_of(outputs[0].descriptor->type);
        const auto step = static_cast<std::ptrdiff_t>(size);
        walk_->for_each([&](std::size_t element, const Broadcast::Steps& at) {
            row_(inputs[0].data + at[0], inputs[1].data + at[1] * step, inputs[2].data + at[2] * step,
                 outputs[0].data + element * size, 1, {});
        });
    }

  protected:
    void prepare_loops(const NodeContext& context, const TensorDescriptor& output) override {
        const Shape operands[] = {context.input(0).shape, context.input(1).shape, context.input(2).shape};
        walk_.emplace(output.shape, operands);
    }

  private:
    std::optional<BroadcastWalk> walk_;
};

}  // namespace

void register_where(KernelRegistry& registry) {
    OperatorEntry entry;
    entry.op_type = "Where";
    entry.since = 9;
    entry.summary = "b where a is true, else c";
    entry.make = make_kernel<FastWhereKernel>;
    entry.make_reference = make_kernel<ReferenceWhereKernel>;
    registry.add(std::move(entry));
}

}  // namespace qcalib
