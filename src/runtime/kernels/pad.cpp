#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/index_map.h"

namespace qcalib {

namespace {

enum class PadMode : std::uint8_t { constant, reflect, edge, wrap };

PadMode pad_mode(const NodeContext& context) {
    static const std::vector<std::string> names{"constant", "reflect", "edge", "wrap"};
    const auto name = context.node.attribute<std::string>("mode", "constant");
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        context.refuse(fmt::format("expected mode {}, found '{}'{}", join(names, ", "), printable(name),
                                   did_you_mean(name, names)));
    }
    return static_cast<PadMode>(found - names.begin());
}

// The source index that stands at `index`, which may lie before the axis or behind it.
std::int64_t padded_index(std::int64_t index, std::int64_t size, PadMode mode) {
    if (index >= 0 && index < size) return index;
    switch (mode) {
        case PadMode::edge:
            return std::clamp<std::int64_t>(index, 0, size - 1);
        case PadMode::wrap:
            return ((index % size) + size) % size;
        case PadMode::reflect: {  // the ends are not repeated: period 2 (size - 1)
            if (size == 1) return 0;
            const std::int64_t period = 2 * (size - 1);
            const std::int64_t place = ((index % period) + period) % period;
            return place < size ? place : period - place;
        }
        case PadMode::constant:
            break;
    }
    return IndexMap::outside;
}

// What is added before and after each axis; negative: taken away.
struct Pads {
    std::vector<std::int64_t> before;
    std::vector<std::int64_t> after;
};

Pads pads_of(const NodeContext& context) {
    const std::size_t rank = context.input(0).rank();
    const auto given = integers_from(context, 1, "pads");
    if (!given) context.refuse("expected pads, found none");
    std::vector<std::size_t> axes;
    if (context.has_input(3)) {
        axes = resolve_axes(context, context.integers(3), rank);
    } else {
        for (std::size_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
    }
    if (given->size() != 2 * axes.size()) {
        context.refuse(fmt::format("expected {} pads for {} axes, found {}", 2 * axes.size(), axes.size(),
                                   given->size()));
    }
    Pads pads{std::vector<std::int64_t>(rank), std::vector<std::int64_t>(rank)};
    for (std::size_t i = 0; i < axes.size(); ++i) {
        pads.before[axes[i]] = (*given)[i];
        pads.after[axes[i]] = (*given)[i + axes.size()];
    }
    return pads;
}

std::vector<std::int64_t> padded_axis(const NodeContext& context, std::int64_t size, std::int64_t before,
                                      std::int64_t after, PadMode mode) {
    constexpr std::int64_t limit = std::int64_t{1} << 28;
    if (before > limit || after > limit || before < -limit || after < -limit || size + before + after < 0) {
        context.refuse(fmt::format("cannot pad a dimension of {} by {} and {}", size, before, after));
    }
    if (size == 0 && mode != PadMode::constant && before + after > 0) {
        context.refuse("cannot pad an empty dimension with its own elements");
    }
    std::vector<std::int64_t> indices;
    for (std::int64_t index = -before; index < size + after; ++index) {
        indices.push_back(padded_index(index, size, mode));
    }
    return indices;
}

template <typename Copy>
class Pad : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return Copy::any_order ? keep_first_order(context) : all_row_major(context);
    }

    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        const PadMode mode = pad_mode(context);
        const Pads pads = pads_of(context);
        prepare_fill(context);
        Prepared prepared;
        prepared.outputs = {input};
        std::vector<std::vector<std::int64_t>> indices;
        for (std::size_t axis = 0; axis < input.rank(); ++axis) {
            indices.push_back(
                padded_axis(context, input.shape[axis], pads.before[axis], pads.after[axis], mode));
            prepared.outputs[0].shape[axis] = static_cast<std::int64_t>(indices.back().size());
        }
        copy_ = Copy(map_axes(input, indices), size_of(input.type));
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const bool given = fill_is_input_ && inputs.size() > 2 && inputs[2].present();
        copy_.run(inputs[0].data, outputs[0].data, given ? inputs[2].data : fill_.data());
    }

  private:
    void prepare_fill(const NodeContext& context) {
        fill_ = {};
        fill_is_input_ = context.has_input(2);
        const TensorDescriptor& input = context.input(0);
        if (fill_is_input_ && (context.input(2).type != input.type || context.input(2).elements() != 1)) {
            context.refuse(fmt::format("expected a padding value of one {}, found {} {}", name_of(input.type),
                                       name_of(context.input(2).type), to_string(context.input(2).shape)));
        }
        const auto value = context.node.attribute<float>("value", 0);  // before opset 11, for floats only
        if (input.type == DataType::float32) std::memcpy(fill_.data(), &value, sizeof(value));
        const double wide = value;
        if (input.type == DataType::float64) std::memcpy(fill_.data(), &wide, sizeof(wide));
    }

    Copy copy_;
    std::array<std::byte, 8> fill_ = {};  // one element
    bool fill_is_input_ = false;
};

}  // namespace

void register_pad(KernelRegistry& registry) {
    for (const std::int64_t since : {2, 11, 18}) {  // pads became an input; axes came
        registry.add({.domain = "",
                      .op_type = "Pad",
                      .since = since,
                      .summary = "a border of a constant, mirrored, repeated or wrapped elements",
                      .value_inputs = {1, 3},
                      .make = make_kernel<Pad<RunCopy>>,
                      .make_reference = make_kernel<Pad<ElementCopy>>});
    }
}

}  // namespace qcalib
