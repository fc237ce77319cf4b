#include <limits>
#include <string>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/elementwise_unary_rows.h"

namespace qcalib {

namespace {

constexpr std::int64_t bounds_are_inputs_since = 11;

template <typename T>
struct Bounds {
    T low = std::numeric_limits<T>::lowest();
    T high = std::numeric_limits<T>::max();
};

template <typename T>
Bounds<T> given_bounds(std::span<const TensorView> inputs, Bounds<T> bounds) {
    if (inputs.size() > 1 && inputs[1].present()) bounds.low = inputs[1].as<T>()[0];
    if (inputs.size() > 2 && inputs[2].present()) bounds.high = inputs[2].as<T>()[0];
    return bounds;
}

// min(max(x, low), high): NaN stays, and a low above high gives high.
template <typename T>
void clip_plain(std::span<const TensorView> inputs, MutableTensorView output,
                const UnaryParameters& attributes) {
    Bounds<T> bounds;
    if constexpr (std::is_floating_point_v<T>)
        bounds = {static_cast<T>(attributes.a), static_cast<T>(attributes.b)};
    bounds = given_bounds(inputs, bounds);
    const std::span<const T> in = inputs[0].as<T>();
    const std::span<T> out = output.as<T>();
    for (std::size_t i = 0; i < in.size(); ++i) {
        const T raised = in[i] < bounds.low ? bounds.low : in[i];
        out[i] = raised > bounds.high ? bounds.high : raised;
    }
}

using ClipFunction = void (*)(std::span<const TensorView>, MutableTensorView, const UnaryParameters&);

ClipFunction clip_function(DataType type) {
    switch (type) {
        case DataType::float32:
            return &clip_plain<float>;
        case DataType::float64:
            return &clip_plain<double>;
        case DataType::int8:
            return &clip_plain<std::int8_t>;
        case DataType::uint8:
            return &clip_plain<std::uint8_t>;
        case DataType::int16:
            return &clip_plain<std::int16_t>;
        case DataType::uint16:
            return &clip_plain<std::uint16_t>;
        case DataType::int32:
            return &clip_plain<std::int32_t>;
        case DataType::uint32:
            return &clip_plain<std::uint32_t>;
        case DataType::int64:
            return &clip_plain<std::int64_t>;
        case DataType::uint64:
            return &clip_plain<std::uint64_t>;
        default:
            return nullptr;
    }
}

void check_bound(const NodeContext& context, std::size_t input, const char* name) {
    if (!context.has_input(input)) return;
    const TensorDescriptor& bound = context.input(input);
    if (bound.type != context.input(0).type || bound.elements() != 1) {
        context.refuse(fmt::format("expected one {} as {}, found {} {}", name_of(context.input(0).type), name,
                                   name_of(bound.type), to_string(bound.shape)));
    }
}

class ClipKernel : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        if (!context.has_input(0)) context.refuse("expected one input, found none");
        const TensorDescriptor& input = context.input(0);
        plain_ = clip_function(input.type);
        if (plain_ == nullptr) {
            context.refuse(fmt::format("its input has a type it does not take: {}", name_of(input.type)));
        }
        attributes_ = {std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()};
        if (context.node.opset < bounds_are_inputs_since) {
            attributes_.a = context.node.attribute<float>("min", std::numeric_limits<float>::lowest());
            attributes_.b = context.node.attribute<float>("max", std::numeric_limits<float>::max());
        }
        check_bound(context, 1, "min");
        check_bound(context, 2, "max");
        Prepared prepared;
        prepared.outputs = {input};
        prepared.in_place = {0};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        plain_(inputs, outputs[0], attributes_);
    }

  protected:
    ClipFunction plain_ = nullptr;
    UnaryParameters attributes_;  // the bounds where no input gives them; float types only
};

class FastClipKernel : public ClipKernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return keep_first_order(context);
    }

    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = ClipKernel::prepare(context);
        if (context.input(0).type == DataType::float32) fast_ = fast_unary_row(UnaryFunction::clip);
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (fast_ == nullptr) return ClipKernel::run(inputs, outputs, workspace);
        const Bounds<float> attributes{static_cast<float>(attributes_.a), static_cast<float>(attributes_.b)};
        const Bounds<float> bounds = given_bounds(inputs, attributes);
        const std::span<const float> in = inputs[0].as<float>();
        fast_(in.data(), outputs[0].as<float>().data(), in.size(), {bounds.low, bounds.high});
    }

  private:
    UnaryRow fast_ = nullptr;
};

}  // namespace

void register_clip(KernelRegistry& registry) {
    for (const std::int64_t since : {std::int64_t{6}, bounds_are_inputs_since}) {
        OperatorEntry entry;
        entry.op_type = "Clip";
        entry.since = since;
        entry.summary = since < bounds_are_inputs_since ? "x within [min, max], given as attributes"
                                                        : "x within [min, max], given as inputs";
        entry.make = make_kernel<FastClipKernel>;
        entry.make_reference = make_kernel<ClipKernel>;
        registry.add(std::move(entry));
    }
}

}  // namespace qcalib
