#include "runtime/bound_plan.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/error.h"
#include "base/text.h"
#include "runtime/fold.h"

namespace qcalib {

namespace {

// CPU time of this thread: what other programs take on a shared machine is not in it.
double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

BoundPlan::BoundPlan(std::shared_ptr<const Plan> plan, std::byte* arena, std::byte* scratch,
                     std::span<const std::byte* const> external)
    : plan_(std::move(plan)),
      arena_(arena),
      scratch_(scratch),
      external_(external.begin(), external.end()),
      bound_(plan_->steps().size()) {
    for (std::size_t i = 0; i < bound_.size(); ++i) {
        const Step& step = plan_->steps()[i];
        BoundStep& bound = bound_[i];
        for (const std::int32_t index : step.inputs) bound.inputs.push_back(view(index));
        for (const std::int32_t index : step.outputs) bound.outputs.push_back(view(index));
        if (step.kernel) bound.state = step.kernel->make_state();
        bound.workspace = {{scratch, step.scratch_bytes}, bound.state.get(), 0};
    }
}

bool BoundPlan::is(const std::shared_ptr<const Plan>& plan, const std::byte* arena, const std::byte* scratch,
                   std::span<const std::byte* const> external) const {
    return plan == plan_ && arena == arena_ && scratch == scratch_ &&
           std::equal(external.begin(), external.end(), external_.begin(), external_.end());
}

// Fixed and external memory is only ever bound as an input, or shown to taps that do not write.
std::byte* BoundPlan::address(const PlanTensor& tensor) const {
    const Placement& placement = tensor.placement;
    if (placement.fixed != nullptr) return const_cast<std::byte*>(placement.fixed);
    if (placement.external >= 0) {
        return const_cast<std::byte*>(external_[static_cast<std::size_t>(placement.external)]);
    }
    return arena_ + placement.offset;
}

MutableTensorView BoundPlan::view(std::int32_t tensor) const {
    if (tensor < 0) return {};
    const PlanTensor& placed = plan_->tensors_[static_cast<std::size_t>(tensor)];
    return {&placed.descriptor, address(placed)};
}

void BoundPlan::set_input(std::size_t i, TensorView value) const {
    const Plan::Input& input = plan_->inputs_[i];
    if (input.tensor < 0) return;
    const MutableTensorView target = view(input.tensor);
    if (target.descriptor->type == value.descriptor->type) {
        if (target.data != value.data) copy_to_order(value, target);
        if (input.rounding != DataType::undefined) round_to(input.rounding, target.as<float>());
    } else {
        const std::span<const float> source = value.as<float>();
        std::copy(source.begin(), source.end(), target.as<double>().begin());
    }
}

void BoundPlan::run(std::uint64_t sample, Profile* profile) {
    if (profile != nullptr) seconds_.assign(plan_->steps_.size(), 0);
    observe(plan_->observed_inputs_, sample);
    std::size_t current = 0;
    try {
        for (; current < plan_->steps_.size(); ++current) {
            profile == nullptr ? execute(current, sample) : execute_timed(current, sample);
            observe(plan_->steps_[current].observed, sample);
        }
    } catch (const Error& error) {
        const Graph& graph = *plan_->graph_;
        const NodeIndex index = plan_->steps_[current].node;
        if (index >= graph.nodes.size()) throw;
        const Node& node = graph.nodes[index];
        const ValueId output = node.outputs.empty() ? no_value : node.outputs.front();
        fail("{} (tensor '{}'): {}", label(graph, node),
             output == no_value ? "" : printable(graph.values[output].name), error.what());
    }
    if (profile != nullptr) profile->add_run(*plan_, seconds_);
}

void BoundPlan::execute_timed(std::size_t index, std::uint64_t sample) {
    const double start = thread_seconds();
    execute(index, sample);
    seconds_[index] = thread_seconds() - start;
}

void BoundPlan::execute(std::size_t index, std::uint64_t sample) {
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
            bound.workspace.sample = sample;
            if (step.data_dependent) {
                made_ = step.kernel->make_outputs(bound.inputs, bound.workspace);
            } else {
                step.kernel->run(bound.inputs, bound.outputs, bound.workspace);
            }
            break;
    }
    for (std::size_t i = 0; i < step.rounding.size(); ++i) {
        if (step.rounding[i] != DataType::undefined) round_to(step.rounding[i], bound.outputs[i].as<float>());
    }
}

void BoundPlan::observe(std::span<const Observation> observations, std::uint64_t sample) const {
    for (const Observation& observation : observations) {
        const MutableTensorView seen = view(observation.tensor);
        for (std::size_t tap = 0; tap < plan_->taps_.size(); ++tap) {
            if ((observation.taps >> tap & 1U) != 0) {
                plan_->taps_[tap]->on_value(observation.value, sample, seen);
            }
        }
    }
}

std::vector<Tensor> BoundPlan::take_found() {
    std::vector<Tensor> found;
    for (const std::int32_t tensor : plan_->found_) found.push_back(row_major_copy(view(tensor)));
    if (!found.empty()) return found;
    const Node& node = plan_->graph_->nodes[plan_->steps_.back().node];
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != no_value) found.push_back(std::move(made_[i]));
    }
    return found;
}

void BoundPlan::list_passed_on(std::vector<const std::byte*>& addresses) const {
    addresses.clear();
    for (const std::int32_t tensor : plan_->passed_on_) addresses.push_back(view(tensor).data);
}

}  // namespace qcalib
