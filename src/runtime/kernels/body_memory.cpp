#include "runtime/kernels/body_memory.h"

namespace qcalib {

std::vector<MemoryOrder> present_orders(const NodeContext& context) {
    std::vector<MemoryOrder> orders;
    for (const InputInfo& input : context.inputs) orders.push_back(input.descriptor.order);
    return orders;
}

std::vector<const std::byte*> addresses_of(std::span<const TensorView> views) {
    std::vector<const std::byte*> addresses;
    for (const TensorView& view : views) addresses.push_back(view.data);
    return addresses;
}

}  // namespace qcalib
