#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/index_map.h"

namespace qcalib {

namespace {

// The input's indices that one axis keeps: start, start + step, ... before end; start and end count from the
// back where negative and are held to the axis.
std::vector<std::int64_t> sliced_indices(std::int64_t size, std::int64_t start, std::int64_t end,
                                         std::int64_t step) {
    if (size == 0) return {};
    const auto from_front = [size](std::int64_t index) { return index < 0 ? index + size : index; };
    const std::int64_t lowest = step > 0 ? 0 : -1;
    const std::int64_t highest = step > 0 ? size : size - 1;
    start = std::clamp(from_front(start), std::int64_t{0}, highest);
    end = std::clamp(from_front(end), lowest, highest);
    // A step beyond the axis keeps one index; held to the size it cannot overflow.
    step = std::clamp(step, -size, size);
    std::vector<std::int64_t> indices;
    for (std::int64_t index = start; step > 0 ? index < end : index > end; index += step)
        indices.push_back(index);
    return indices;
}

struct SliceArguments {
    std::vector<std::int64_t> starts;
    std::vector<std::int64_t> ends;
    std::vector<std::size_t> axes;
    std::vector<std::int64_t> steps;
};

SliceArguments slice_arguments(const NodeContext& context) {
    const std::size_t rank = context.input(0).rank();
    const auto starts = integers_from(context, 1, "starts");
    const auto ends = integers_from(context, 2, "ends");
    if (!starts || !ends) context.refuse("expected starts and ends, found none");
    std::vector<std::int64_t> all_axes(starts->size());
    std::iota(all_axes.begin(), all_axes.end(), std::int64_t{0});
    SliceArguments arguments;
    arguments.starts = *starts;
    arguments.ends = *ends;
    arguments.axes = resolve_axes(context, integers_from(context, 3, "axes").value_or(all_axes), rank);
    arguments.steps =
        context.has_input(4) ? context.integers(4) : std::vector<std::int64_t>(starts->size(), 1);
    if (ends->size() != starts->size() || arguments.axes.size() != starts->size() ||
        arguments.steps.size() != starts->size()) {
        context.refuse(fmt::format("expected as many starts as ends, axes and steps, found {}, {}, {} and {}",
                                   starts->size(), ends->size(), arguments.axes.size(),
                                   arguments.steps.size()));
    }
    if (std::count(arguments.steps.begin(), arguments.steps.end(), 0) > 0) {
        context.refuse("expected steps other than 0");
    }
    return arguments;
}

template <typename Copy>
class Slice : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return Copy::any_order ? keep_first_order(context) : all_row_major(context);
    }

    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        const SliceArguments arguments = slice_arguments(context);
        std::vector<std::vector<std::int64_t>> indices;
        for (const std::int64_t size : input.shape) indices.push_back(identity_indices(size));
        for (std::size_t i = 0; i < arguments.axes.size(); ++i) {
            const std::size_t axis = arguments.axes[i];
            indices[axis] =
                sliced_indices(input.shape[axis], arguments.starts[i], arguments.ends[i], arguments.steps[i]);
        }
        Prepared prepared;
        prepared.outputs = {input};
        for (std::size_t axis = 0; axis < indices.size(); ++axis) {
            prepared.outputs[0].shape[axis] = static_cast<std::int64_t>(indices[axis].size());
        }
        copy_ = Copy(map_axes(input, indices), size_of(input.type));
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        copy_.run(inputs[0].data, outputs[0].data);
    }

  private:
    Copy copy_;
};

}  // namespace

void register_slice(KernelRegistry& registry) {
    for (const std::int64_t since : {1, 10}) {  // starts and ends became inputs, steps came
        registry.add({.domain = "",
                      .op_type = "Slice",
                      .since = since,
                      .summary = "a part of the input, with steps",
                      .value_inputs = {1, 2, 3, 4},
                      .make = make_kernel<Slice<RunCopy>>,
                      .make_reference = make_kernel<Slice<ElementCopy>>});
    }
}

}  // namespace qcalib
