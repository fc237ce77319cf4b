#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/index_map.h"
#include "runtime/kernels/strided_copy.h"

namespace qcalib {

namespace {

// Output axis i is input axis permutation[i]; the axes reversed by default.
std::vector<std::size_t> permutation_of(const NodeContext& context) {
    const std::size_t rank = context.input(0).rank();
    std::vector<std::int64_t> otherwise(rank);
    std::iota(otherwise.rbegin(), otherwise.rend(), std::int64_t{0});
    const auto given = context.node.attribute<std::vector<std::int64_t>>("perm", otherwise);
    if (given.size() != rank) {
        context.refuse(fmt::format("expected a permutation of {} axes, found {}", rank, to_string(given)));
    }
    return resolve_axes(context, given, rank);
}

Shape permuted(const Shape& shape, const std::vector<std::size_t>& permutation) {
    Shape result;
    for (const std::size_t axis : permutation) result.push_back(shape[axis]);
    return result;
}

// Memory order of the output under which it has the input's very bytes, if there is one. What is made of
// constants stays row-major.
std::optional<MemoryOrder> order_as_view(const InputInfo& info, const std::vector<std::size_t>& permutation) {
    const TensorDescriptor& input = info.descriptor;
    const auto without_ones = [&](std::vector<std::size_t> axes) {
        std::erase_if(axes, [&](std::size_t axis) { return input.shape[axis] == 1; });
        return axes;
    };
    const std::vector<std::size_t> source = without_ones(memory_axes(input));
    for (const MemoryOrder order : {MemoryOrder::row_major, MemoryOrder::channels_last}) {
        const std::size_t rank = permutation.size();
        if (order == MemoryOrder::channels_last && (rank < 3 || rank > 5 || info.constant)) break;
        std::vector<std::size_t> axes = memory_axes({input.type, permuted(input.shape, permutation), order});
        for (std::size_t& axis : axes) axis = permutation[axis];
        if (without_ones(axes) == source) return order;
    }
    return std::nullopt;
}

class Transpose : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return keep_first_order(context);
    }

    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        const std::vector<std::size_t> permutation = permutation_of(context);
        TensorDescriptor output{input.type, permuted(input.shape, permutation), MemoryOrder::row_major};
        Prepared prepared;
        if (const auto order = order_as_view(context.inputs[0], permutation)) {
            output.order = *order;
            prepared.view_of = 0;
        }
        const std::vector<std::int64_t> source = element_strides(input);
        const std::vector<std::int64_t> target = element_strides(output);
        std::vector<CopyAxis> axes;
        for (std::size_t i = 0; i < permutation.size(); ++i) {
            axes.push_back({output.shape[i], source[permutation[i]], target[i]});
        }
        copy_ = StridedCopy(std::move(axes), size_of(input.type));
        prepared.outputs = {output};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        copy_.run(inputs[0].data, outputs[0].data);
    }

  private:
    StridedCopy copy_;
};

class TransposeReference : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        const std::vector<std::size_t> permutation = permutation_of(context);
        const std::vector<std::int64_t> strides = element_strides(input);
        IndexMap map;
        for (const std::size_t axis : permutation) {
            map.offsets.push_back(identity_indices(input.shape[axis]));
            for (std::int64_t& offset : map.offsets.back()) offset *= strides[axis];
        }
        copy_ = ElementCopy(std::move(map), size_of(input.type));
        Prepared prepared;
        prepared.outputs = {{input.type, permuted(input.shape, permutation), MemoryOrder::row_major}};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        copy_.run(inputs[0].data, outputs[0].data);
    }

  private:
    ElementCopy copy_;
};

}  // namespace

void register_transpose(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "Transpose",
                  .since = 1,
                  .summary = "the axes in another order",
                  .make = make_kernel<Transpose>,
                  .make_reference = make_kernel<TransposeReference>});
}

}  // namespace qcalib
