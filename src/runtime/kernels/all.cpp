#include "runtime/kernels/all.h"

namespace qcalib {

void register_all_kernels(KernelRegistry& registry) {
    register_batch_normalization(registry);
    register_cast(registry);
    register_circle_control(registry);
    register_circle_convolution(registry);
    register_circle_elementwise(registry);
    register_circle_pooling(registry);
    register_circle_reduce(registry);
    register_circle_shape(registry);
    register_circle_slice(registry);
    register_clip(registry);
    register_concat(registry);
    register_constant(registry);
    register_conv_transpose(registry);
    register_convolution(registry);
    register_depth_to_space(registry);
    register_elementwise_binary(registry);
    register_elementwise_unary(registry);
    register_gather(registry);
    register_gemm(registry);
    register_global_pooling(registry);
    register_if(registry);
    register_loop(registry);
    register_matmul(registry);
    register_non_max_suppression(registry);
    register_nonzero(registry);
    register_normalization(registry);
    register_pad(registry);
    register_pooling(registry);
    register_recurrent(registry);
    register_reduce(registry);
    register_reshape(registry);
    register_resize(registry);
    register_scatter(registry);
    register_slice(registry);
    register_softmax(registry);
    register_transpose(registry);
    register_where(registry);
}

const KernelRegistry& builtin_kernels() {
    static const KernelRegistry registry = [] {
        KernelRegistry all;
        register_all_kernels(all);
        return all;
    }();
    return registry;
}

}  // namespace qcalib
