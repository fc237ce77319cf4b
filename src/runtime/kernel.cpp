#include "runtime/kernel.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

bool has_orders(const TensorDescriptor& descriptor) {
    return descriptor.rank() >= 3 && descriptor.rank() <= 5;
}

}  // namespace

std::vector<std::int64_t> NodeContext::integers(std::size_t i) const {
    if (!has_input(i)) refuse(fmt::format("expected input {}, which is left out", i));
    if (!inputs[i].constant) {
        refuse(fmt::format("its input {} ('{}') must be known before the run, but depends on data", i,
                           printable(graph.values[node.inputs[i]].name)));
    }
    if (inputs[i].constant->type() != DataType::int64 && inputs[i].constant->type() != DataType::int32) {
        refuse(fmt::format("expected an int32 or int64 tensor as input {}, found {}", i,
                           name_of(inputs[i].constant->type())));
    }
    return integers_of(inputs[i].constant->view());
}

std::vector<float> NodeContext::floats(std::size_t i) const {
    if (!has_input(i)) refuse(fmt::format("expected input {}, which is left out", i));
    if (!inputs[i].constant) {
        refuse(fmt::format("its input {} ('{}') must be known before the run, but depends on data", i,
                           printable(graph.values[node.inputs[i]].name)));
    }
    const std::vector<double> numbers = numbers_of(inputs[i].constant->view());
    return {numbers.begin(), numbers.end()};
}

void NodeContext::refuse(std::string_view message) const {
    fail("{}: {}", label(graph, node), message);
}

std::vector<MemoryOrder> Kernel::input_orders(const NodeContext& context) const {
    return all_row_major(context);
}

std::vector<Tensor> Kernel::make_outputs(std::span<const TensorView> /*inputs*/,
                                         Workspace& /*workspace*/) const {
    assert(false);  // only kernels that say data_dependent are asked
    return {};
}

std::vector<MemoryOrder> all_row_major(const NodeContext& context) {
    return std::vector<MemoryOrder>(context.input_count(), MemoryOrder::row_major);
}

std::vector<MemoryOrder> first_channels_last(const NodeContext& context) {
    std::vector<MemoryOrder> orders = all_row_major(context);
    if (context.has_input(0) && has_orders(context.input(0))) orders[0] = MemoryOrder::channels_last;
    return orders;
}

std::vector<MemoryOrder> follow_inputs(const NodeContext& context) {
    std::vector<MemoryOrder> orders = all_row_major(context);
    std::size_t rank = 0;
    for (const InputInfo& input : context.inputs) rank = std::max(rank, input.descriptor.rank());
    bool any_channels_last = false;
    for (const InputInfo& input : context.inputs) {
        if (!input.present() || input.constant) continue;
        const TensorDescriptor& descriptor = input.descriptor;
        if (descriptor.rank() != rank && descriptor.elements() != 1) return orders;
        if (descriptor.order == MemoryOrder::channels_last && !same_in_both_orders(descriptor.shape)) {
            any_channels_last = true;
        }
    }
    if (!any_channels_last) return orders;
    for (std::size_t i = 0; i < orders.size(); ++i) {
        if (context.has_input(i) && context.input(i).rank() == rank) orders[i] = MemoryOrder::channels_last;
    }
    return orders;
}

}  // namespace qcalib
