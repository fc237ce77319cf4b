#include "runtime/onednn_parts.h"

namespace qcalib::onednn {

namespace {

using Dims = dnnl::memory::dims;

// The last `rank` numbers, with `less` taken off each: oneDNN counts a dilation from 0.
Dims spatial(const Extents& extents, std::size_t rank, std::int64_t less = 0) {
    Dims dims(extents.end() - static_cast<std::ptrdiff_t>(rank), extents.end());
    for (auto& number : dims) number -= less;
    return dims;
}

// How far apart the weights lie along their dimensions.
Dims weight_steps(const ConvolutionShape& shape) {
    if (!shape.weight_strides.empty()) return shape.weight_strides;
    Dims steps(shape.weights.size(), 1);
    for (std::size_t i = steps.size(); i-- > 1;) steps[i - 1] = steps[i] * shape.weights[i];
    return steps;
}

// The weights as oneDNN names their dimensions, [groups,] output channels, input channels, kernel, where they
// lie.
MemoryDescriptor weights_in_memory(const ConvolutionShape& shape) {
    const std::int64_t groups = shape.groups;
    const std::int64_t outer = shape.weights[0] / groups;  // of one group
    const std::int64_t inner = shape.weights[1];
    const Dims kernel = spatial(shape.window.kernel, described_rank(shape.window));
    const Dims steps = weight_steps(shape);
    Dims kernel_strides(steps.begin() + 2, steps.end());
    if (kernel_strides.size() < kernel.size()) kernel_strides.insert(kernel_strides.begin(), 1);

    Dims dims;
    Dims strides;
    if (groups > 1) {
        dims.push_back(groups);
        strides.push_back(outer * steps[0]);
    }
    if (shape.transposed) {
        dims.insert(dims.end(), {inner, outer});
        strides.insert(strides.end(), {steps[1], steps[0]});
    } else {
        dims.insert(dims.end(), {outer, inner});
        strides.insert(strides.end(), {steps[0], steps[1]});
    }
    dims.insert(dims.end(), kernel.begin(), kernel.end());
    strides.insert(strides.end(), kernel_strides.begin(), kernel_strides.end());
    return strided(dims, strides);
}

void append(dnnl::post_ops& after, dnnl::algorithm algorithm, float a, float b) {
#if DNNL_VERSION_MAJOR >= 3
    after.append_eltwise(algorithm, a, b);
#else
    after.append_eltwise(1.0F, algorithm, a, b);
#endif
}

dnnl::primitive_attr attributes_of(const ConvolutionShape& shape) {
    dnnl::post_ops after;
    for (const Activation& activation : shape.activations) {
        switch (activation.kind) {
            case Activation::Kind::leaky_relu:
                append(after, dnnl::algorithm::eltwise_relu, activation.a, 0);
                break;
            case Activation::Kind::clip:
                append(after, dnnl::algorithm::eltwise_clip, activation.a, activation.b);
                break;
            case Activation::Kind::hard_swish:
#if DNNL_VERSION_MAJOR >= 3
                append(after, dnnl::algorithm::eltwise_hardswish, 1.0F / 6, 0.5F);
#else
                append(after, dnnl::algorithm::eltwise_hardswish, 0, 0);
#endif
                break;
            case Activation::Kind::linear:
                append(after, dnnl::algorithm::eltwise_linear, activation.a, activation.b);
                break;
        }
    }
    dnnl::primitive_attr attributes = user_scratchpad();
    attributes.set_post_ops(after);
    return attributes;
}

#if DNNL_VERSION_MAJOR >= 3
template <typename Operation>
typename Operation::primitive_desc choose(dnnl::algorithm algorithm, const ConvolutionShape& shape,
                                          const MemoryDescriptor& weights, const MemoryDescriptor& bias,
                                          const dnnl::engine& engine) {
    const Window& window = shape.window;
    const std::size_t rank = described_rank(window);
    return {engine,
            dnnl::prop_kind::forward_inference,
            algorithm,
            plain(shape.input),
            weights,
            bias,
            plain(shape.output),
            spatial(window.stride, rank),
            spatial(window.dilation, rank, 1),
            spatial(window.pad_begin, rank),
            spatial(window.pad_end, rank),
            attributes_of(shape),
            true};
}
#else
template <typename Operation>
typename Operation::primitive_desc choose(dnnl::algorithm algorithm, const ConvolutionShape& shape,
                                          const MemoryDescriptor& weights, const MemoryDescriptor& bias,
                                          const dnnl::engine& engine) {
    const Window& window = shape.window;
    const std::size_t rank = described_rank(window);
    const typename Operation::desc operation(dnnl::prop_kind::forward_inference, algorithm,
                                             plain(shape.input), weights, bias, plain(shape.output),
                                             spatial(window.stride, rank), spatial(window.dilation, rank, 1),
                                             spatial(window.pad_begin, rank), spatial(window.pad_end, rank));
    return {operation, attributes_of(shape), engine, true};
}
#endif

// Weights in the order the library likes best; where that leads to its plain loops, in the order they lie in.
template <typename Operation>
std::unique_ptr<Primitive::Parts> make_parts(dnnl::algorithm algorithm, const ConvolutionShape& shape,
                                             const Weights& weights) {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const MemoryDescriptor unpacked = weights_in_memory(shape);
    const MemoryDescriptor bias = shape.bias ? plain(Dims{shape.output.shape[1]}) : MemoryDescriptor();
#if DNNL_VERSION_MAJOR >= 3
    const Dims dims = unpacked.get_dims();
#else
    const Dims dims = unpacked.dims();
#endif
    for (const MemoryDescriptor& order : {any_order(dims), unpacked}) {
        const auto chosen = choose<Operation>(algorithm, shape, order, bias, engine);
        if (!chosen || is_slow(chosen.impl_info_str())) continue;
        auto parts = parts_of<Operation>(chosen, engine);
        parts->weights = chosen.weights_desc();
        parts->bias = bias;
        bind_weights(*parts, unpacked, weights);
        return parts;
    }
    return nullptr;
}

}  // namespace

std::unique_ptr<Primitive> make_convolution(const ConvolutionShape& shape, const Weights& weights) {
    return attempt([&] {
        return shape.transposed ? make_parts<dnnl::deconvolution_forward>(
                                      dnnl::algorithm::deconvolution_direct, shape, weights)
                                : make_parts<dnnl::convolution_forward>(dnnl::algorithm::convolution_direct,
                                                                        shape, weights);
    });
}

}  // namespace qcalib::onednn
