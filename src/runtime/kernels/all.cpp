#include "runtime/kernels/all.h"

namespace qcalib {

void register_batch_normalization(KernelRegistry& registry);
void register_cast(KernelRegistry& registry);
void register_concat(KernelRegistry& registry);
void register_constant(KernelRegistry& registry);
void register_conv_transpose(KernelRegistry& registry);
void register_convolution(KernelRegistry& registry);
void register_depth_to_space(KernelRegistry& registry);
void register_elementwise_binary(KernelRegistry& registry);
void register_elementwise_unary(KernelRegistry& registry);
void register_gather(KernelRegistry& registry);
void register_gemm(KernelRegistry& registry);
void register_matmul(KernelRegistry& registry);
void register_normalization(KernelRegistry& registry);
void register_pad(KernelRegistry& registry);
void register_pooling(KernelRegistry& registry);
void register_reduce(KernelRegistry& registry);
void register_reshape(KernelRegistry& registry);
void register_resize(KernelRegistry& registry);
void register_slice(KernelRegistry& registry);
void register_softmax(KernelRegistry& registry);
void register_transpose(KernelRegistry& registry);

void register_all_kernels(KernelRegistry& registry) {
    register_batch_normalization(registry);
    register_cast(registry);
    register_concat(registry);
    register_constant(registry);
    register_conv_transpose(registry);
    register_convolution(registry);
    register_depth_to_space(registry);
    register_elementwise_binary(registry);
    register_elementwise_unary(registry);
    register_gather(registry);
    register_gemm(registry);
    register_matmul(registry);
    register_normalization(registry);
    register_pad(registry);
    register_pooling(registry);
    register_reduce(registry);
    register_reshape(registry);
    register_resize(registry);
    register_slice(registry);
    register_softmax(registry);
    register_transpose(registry);
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
