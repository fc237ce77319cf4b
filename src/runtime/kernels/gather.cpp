// Elements picked by index tensors or repeated: Gather, GatherElements, GatherND, Expand, Tile. ScatterND and
// ScatterElements are in scatter.cpp.
#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/index_map.h"
#include "runtime/kernels/indices.h"

namespace qcalib {

namespace {

// Along one axis, the indices' elements stand where the axis was: output [outer, indices..., inner].
class Gather : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& data = context.input(0);
        require_index_type(context, 1);
        const std::size_t axis =
            resolve_axis(context, context.node.attribute<std::int64_t>("axis", 0), data.rank());
        const std::span<const std::int64_t> shape(data.shape);
        const Shape& indices = context.input(1).shape;
        axis_size_ = shape[axis];
        outer_ = static_cast<std::size_t>(element_count(shape.first(axis)));
        row_bytes_ = static_cast<std::size_t>(element_count(shape.subspan(axis + 1))) * size_of(data.type);
        Shape output(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
        output.insert(output.end(), indices.begin(), indices.end());
        output.insert(output.end(), shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end());
        Prepared prepared;
        prepared.outputs = {{data.type, std::move(output), MemoryOrder::row_major}};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        visit_indices(inputs[1], [&](auto indices) { gather(inputs[0].data, indices, outputs[0].data); });
    }

  private:
    template <typename Index>
    void gather(const std::byte* source, std::span<const Index> indices, std::byte* target) const {
        const std::size_t block_bytes = row_bytes_ * static_cast<std::size_t>(axis_size_);
        for (std::size_t outer = 0; outer < outer_; ++outer, source += block_bytes) {
            for (const Index index : indices) {
                const std::size_t row = checked_index(index, axis_size_);
                std::copy_n(source + row * row_bytes_, row_bytes_, target);
                target += row_bytes_;
            }
        }
    }

    std::int64_t axis_size_ = 0;
    std::size_t outer_ = 0;
    std::size_t row_bytes_ = 0;
};

// Gather by the definition, one element after the other.
class GatherReference : public Gather {
  public:
    Prepared prepare(const NodeContext& context) override {
        axis_ =
            resolve_axis(context, context.node.attribute<std::int64_t>("axis", 0), context.input(0).rank());
        return Gather::prepare(context);
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const Shape& shape = inputs[0].descriptor->shape;
        const std::size_t bytes = size_of(inputs[0].descriptor->type);
        const std::int64_t inner = element_count(std::span(shape).subspan(axis_ + 1));
        visit_indices(inputs[1], [&](auto indices) {
            const auto count = static_cast<std::int64_t>(indices.size());
            for (std::size_t i = 0; i < outputs[0].elements(); ++i) {
                const auto at = static_cast<std::int64_t>(i);
                const auto which = static_cast<std::size_t>(at / inner % count);
                const auto row = static_cast<std::int64_t>(checked_index(indices[which], shape[axis_]));
                const std::int64_t from = (at / (inner * count) * shape[axis_] + row) * inner + at % inner;
                std::memcpy(outputs[0].data + i * bytes,
                            inputs[0].data + static_cast<std::size_t>(from) * bytes, bytes);
            }
        });
    }

  private:
    std::size_t axis_ = 0;
};

// The output has the indices' shape; along the axis an index says which element of the data stands there.
class GatherElements : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        require_index_type(context, 1);
        place_ = ElementPlace(context, context.input(0), context.input(1));
        Prepared prepared;
        prepared.outputs = {{context.input(0).type, context.input(1).shape, MemoryOrder::row_major}};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const std::size_t bytes = size_of(inputs[0].descriptor->type);
        visit_indices(inputs[1], [&](auto indices) {
            for (std::size_t i = 0; i < indices.size(); ++i) {
                std::memcpy(outputs[0].data + i * bytes, inputs[0].data + place_.of(i, indices[i]) * bytes,
                            bytes);
            }
        });
    }

  private:
    ElementPlace place_;
};

// The last axis of the indices is a coordinate into the data, after batch_dims shared axes.
class GatherNd : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        require_index_type(context, 1);
        place_ = SlicePlace(context, context.input(0), context.input(1),
                            context.node.attribute<std::int64_t>("batch_dims", 0));
        Prepared prepared;
        prepared.outputs = {{context.input(0).type, place_.gathered_shape(), MemoryOrder::row_major}};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const std::size_t bytes = place_.slice_elements() * size_of(inputs[0].descriptor->type);
        visit_indices(inputs[1], [&](auto indices) {
            for (std::size_t i = 0; i < place_.slices(); ++i) {
                const std::size_t from = place_.of(i, indices) * size_of(inputs[0].descriptor->type);
                std::copy_n(inputs[0].data + from, bytes, outputs[0].data + i * bytes);
            }
        });
    }

  private:
    SlicePlace place_;
};

// A kernel of one input, seen with as many leading ones as the output has more axes, whose output axes each
// repeat the input's.
template <typename Copy>
class Repeat : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const Shape output = output_shape(context);
        TensorDescriptor input = context.input(0);
        input.shape.insert(input.shape.begin(), output.size() - input.rank(), 1);
        std::vector<std::vector<std::int64_t>> indices;
        for (std::size_t axis = 0; axis < output.size(); ++axis) {
            indices.push_back(identity_indices(output[axis]));
            for (std::int64_t& index : indices.back()) index %= input.shape[axis];
        }
        copy_ = Copy(map_axes(input, indices), size_of(input.type));
        Prepared prepared;
        prepared.outputs = {{input.type, output, MemoryOrder::row_major}};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        copy_.run(inputs[0].data, outputs[0].data);
    }

  protected:
    virtual Shape output_shape(const NodeContext& context) const = 0;

  private:
    Copy copy_;
};

template <typename Copy>
class Expand : public Repeat<Copy> {
  protected:
    Shape output_shape(const NodeContext& context) const override {
        const Shape wanted = context.integers(1);
        if (std::any_of(wanted.begin(), wanted.end(), [](std::int64_t size) { return size < 0; })) {
            context.refuse(fmt::format("expected dimensions of 0 or more, found {}", to_string(wanted)));
        }
        const auto shape = broadcast_shapes(context.input(0).shape, wanted);
        if (!shape) {
            context.refuse(
                fmt::format("cannot expand {} to {}", to_string(context.input(0).shape), to_string(wanted)));
        }
        return *shape;
    }
};

template <typename Copy>
class Tile : public Repeat<Copy> {
  protected:
    Shape output_shape(const NodeContext& context) const override {
        Shape shape = context.input(0).shape;
        const std::vector<std::int64_t> repeats = context.integers(1);
        const bool fits =
            repeats.size() == shape.size() &&
            std::all_of(repeats.begin(), repeats.end(), [](std::int64_t times) { return times >= 0; });
        if (!fits) {
            context.refuse(
                fmt::format("expected {} repeats of 0 or more, found {}", shape.size(), to_string(repeats)));
        }
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            shape[axis] = element_count(std::array{shape[axis], repeats[axis]});
        }
        return shape;
    }
};

}  // namespace

void register_gather(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "Gather",
                  .summary = "slices along an axis, picked by index",
                  .make = make_kernel<Gather>,
                  .make_reference = make_kernel<GatherReference>});
    registry.add({.domain = "",
                  .op_type = "GatherElements",
                  .since = 11,
                  .summary = "elements along an axis, each picked by index",
                  .make = make_kernel<GatherElements>,
                  .make_reference = make_kernel<GatherElements>});
    registry.add({.domain = "",
                  .op_type = "GatherND",
                  .since = 11,
                  .summary = "slices picked by coordinates",
                  .make = make_kernel<GatherNd>,
                  .make_reference = make_kernel<GatherNd>});
    registry.add({.domain = "",
                  .op_type = "Expand",
                  .since = 8,
                  .summary = "the input broadcast to a shape",
                  .value_inputs = {1},
                  .make = make_kernel<Expand<RunCopy>>,
                  .make_reference = make_kernel<Expand<ElementCopy>>});
    registry.add({.domain = "",
                  .op_type = "Tile",
                  .since = 6,
                  .summary = "the input repeated along its axes",
                  .value_inputs = {1},
                  .make = make_kernel<Tile<RunCopy>>,
                  .make_reference = make_kernel<Tile<ElementCopy>>});
}

}  // namespace qcalib
