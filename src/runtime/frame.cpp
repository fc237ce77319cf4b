#include "runtime/frame.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "runtime/guards.h"

namespace qcalib {

void Frame::run(const std::shared_ptr<const Plan>& plan, std::span<const Tensor> inputs,
                std::uint64_t sample) {
    const DenormalGuard denormals;
    const SingleThreadGuard single_thread;
    if (plan != plan_) bind(plan);
    copy_inputs(inputs);
    observe(plan_->observed_inputs_, sample);
    std::size_t current = 0;
    try {
        for (; current < plan_->steps_.size(); ++current) {
            execute(current);
            observe(plan_->steps_[current].observed, sample);
        }
    } catch (const Error& error) {
        const Node& node = plan_->graph_->nodes[plan_->steps_[current].node];
        const ValueId output = node.outputs.empty() ? no_value : node.outputs.front();
        fail("{} (tensor '{}'): {}", label(*plan_->graph_, node),
             output == no_value ? "" : printable(plan_->graph_->values[output].name), error.what());
    }
}

void Frame::bind(const std::shared_ptr<const Plan>& plan) {
    if (arena_.size() < plan->arena_bytes()) arena_ = HugeBuffer(plan->arena_bytes());
    if (scratch_.size() < plan->scratch_bytes()) scratch_ = HugeBuffer(plan->scratch_bytes());
    plan_ = plan;
    bound_.clear();
    bound_.resize(plan->steps().size());
    for (std::size_t i = 0; i < bound_.size(); ++i) {
        const Step& step = plan->steps()[i];
        BoundStep& bound = bound_[i];
        for (const std::int32_t index : step.inputs) {
            if (index < 0) {
                bound.inputs.emplace_back();
            } else {
                const PlanTensor& tensor = plan->tensors()[static_cast<std::size_t>(index)];
                bound.inputs.push_back({&tensor.descriptor, address(tensor)});
            }
        }
        for (const std::int32_t index : step.outputs) {
            if (index < 0) {
                bound.outputs.emplace_back();
            } else {
                const PlanTensor& tensor = plan->tensors()[static_cast<std::size_t>(index)];
                bound.outputs.push_back({&tensor.descriptor, address(tensor)});
            }
        }
        if (step.kernel) bound.state = step.kernel->make_state();
        bound.workspace = {{scratch_.data(), step.scratch_bytes}, bound.state.get()};
    }
}

// Fixed memory is only ever bound as an input, or shown to taps that do not write.
std::byte* Frame::address(const PlanTensor& tensor) const {
    if (tensor.placement.fixed != nullptr) return const_cast<std::byte*>(tensor.placement.fixed);
    return arena_.data() + tensor.placement.offset;
}

void Frame::copy_inputs(std::span<const Tensor> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Plan::Input& input = plan_->inputs_[i];
        const PlanTensor& tensor = plan_->tensors_[static_cast<std::size_t>(input.tensor)];
        const MutableTensorView target{&tensor.descriptor, address(tensor)};
        if (tensor.descriptor.type == inputs[i].type()) {
            copy_to_order(inputs[i].view(), target);
            if (input.rounding != DataType::undefined) round_to(input.rounding, target.as<float>());
        } else {
            const std::span<const float> source = inputs[i].view().as<float>();
            std::copy(source.begin(), source.end(), target.as<double>().begin());
        }
    }
}

void Frame::execute(std::size_t index) {
    const Step& step = plan_->steps_[index];
    BoundStep& bound = bound_[index];
    switch (step.kind) {
        case Step::Kind::show:
            break;
        case Step::Kind::reorder:
            copy_to_order(bound.inputs[0], bound.outputs[0]);
            break;
        case Step::Kind::copy:
            std::memcpy(bound.outputs[0].data, bound.inputs[0].data, bound.inputs[0].descriptor->bytes());
            break;
        case Step::Kind::widen: {
            const std::span<const float> source = bound.inputs[0].as<float>();
            std::copy(source.begin(), source.end(), bound.outputs[0].as<double>().begin());
            break;
        }
        case Step::Kind::run:
            step.kernel->run(bound.inputs, bound.outputs, bound.workspace);
            break;
    }
    for (std::size_t i = 0; i < step.rounding.size(); ++i) {
        if (step.rounding[i] != DataType::undefined) round_to(step.rounding[i], bound.outputs[i].as<float>());
    }
}

void Frame::observe(std::span<const Observation> observations, std::uint64_t sample) const {
    for (const Observation& observation : observations) {
        const PlanTensor& tensor = plan_->tensors_[static_cast<std::size_t>(observation.tensor)];
        for (std::size_t tap = 0; tap < plan_->taps_.size(); ++tap) {
            if ((observation.taps >> tap & 1U) != 0) {
                plan_->taps_[tap]->on_value(observation.value, sample, {&tensor.descriptor, address(tensor)});
            }
        }
    }
}

}  // namespace qcalib
