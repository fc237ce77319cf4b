#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

// One function a file of kernels, named after it: adds the operators of that family.
void register_batch_normalization(KernelRegistry& registry);
void register_cast(KernelRegistry& registry);
void register_circle_control(KernelRegistry& registry);
void register_circle_convolution(KernelRegistry& registry);
void register_circle_elementwise(KernelRegistry& registry);
void register_circle_pooling(KernelRegistry& registry);
void register_circle_reduce(KernelRegistry& registry);
void register_circle_shape(KernelRegistry& registry);
void register_circle_slice(KernelRegistry& registry);
void register_clip(KernelRegistry& registry);
void register_concat(KernelRegistry& registry);
void register_constant(KernelRegistry& registry);
void register_conv_transpose(KernelRegistry& registry);
void register_convolution(KernelRegistry& registry);
void register_depth_to_space(KernelRegistry& registry);
void register_elementwise_binary(KernelRegistry& registry);
void register_elementwise_unary(KernelRegistry& registry);
void register_gather(KernelRegistry& registry);
void register_gemm(KernelRegistry& registry);
void register_global_pooling(KernelRegistry& registry);
void register_if(KernelRegistry& registry);
void register_loop(KernelRegistry& registry);
void register_matmul(KernelRegistry& registry);
void register_non_max_suppression(KernelRegistry& registry);
void register_nonzero(KernelRegistry& registry);
void register_normalization(KernelRegistry& registry);
void register_pad(KernelRegistry& registry);
void register_pooling(KernelRegistry& registry);
void register_recurrent(KernelRegistry& registry);
void register_reduce(KernelRegistry& registry);
void register_reshape(KernelRegistry& registry);
void register_resize(KernelRegistry& registry);
void register_scatter(KernelRegistry& registry);
void register_slice(KernelRegistry& registry);
void register_softmax(KernelRegistry& registry);
void register_transpose(KernelRegistry& registry);
void register_where(KernelRegistry& registry);

// Calls all of the above.
void register_all_kernels(KernelRegistry& registry);

}  // namespace qcalib
