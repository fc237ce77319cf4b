#include "runtime/fold.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace qcalib {

namespace {

// The tensor with its elements aligned to their size, as kernels may read them.
Tensor with_aligned_elements(const Tensor& tensor) {
    const std::size_t size = size_of(tensor.type());
    if (size == 0 || reinterpret_cast<std::uintptr_t>(tensor.data()) % size == 0) return tensor;
    Tensor aligned(tensor.descriptor());
    std::copy_n(tensor.data(), tensor.descriptor().bytes(), aligned.mutable_view().data);
    return aligned;
}

Tensor with_shape_of(const Tensor& source, const TensorDescriptor& descriptor) {
    Tensor result(descriptor);
    std::copy_n(source.data(), descriptor.bytes(), result.mutable_view().data);
    result.own_elements();
    return result;
}

std::vector<Tensor> run_with(const NodeContext& context, const Kernel& kernel, const Prepared& prepared,
                             std::span<const TensorView> inputs, Workspace& workspace) {
    if (prepared.data_dependent) return kernel.make_outputs(inputs, workspace);
    std::vector<Tensor> outputs;
    std::vector<MutableTensorView> views;
    for (const TensorDescriptor& descriptor : prepared.outputs) outputs.emplace_back(descriptor);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const bool wanted = context.node.outputs[i] != no_value;
        views.push_back(wanted ? outputs[i].mutable_view() : MutableTensorView{});
    }
    kernel.run(inputs, views, workspace);
    return outputs;
}

std::vector<Tensor> run_now(const NodeContext& context, const Kernel& kernel, const Prepared& prepared) {
    std::vector<Tensor> kept;
    kept.reserve(context.input_count());
    std::vector<TensorView> inputs;
    for (const InputInfo& input : context.inputs) {
        if (!input.present()) {
            inputs.emplace_back();
            continue;
        }
        kept.push_back(with_aligned_elements(*input.constant));
        inputs.push_back(kept.back().view());
    }
    const HugeBuffer scratch(prepared.scratch_bytes);
    const std::unique_ptr<KernelState> state = kernel.make_state();
    Workspace workspace{{scratch.data(), prepared.scratch_bytes}, state.get(), 0};
    try {
        return run_with(context, kernel, prepared, inputs, workspace);
    } catch (const Error& error) {
        context.refuse(error.what());
    }
}

Tensor in_row_major(const Tensor& tensor) {
    if (tensor.descriptor().order == MemoryOrder::row_major) return tensor;
    return row_major_copy(tensor.view());
}

}  // namespace

std::vector<Tensor> fold_node(const NodeContext& context, Kernel& kernel) {
    const Prepared prepared = kernel.prepare(context);
    if (!prepared.known_outputs.empty()) return prepared.known_outputs;
    std::vector<Tensor> outputs;
    if (prepared.view_of) {
        outputs = {with_shape_of(*context.inputs[*prepared.view_of].constant, prepared.outputs.front())};
    } else {
        outputs = run_now(context, kernel, prepared);
    }
    for (Tensor& output : outputs) output = in_row_major(output);
    for (std::size_t i = 0; i < prepared.rounding.size(); ++i) {
        outputs[i] = rounded_to(prepared.rounding[i], std::move(outputs[i]));
    }
    return outputs;
}

Tensor row_major_copy(TensorView view) {
    TensorDescriptor descriptor = *view.descriptor;
    descriptor.order = MemoryOrder::row_major;
    Tensor copy(descriptor);
    copy_to_order(view, copy.mutable_view());
    copy.own_elements();
    return copy;
}

Tensor rounded_to(DataType half_type, Tensor tensor) {
    const bool half = half_type == DataType::float16 || half_type == DataType::bfloat16;
    if (!half || tensor.type() != DataType::float32) return tensor;
    Tensor result(tensor.descriptor());
    std::copy_n(tensor.data(), tensor.descriptor().bytes(), result.mutable_view().data);
    round_to(half_type, result.mutable_view().as<float>());
    return result;
}

Tensor to_float64(const Tensor& tensor) {
    TensorDescriptor descriptor = tensor.descriptor();
    descriptor.type = DataType::float64;
    Tensor result(descriptor);
    const std::span<double> target = result.mutable_view().as<double>();
    for (std::size_t i = 0; i < target.size(); ++i) {
        float value = 0;
        std::memcpy(&value, tensor.data() + i * sizeof(float), sizeof(float));
        target[i] = value;
    }
    return result;
}

}  // namespace qcalib
