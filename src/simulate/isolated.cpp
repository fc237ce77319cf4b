#include "simulate/isolated.h"

#include <algorithm>

#include "runtime/kernel_registry.h"
#include "simulate/grid_walk.h"

namespace qcalib {

namespace {

std::vector<Dimension> dimensions_of(const Shape& shape, const Value& value) {
    std::vector<Dimension> dimensions(shape.size());
    if (!value.declared_shape || value.declared_shape->size() != shape.size()) return dimensions;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if ((*value.declared_shape)[i].size == shape[i]) dimensions[i].size = shape[i];
    }
    return dimensions;
}

Tensor row_major(const Tensor& tensor) {
    if (tensor.descriptor().order == MemoryOrder::row_major) return tensor;
    TensorDescriptor descriptor = tensor.descriptor();
    descriptor.order = MemoryOrder::row_major;
    Tensor copy(std::move(descriptor));
    copy_to_order(tensor.view(), copy.mutable_view());
    return copy;
}

}  // namespace

GraphBehind graph_behind(const Graph& graph, ValueId value,
                         const std::function<const Tensor*(ValueId)>& constant,
                         const std::function<const TensorDescriptor*(ValueId)>& descriptor) {
    auto part = std::make_shared<Graph>(graph);
    part->nodes.clear();
    part->inputs.clear();
    part->outputs.clear();
    for (Value& one : part->values) one.producer = no_node;
    std::vector<bool> behind(graph.values.size());
    std::vector<bool> made(graph.values.size());
    behind[value] = true;
    for (const Node& node : graph.nodes) {
        const bool hangs = std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ValueId input) { return input != no_value && behind[input]; });
        if (!hangs) continue;
        for (const ValueId output : node.outputs) {
            if (output == no_value) continue;
            behind[output] = made[output] = true;
            part->values[output].producer = static_cast<NodeIndex>(part->nodes.size());
        }
        part->nodes.push_back(node);
    }
    std::vector<bool> known(graph.values.size());
    for (const Node& node : part->nodes) {
        for (const ValueId input : node.inputs) {
            if (input == no_value || made[input] || known[input]) continue;
            known[input] = true;
            Value& outside = part->values[input];
            if (outside.initializer) continue;
            if (const Tensor* found = constant(input)) {
                outside.initializer = *found;
                continue;
            }
            if (const TensorDescriptor* found = descriptor(input)) {
                if (outside.declared_type == DataType::undefined) outside.declared_type = found->type;
                outside.declared_shape = dimensions_of(found->shape, outside);
            }
            part->inputs.push_back(input);
        }
    }
    for (const ValueId output : graph.outputs) {
        if (made[output]) part->outputs.push_back(output);
    }
    std::vector<ValueId> inputs = part->inputs;
    return {std::move(part), std::move(inputs)};
}

IsolatedTask::IsolatedTask(Simulator& simulator, std::span<const ValueId> values,
                           std::span<const Quantization> quantizations, std::span<const Carry> carries)
    : simulator_(simulator),
      values_(values),
      quantizations_(quantizations),
      carries_(carries),
      outputs_(simulator.model().graph()->values.size()),
      errors_(values.size()) {
    const Graph& graph = *simulator.model().graph();
    for (const ValueId output : graph.outputs) outputs_[output] = true;
    whole_ = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                         [](const Node& node) { return !node.bodies.empty(); });
    for (IsolatedErrors& errors : errors_) errors.outputs.resize(graph.outputs.size());
}

void IsolatedTask::prepare(const SampleStep& step) {
    simulator_.program(nullptr).plan(step.inputs);
}

std::uint64_t IsolatedTask::worker_bytes(const SampleStep& step) {
    const std::shared_ptr<const Plan> plan = simulator_.program(nullptr).plan(step.inputs);
    std::uint64_t bytes = 2 * (plan->arena_bytes() + plan->scratch_bytes());
    for (ValueId value = 0; value < outputs_.size(); ++value) {
        const TensorDescriptor* descriptor = plan->descriptor(value);
        if (descriptor != nullptr) bytes += descriptor->bytes();
    }
    return bytes;
}

// The graphs behind the values, made when the first sample has shown what there is.
void IsolatedTask::make_parts(const Capture& reference) {
    const SimulatedModel& model = simulator_.model();
    const Program& whole = simulator_.program(nullptr);
    const auto constant = [&](ValueId value) { return whole.constant(value); };
    const auto descriptor = [&](ValueId value) -> const TensorDescriptor* {
        const std::span<const Tensor> made = reference.of(value);
        return made.empty() ? nullptr : &made.back().descriptor();
    };
    for (std::size_t i = 0; i < values_.size(); ++i) {
        GraphBehind behind = graph_behind(*model.graph(), values_[i], constant, descriptor);
        Part part;
        part.inputs = std::move(behind.inputs);
        if (!behind.graph->outputs.empty()) {
            ProgramOptions options = model.options();
            options.replaced = quantizations_[i].replaced;
            part.program = std::make_unique<Program>(behind.graph, builtin_kernels(),
                                                     std::vector<Tap*>{&simulator_.tap()}, options);
        }
        parts_.push_back(std::move(part));
    }
}

std::unique_ptr<StepResult> IsolatedTask::run(SampleStep& step) {
    std::unique_ptr<Worker>& local = workers_.local();
    if (local == nullptr) local = std::make_unique<Worker>(outputs_.size(), carries_);
    Worker& worker = *local;
    worker.carried.feed(0, step, step.inputs);
    worker.reference.begin(whole_ ? &outputs_ : nullptr);
    simulator_.run(nullptr, &worker.reference, step.inputs, step.number, worker.float_frame);
    worker.carried.keep(0, worker.reference, simulator_);
    if (!whole_) std::call_once(parts_made_, [&] { make_parts(worker.reference); });
    auto result = std::make_unique<Result>();
    for (std::size_t i = 0; i < values_.size(); ++i) {
        worker.capture.begin(&outputs_);
        if (whole_)
            simulator_.run(&quantizations_[i], &worker.capture, step.inputs, step.number, worker.frame);
        else if (parts_[i].program != nullptr)
            run_part(worker, parts_[i], quantizations_[i], step);
        result->values.push_back(compare_outputs(worker, values_[i], quantizations_[i]));
    }
    return result;
}

void IsolatedTask::run_part(Worker& worker, const Part& part, const Quantization& quantization,
                            const SampleStep& step) {
    std::vector<Tensor> inputs;
    for (const ValueId input : part.inputs) inputs.push_back(row_major(worker.reference.of(input).back()));
    const std::shared_ptr<const Plan> plan = part.program->plan(inputs);
    simulator_.tap().set(&quantization, &worker.capture);
    worker.frame.run(plan, inputs, step.number);
    simulator_.tap().set(nullptr, nullptr);
}

IsolatedErrors IsolatedTask::compare_outputs(const Worker& worker, ValueId value,
                                             const Quantization& quantization) const {
    const Graph& graph = *simulator_.model().graph();
    IsolatedErrors errors;
    errors.outputs.resize(graph.outputs.size());
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
        const ValueId output = graph.outputs[i];
        const std::span<const Tensor> before = worker.reference.of(output);
        if (before.empty() || before.back().type() != DataType::float32) continue;
        Tensor after = before.back();  // where the output does not hang on the value
        const std::span<const Tensor> made = worker.capture.of(output);
        if (output == value && !whole_ && quantization.activations[value] != nullptr) {
            after = copy_of(before.back());
            quantization.activations[value]->apply(after.mutable_view());
        } else if (!made.empty()) {
            after = made.back();
        }
        if (after.shape() == before.back().shape())
            errors.outputs[i].add(compare(before.back().view(), after.view()));
    }
    return errors;
}

void IsolatedTask::take(std::unique_ptr<StepResult> result) {
    const auto& one = static_cast<const Result&>(*result);
    for (std::size_t i = 0; i < errors_.size(); ++i) {
        for (std::size_t k = 0; k < errors_[i].outputs.size(); ++k)
            errors_[i].outputs[k].add(one.values[i].outputs[k]);
    }
}

}  // namespace qcalib
