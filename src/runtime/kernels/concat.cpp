// Concat and Split.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/index_map.h"

namespace qcalib {

namespace {

// A tensor seen as rows that each run from one index of the outer axes through all of the axis and what lies
// inside.
struct Rows {
    std::size_t count = 1;       // product of the dimensions outside the axis in memory
    std::size_t unit_bytes = 0;  // bytes of one index of the axis
};

Rows rows_around(const TensorDescriptor& descriptor, std::size_t axis) {
    Rows rows{1, size_of(descriptor.type)};
    bool inside = false;
    for (const std::size_t a : memory_axes(descriptor)) {
        const auto size = static_cast<std::size_t>(descriptor.shape[a]);
        if (a == axis) {
            inside = true;
        } else {
            (inside ? rows.unit_bytes : rows.count) *= size;
        }
    }
    return rows;
}

// The output's descriptor and the axis, checked against all inputs.
struct ConcatShape {
    TensorDescriptor output;
    std::size_t axis = 0;
};

ConcatShape concat_shape(const NodeContext& context) {
    if (context.input_count() == 0) context.refuse("expected one input at least, found none");
    ConcatShape result;
    result.output = context.input(0);
    if (!context.node.has_attribute("axis")) context.refuse("expected the attribute 'axis', found none");
    result.axis =
        resolve_axis(context, context.node.attribute<std::int64_t>("axis", 0), result.output.rank());
    for (std::size_t i = 1; i < context.input_count(); ++i) {
        const TensorDescriptor& input = context.input(i);
        bool fits = input.type == result.output.type && input.rank() == result.output.rank();
        for (std::size_t a = 0; fits && a < input.rank(); ++a) {
            fits = a == result.axis || input.shape[a] == result.output.shape[a];
        }
        if (!fits) {
            context.refuse(fmt::format("cannot join {} {} and {} {} along axis {}",
                                       name_of(context.input(0).type), to_string(context.input(0).shape),
                                       name_of(input.type), to_string(input.shape), result.axis));
        }
        result.output.shape[result.axis] += input.shape[result.axis];
    }
    return result;
}

class Concat : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return follow_inputs(context);
    }

    Prepared prepare(const NodeContext& context) override {
        const ConcatShape shape = concat_shape(context);
        rows_ = rows_around(shape.output, shape.axis).count;
        row_bytes_.clear();
        for (const InputInfo& input : context.inputs) {
            const Rows rows = rows_around(input.descriptor, shape.axis);
            row_bytes_.push_back(rows.unit_bytes *
                                 static_cast<std::size_t>(input.descriptor.shape[shape.axis]));
        }
        output_row_bytes_ = std::accumulate(row_bytes_.begin(), row_bytes_.end(), std::size_t{0});
        // As many rows at a time as stay in the innermost cache while each input adds its part.
        block_rows_ = std::max<std::size_t>(1, 32768 / std::max<std::size_t>(1, output_row_bytes_));
        Prepared prepared;
        prepared.outputs = {shape.output};
        if (context.input_count() == 1) prepared.view_of = 0;
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        for (std::size_t first = 0; first < rows_; first += block_rows_) {
            const std::size_t rows = std::min(block_rows_, rows_ - first);
            std::byte* target = outputs[0].data + first * output_row_bytes_;
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                const std::byte* source = inputs[i].data + first * row_bytes_[i];
                copy_rows(source, row_bytes_[i], target, output_row_bytes_, row_bytes_[i], rows);
                target += row_bytes_[i];
            }
        }
    }

  private:
    std::vector<std::size_t> row_bytes_;
    std::size_t output_row_bytes_ = 0;
    std::size_t block_rows_ = 1;
    std::size_t rows_ = 0;
};

// Element by element: the index along the axis tells which input an element comes from.
class ConcatReference : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const ConcatShape shape = concat_shape(context);
        axis_ = shape.axis;
        Prepared prepared;
        prepared.outputs = {shape.output};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const Shape& shape = outputs[0].descriptor->shape;
        const std::size_t bytes = size_of(outputs[0].descriptor->type);
        const std::int64_t inner = element_count(std::span(shape).subspan(axis_ + 1));
        const std::int64_t along = shape[axis_];
        const auto count = static_cast<std::int64_t>(outputs[0].elements());
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t outer = i / (along * inner);
            std::int64_t index = i / inner % along;
            std::size_t input = 0;
            while (index >= inputs[input].descriptor->shape[axis_]) {
                index -= inputs[input++].descriptor->shape[axis_];
            }
            const std::int64_t from =
                (outer * inputs[input].descriptor->shape[axis_] + index) * inner + i % inner;
            std::memcpy(outputs[0].data + static_cast<std::size_t>(i) * bytes,
                        inputs[input].data + static_cast<std::size_t>(from) * bytes, bytes);
        }
    }

  private:
    std::size_t axis_ = 0;
};

// The sizes of the parts along the axis: as given, else equal parts (from opset 18 on the last may be
// smaller).
std::vector<std::int64_t> part_sizes(const NodeContext& context, std::int64_t total) {
    const auto parts = static_cast<std::int64_t>(context.node.outputs.size());
    if (parts == 0) context.refuse("expected one output at least, found none");
    auto sizes = integers_from(context, 1, "split");
    if (!sizes) {
        const auto declared = context.node.attribute<std::int64_t>("num_outputs", parts);
        if (declared != parts) {
            context.refuse(
                fmt::format("expected as many outputs as num_outputs {}, found {}", declared, parts));
        }
        if (total % parts != 0 && context.node.opset < 18) {
            context.refuse(fmt::format("expected a dimension that {} divides, found {}", parts, total));
        }
        const std::int64_t size = (total + parts - 1) / parts;
        sizes.emplace();
        for (std::int64_t i = 0; i < parts; ++i) {
            sizes->push_back(std::clamp<std::int64_t>(total - i * size, 0, size));
        }
    }
    std::int64_t sum = 0;
    for (const std::int64_t size : *sizes) {
        if (size < 0 || size > total)
            context.refuse(fmt::format("expected sizes of 0 to {}, found {}", total, size));
        sum += size;
    }
    if (static_cast<std::int64_t>(sizes->size()) != parts || sum != total) {
        context.refuse(
            fmt::format("expected {} sizes with the sum {}, found {}", parts, total, to_string(*sizes)));
    }
    return *sizes;
}

template <typename Copy>
class Split : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return Copy::any_order ? keep_first_order(context) : all_row_major(context);
    }

    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        const std::size_t axis =
            resolve_axis(context, context.node.attribute<std::int64_t>("axis", 0), input.rank());
        std::vector<std::vector<std::int64_t>> indices;
        for (const std::int64_t size : input.shape) indices.push_back(identity_indices(size));
        Prepared prepared;
        std::int64_t start = 0;
        copies_.clear();
        for (const std::int64_t size : part_sizes(context, input.shape[axis])) {
            indices[axis] = identity_indices(size);
            for (std::int64_t& index : indices[axis]) index += start;
            copies_.emplace_back(map_axes(input, indices), size_of(input.type));
            start += size;
            prepared.outputs.push_back(input);
            prepared.outputs.back().shape[axis] = size;
        }
        if (Copy::any_order && prepared.outputs.size() == 1) prepared.view_of = 0;
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (outputs[i].data != nullptr) copies_[i].run(inputs[0].data, outputs[i].data);
        }
    }

  private:
    std::vector<Copy> copies_;
};

}  // namespace

void register_concat(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "Concat",
                  .since = 4,
                  .summary = "inputs joined along an axis",
                  .make = make_kernel<Concat>,
                  .make_reference = make_kernel<ConcatReference>});
    for (const std::int64_t since : {2, 13, 18}) {  // the sizes became an input; num_outputs came
        registry.add({.domain = "",
                      .op_type = "Split",
                      .since = since,
                      .summary = "parts of the input along an axis",
                      .value_inputs = {1},
                      .make = make_kernel<Split<RunCopy>>,
                      .make_reference = make_kernel<Split<ElementCopy>>});
    }
}

}  // namespace qcalib
