#include "runtime/kernels/convolution.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "runtime/fusion.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/channel_loops.h"
#include "runtime/kernels/convolution_loops.h"

namespace qcalib {

std::vector<std::int64_t> kernel_extents(const NodeContext& context) {
    const Shape& weights = context.input(1).shape;
    std::vector<std::int64_t> kernel(weights.begin() + 2, weights.end());
    const auto declared = context.node.attribute("kernel_shape", kernel);
    if (declared != kernel) {
        context.refuse(fmt::format("attribute 'kernel_shape' is {}, the weights have shape {}",
                                   to_string(declared), to_string(weights)));
    }
    for (const std::int64_t extent : kernel) {
        if (extent < 1)
            context.refuse(fmt::format("weights of shape {} have no elements", to_string(weights)));
    }
    return kernel;
}

void require_weights(const NodeContext& context) {
    if (!context.has_input(0) || !context.has_input(1)) context.refuse("inputs 0 and 1 should be there");
    require_one_float_type(context);
    require_spatial(context, 0);
    if (context.input(1).rank() != context.input(0).rank()) {
        context.refuse(fmt::format("weights of shape {} should have the rank of the input, whose shape is {}",
                                   to_string(context.input(1).shape), to_string(context.input(0).shape)));
    }
}

void require_bias(const NodeContext& context, std::int64_t channels) {
    if (!context.has_input(2) || context.input(2).shape == Shape{channels}) return;
    context.refuse(fmt::format("the bias should have shape [{}], one number per output channel, found {}",
                               channels, to_string(context.input(2).shape)));
}

std::vector<MemoryOrder> ConvolutionKernel::input_orders(const NodeContext& context) const {
    return fast_ ? first_channels_last(context) : all_row_major(context);
}

Prepared ConvolutionKernel::prepare(const NodeContext& context) {
    shape_ = read_(context);
    primitive_.reset();
    left_ = shape_.activations;
    Prepared prepared;
    prepared.outputs = {shape_.output};
    const bool empty = shape_.output.elements() == 0 || shape_.input.elements() == 0;
    if (fast_ && !empty && shape_.input.type == DataType::float32) {
        // oneDNN's transposed convolution adds a bias in a slow loop.
        onednn::ConvolutionShape without_bias = shape_;
        without_bias.bias = shape_.bias && !shape_.transposed;
        primitive_ = onednn::make_convolution(without_bias, {context.inputs[1], context.weights});
        if (primitive_ != nullptr) {
            left_.clear();
        } else if (!shape_.activations.empty()) {
            without_bias.activations.clear();
            primitive_ = onednn::make_convolution(without_bias, {context.inputs[1], context.weights});
        }
    }
    if (primitive_ == nullptr) {  // one plane of sums
        const Extents extents = spatial_extents(shape_.output.shape);
        prepared.scratch_bytes = static_cast<std::size_t>(element_count(extents)) * sizeof(double);
        if (!shape_.weight_strides.empty()) {  // and the weights in order
            prepared.scratch_bytes +=
                static_cast<std::size_t>(element_count(shape_.weights)) * sizeof(double);
        }
        return prepared;
    }
    prepared.scratch_bytes = primitive_->scratch_bytes();
    if (adds_bias()) {
        const auto channels = static_cast<std::size_t>(shape_.output.shape[1]);
        prepared.scratch_bytes = std::max(prepared.scratch_bytes, bias_scratch(channels) * sizeof(float));
    }
    if (primitive_->has_packed_weights()) prepared.packed = {1};
    return prepared;
}

std::unique_ptr<KernelState> ConvolutionKernel::make_state() const {
    return primitive_ == nullptr ? nullptr : primitive_->make_state();
}

namespace {

// The weights as the loops want them: as they lie, or put into row-major order at `target`.
template <typename T>
const T* ordered_weights(const onednn::ConvolutionShape& shape, const T* weights, T* target) {
    if (shape.weight_strides.empty()) return weights;
    std::vector<std::int64_t> index(shape.weights.size());
    const std::int64_t count = element_count(shape.weights);
    for (std::int64_t i = 0; i < count; ++i) {
        target[i] = weights[std::inner_product(index.begin(), index.end(), shape.weight_strides.begin(),
                                               std::int64_t{0})];
        for (std::size_t axis = index.size(); axis-- > 0;) {
            if (++index[axis] < shape.weights[axis]) break;
            index[axis] = 0;
        }
    }
    return target;
}

template <typename T>
void run_loops(const onednn::ConvolutionShape& shape, std::span<const TensorView> inputs,
               MutableTensorView output, std::span<std::byte> scratch) {
    const T* bias = shape.bias ? inputs[2].as<T>().data() : nullptr;
    auto* sums = reinterpret_cast<double*>(scratch.data());
    double* behind_sums = sums + element_count(spatial_extents(shape.output.shape));
    const T* weights = ordered_weights(shape, inputs[1].as<T>().data(), reinterpret_cast<T*>(behind_sums));
    convolve<T>(shape, inputs[0].as<T>().data(), weights, bias, output.as<T>().data(), sums);
}

onednn::ConvolutionShape read_convolution(const NodeContext& context) {
    require_weights(context);
    const TensorDescriptor& input = context.input(0);
    const Shape& weights = context.input(1).shape;
    onednn::ConvolutionShape shape;
    shape.input = input;
    shape.weights = weights;
    shape.groups = context.node.attribute<std::int64_t>("group", 1);
    const std::int64_t channels = input.shape[1];
    if (shape.groups < 1 || weights[1] < 1 || weights[0] < 1 || weights[0] % shape.groups != 0 ||
        channels % shape.groups != 0 || channels / shape.groups != weights[1]) {
        context.refuse(fmt::format("{} input channels in {} groups do not fit weights of shape {}", channels,
                                   shape.groups, to_string(weights)));
    }
    require_bias(context, weights[0]);
    shape.bias = context.has_input(2);
    shape.window = read_window(context, kernel_extents(context));
    const Extents extents = spatial_extents(input.shape);
    apply_auto_pad(read_auto_pad(context), extents, shape.window);
    const Extents output = output_extents(context, shape.window, extents, false);
    shape.output = {input.type, shape_of(input.shape[0], weights[0], output, shape.window.rank), input.order};
    if (context.node.domain == fused_domain) {
        shape.activations =
            parse_activations(context.node.attribute("activations", std::vector<std::string>()));
        shape.weight_strides = context.node.attribute("weight_strides", std::vector<std::int64_t>());
    }
    return shape;
}

}  // namespace

void ConvolutionKernel::run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
                            Workspace& workspace) const {
    if (primitive_ != nullptr) {
        primitive_->execute({.source = inputs[0].data,
                             .weights = inputs[1].data,
                             .bias = shape_.bias ? inputs[2].data : nullptr,
                             .target = outputs[0].data},
                            workspace);
        if (adds_bias()) {
            add_bias(inputs[2].as<float>().data(), outputs[0],
                     reinterpret_cast<float*>(workspace.scratch.data()));
        }
    } else if (shape_.input.type == DataType::float64) {
        run_loops<double>(shape_, inputs, outputs[0], workspace.scratch);
    } else {
        run_loops<float>(shape_, inputs, outputs[0], workspace.scratch);
    }
    if (!left_.empty()) activate(left_, outputs[0].as<float>());
}

void register_convolution(KernelRegistry& registry) {
    OperatorEntry entry;
    entry.op_type = "Conv";
    entry.since = 1;
    entry.summary = "convolution over 1 to 3 spatial dimensions, with groups, dilations and bias";
    entry.make = []() -> std::unique_ptr<Kernel> {
        return std::make_unique<ConvolutionKernel>(read_convolution, true);
    };
    entry.make_reference = []() -> std::unique_ptr<Kernel> {
        return std::make_unique<ConvolutionKernel>(read_convolution, false);
    };
    registry.add(entry);
    entry.domain = fused_domain;
    entry.summary = "a convolution and the activations behind it, where nobody wants the tensors between";
    registry.add(std::move(entry));
}

}  // namespace qcalib
