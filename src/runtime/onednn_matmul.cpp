#include <utility>
#include <vector>

#include "runtime/onednn_parts.h"

namespace qcalib::onednn {

namespace {

using Dims = dnnl::memory::dims;

// The operand as a product sees it, lying in memory as it does.
MemoryDescriptor operand(const Shape& shape, bool transposed) {
    Dims dims = shape;
    Dims strides(dims.size(), 1);
    for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
    if (transposed) {
        std::swap(dims[dims.size() - 2], dims.back());
        std::swap(strides[strides.size() - 2], strides.back());
    }
    return strided(dims, strides);
}

#if DNNL_VERSION_MAJOR >= 3
dnnl::matmul::primitive_desc choose(const MemoryDescriptor& first, const MemoryDescriptor& second,
                                    const MemoryDescriptor& bias, const MemoryDescriptor& output,
                                    const dnnl::engine& engine) {
    return {engine, first, second, bias, output, user_scratchpad(), true};
}
#else
dnnl::matmul::primitive_desc choose(const MemoryDescriptor& first, const MemoryDescriptor& second,
                                    const MemoryDescriptor& bias, const MemoryDescriptor& output,
                                    const dnnl::engine& engine) {
    const dnnl::matmul::desc operation(first, second, bias, output);
    return {operation, user_scratchpad(), engine, true};
}
#endif

}  // namespace

std::unique_ptr<Primitive> make_matmul(const MatMulShape& shape, const Weights& weights) {
    return attempt([&]() -> std::unique_ptr<Primitive::Parts> {
        const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
        const MemoryDescriptor first = operand(shape.first, shape.first_transposed);
        const MemoryDescriptor second = operand(shape.second, shape.second_transposed);
        Dims bias_dims(shape.output.size(), 1);
        bias_dims.back() = shape.output.back();
        const MemoryDescriptor bias = shape.bias ? plain(bias_dims) : MemoryDescriptor();

        // Only a constant is worth packing.
        std::vector<MemoryDescriptor> orders;
        Dims second_dims = shape.second;
        if (shape.second_transposed) std::swap(second_dims[second_dims.size() - 2], second_dims.back());
        if (weights.info.constant) orders.push_back(any_order(second_dims));
        orders.push_back(second);
        for (const MemoryDescriptor& order : orders) {
            const auto chosen = choose(first, order, bias, plain(Dims(shape.output)), engine);
            if (!chosen || is_slow(chosen.impl_info_str())) continue;
            auto parts = parts_of<dnnl::matmul>(chosen, engine);
            parts->weights = chosen.weights_desc();
            parts->bias = bias;
            bind_weights(*parts, second, weights);
            return parts;
        }
        return nullptr;
    });
}

}  // namespace qcalib::onednn
