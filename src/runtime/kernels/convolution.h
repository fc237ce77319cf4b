#pragma once

#include <memory>

#include "runtime/kernel.h"
#include "runtime/kernel_registry.h"
#include "runtime/onednn.h"

namespace qcalib {

// What Conv and ConvTranspose have in common: they differ in how a node is read.
class ConvolutionKernel : public Kernel {
  public:
    // The shape, or an Error naming the node.
    using Reader = onednn::ConvolutionShape (*)(const NodeContext&);

    // `fast`: oneDNN in channels-last order where it can, else plain loops in row-major order.
    ConvolutionKernel(Reader read, bool fast) : read_(read), fast_(fast) {}

    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override;
    Prepared prepare(const NodeContext& context) override;
    std::unique_ptr<KernelState> make_state() const override;
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override;

  private:
    // True where the bias is added after the primitive.
    bool adds_bias() const { return shape_.bias && shape_.transposed; }

    Reader read_;
    bool fast_;
    onednn::ConvolutionShape shape_;
    std::unique_ptr<onednn::Primitive> primitive_;  // none: plain loops
    std::vector<Activation> left_;                  // that the primitive does not do
};

// The kernel's extents from the weights' shape; refuses an attribute kernel_shape that says otherwise.
std::vector<std::int64_t> kernel_extents(const NodeContext& context);
// Refuses weights whose rank is not the input's, or that are not there, and a bias that is not [channels].
void require_weights(const NodeContext& context);
void require_bias(const NodeContext& context, std::int64_t channels);

}  // namespace qcalib
