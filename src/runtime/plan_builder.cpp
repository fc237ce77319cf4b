#include "runtime/plan_builder.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "base/text.h"
#include "runtime/fold.h"

namespace qcalib {

namespace {

NodeIndex index_of(MemoryOrder order) {
    return static_cast<std::size_t>(order);
}

bool is_half(DataType type) {
    return type == DataType::float16 || type == DataType::bfloat16;
}

}  // namespace

std::vector<ValueId> operands_of(const Node& node) {
    std::vector<ValueId> operands = node.inputs;
    operands.insert(operands.end(), node.captured.begin(), node.captured.end());
    return operands;
}

PlanBuilder::PlanBuilder(const Program& program, PlanTask task, std::span<const InputInfo> inputs)
    : program_(program),
      graph_(program.graph()),
      task_(std::move(task)),
      plan_(std::make_unique<Plan>()),
      values_(graph_.values.size()) {
    plan_->graph_ = program_.graph_;
    plan_->taps_ = program_.taps_;
    take_constants();
    for (const WorkItem& item : task_.work) count_uses(item, 1);
    for (const ValueId output : task_.outputs) ++values_[output].uses;
    add_outer_values();
    add_inputs(inputs);
}

std::unique_ptr<Plan> PlanBuilder::build() {
    while (!task_.work.empty() && !plan_->continues()) {
        const WorkItem item = task_.work.back();
        task_.work.pop_back();
        if (item.leave != nullptr) {
            leave_body(item.node, *item.leave);
        } else if (!program_.folded_[item.node]) {
            add_node(item.node);
        }
    }
    if (!plan_->continues()) add_body_outputs();
    finish_layout();
    return std::move(plan_);
}

void PlanBuilder::take_constants() {
    for (const auto& [value, tensor] : program_.constants_) {
        const DataType declared = graph_.values[value].declared_type;
        values_[value] = {tensor.descriptor(),
                          is_half(declared) ? declared : DataType::undefined,
                          &tensor,
                          true,
                          {-1, -1},
                          0};
    }
}

// Adds `change` (1, or its negative) to the uses of what the item needs.
void PlanBuilder::count_uses(const WorkItem& item, std::uint32_t change) {
    if (item.leave != nullptr) {
        for (const ValueId output : item.leave->outputs) values_[output].uses += change;
        return;
    }
    if (program_.folded_[item.node]) return;
    for (const ValueId operand : operands_of(graph_.nodes[item.node])) {
        if (operand != no_value) values_[operand].uses += change;
    }
}

void PlanBuilder::add_outer_values() {
    for (std::size_t i = 0; i < task_.around.size(); ++i) {
        const OuterValue& outer = task_.around[i];
        ValueState& state = values_[outer.value];
        if (state.weight) continue;
        if (outer.constant) {
            known_.push_back(std::make_unique<Tensor>(*outer.constant));
            plan_->kept_.push_back(*outer.constant);
            state.constant = known_.back().get();
            state.weight = outer.weight;
            state.descriptor = state.constant->descriptor();
            state.declared = outer.declared;
        } else {
            define(outer.value, fixed_tensor(outer.descriptor, {0, nullptr, static_cast<std::int32_t>(i)}),
                   outer.declared);
        }
    }
}

void PlanBuilder::add_inputs(std::span<const InputInfo> inputs) {
    assert(inputs.size() == task_.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) add_input(i, inputs[i]);
}

void PlanBuilder::add_input(std::size_t i, const InputInfo& input) {
    const ValueId value = task_.inputs[i];
    const DataType declared = graph_.values[value].declared_type;
    if (input.constant && (task_.inputs_are_values || program_.rights_[value] != TapRight::write)) {
        known_.push_back(std::make_unique<Tensor>(*input.constant));
        plan_->kept_.push_back(*input.constant);
        values_[value].constant = known_.back().get();
    }
    if (task_.inputs_are_values) {
        values_[value].descriptor = input.descriptor;
        values_[value].declared = is_half(declared) ? declared : DataType::undefined;
        plan_->inputs_.push_back({});
        return;
    }
    TensorDescriptor descriptor = input.descriptor;
    if (program_.options_.float64 && descriptor.type == DataType::float32) {
        descriptor.type = DataType::float64;
    }
    const std::int32_t tensor = new_tensor(descriptor, value);
    if (task_.body) pin(tensor);
    define(value, tensor, declared);
    plan_->inputs_.push_back({tensor, is_half(declared) ? declared : DataType::undefined});
    observe(value, tensor, plan_->observed_inputs_);
}

std::vector<InputInfo> PlanBuilder::describe_inputs(const Node& node) const {
    std::vector<InputInfo> infos;
    for (const ValueId input : operands_of(node)) {
        InputInfo& info = infos.emplace_back();
        if (input == no_value) continue;
        const ValueState& state = values_[input];
        info.descriptor = state.descriptor;
        if (state.constant != nullptr) {
            info.constant = *state.constant;
            info.descriptor.order = MemoryOrder::row_major;
        }
        info.weight = state.weight;
    }
    return infos;
}

void PlanBuilder::add_node(NodeIndex index) {
    const Node& node = graph_.nodes[index];
    if (!makes_something(node)) return count_uses({index}, -1U);
    const OperatorEntry& entry = program_.entry(index);
    const std::vector<InputInfo> infos = describe_inputs(node);
    const Body* taken = entry.taken_body == nullptr ? nullptr : entry.taken_body(node, infos);
    if (taken != nullptr) return enter_body(index, *taken);
    check_elements(entry, {graph_, node, infos, program_.weights_});
    const std::vector<ValueId> unknown = unknown_values(index, entry.value_inputs);
    if (!unknown.empty()) return end_before(index, unknown);
    std::shared_ptr<Kernel> kernel = program_.make_kernel_of(index);
    const bool all_known = std::all_of(
        infos.begin(), infos.end(), [](const InputInfo& info) { return !info.present() || info.constant; });
    const bool done = (all_known && program_.may_fold(node) && fold(index, infos, *kernel)) ||
                      add_prepared(index, infos, std::move(kernel));
    if (done) count_uses({index}, -1U);
    if (plan_->steps_.empty() || !plan_->steps_.back().data_dependent) return;
    end_after(index);
}

bool PlanBuilder::fold(NodeIndex index, std::span<const InputInfo> infos, Kernel& kernel) {
    add_known_outputs(index, fold_node({graph_, graph_.nodes[index], infos, program_.weights_}, kernel));
    return true;
}

void PlanBuilder::add_known_outputs(NodeIndex index, std::vector<Tensor> outputs) {
    const Node& node = graph_.nodes[index];
    Step step;
    step.kind = Step::Kind::show;
    step.node = index;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != no_value) set_known(node.outputs[i], std::move(outputs[i]), step);
    }
    if (!step.observed.empty()) push(std::move(step));
}

void PlanBuilder::set_known(ValueId value, Tensor tensor, Step& step) {
    const DataType declared = graph_.values[value].declared_type;
    tensor = program_.in_computed_type(rounded_to(declared, std::move(tensor)), graph_.values[value].name);
    known_.push_back(std::make_unique<Tensor>(std::move(tensor)));
    ValueState& state = values_[value];
    state.constant = known_.back().get();
    state.descriptor = state.constant->descriptor();
    state.declared = is_half(declared) ? declared : DataType::undefined;
    plan_->kept_.push_back(*state.constant);
    const std::int32_t fixed = constant_tensor(state, state.descriptor, false);
    if (program_.rights_[value] != TapRight::write) {
        define(value, fixed, declared);
        observe(value, fixed, step.observed);
        return;
    }
    Step copy;
    copy.kind = Step::Kind::copy;
    copy.node = step.node;
    copy.inputs = {fixed};
    copy.outputs = {new_tensor(state.descriptor, value)};
    state.constant = nullptr;
    state.tensors = {-1, -1};
    define(value, copy.outputs[0], declared);
    observe(value, copy.outputs[0], copy.observed);
    push(std::move(copy));
}

// False where values must be known first: the plan ends before the node.
bool PlanBuilder::add_prepared(NodeIndex index, std::span<const InputInfo> infos,
                               std::shared_ptr<Kernel> kernel) {
    const Node& node = graph_.nodes[index];
    std::vector<InputInfo> ordered(infos.begin(), infos.end());
    const NodeContext context{graph_, node, ordered, program_.weights_, this};
    const std::vector<MemoryOrder> orders = program_.options_.row_major_only && node.bodies.empty()
                                                ? all_row_major(context)
                                                : kernel->input_orders(context);
    assert(orders.size() == infos.size());
    for (std::size_t i = 0; i < ordered.size(); ++i) ordered[i].descriptor.order = orders[i];
    Prepared prepared = kernel->prepare(context);
    if (!prepared.needs_values.empty()) {
        end_before(index, unknown_values(index, prepared.needs_values));
        return false;
    }
    if (!prepared.known_outputs.empty()) {
        add_known_outputs(index, std::move(prepared.known_outputs));
        return true;
    }
    assert(prepared.data_dependent || prepared.outputs.size() == node.outputs.size());
    if (prepared.view_of) {
        const ValueId source = node.inputs[*prepared.view_of];
        const std::int32_t from = tensor_for(source, ordered[*prepared.view_of].descriptor, false);
        const DataType declared =
            prepared.rounding.empty() ? declared_type_of(node, 0) : prepared.rounding[0];
        add_view(index, node.outputs[0], source, from, prepared.outputs[0], declared);
    } else {
        add_run(index, ordered, std::move(kernel), prepared);
    }
    if (!prepared.data_dependent) widen_outputs(index);
    return true;
}

void PlanBuilder::add_run(NodeIndex index, std::span<const InputInfo> infos, std::shared_ptr<Kernel> kernel,
                          const Prepared& prepared) {
    const Node& node = graph_.nodes[index];
    Step step;
    step.kind = Step::Kind::run;
    step.node = index;
    step.scratch_bytes = prepared.scratch_bytes;
    plan_->scratch_bytes_ = std::max(plan_->scratch_bytes_, prepared.scratch_bytes);
    const std::vector<ValueId> operands = operands_of(node);
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const bool packed =
            std::find(prepared.packed.begin(), prepared.packed.end(), i) != prepared.packed.end();
        step.inputs.push_back(operands[i] == no_value ? -1
                                                      : tensor_for(operands[i], infos[i].descriptor, packed));
    }
    step.kernel = std::move(kernel);
    step.data_dependent = prepared.data_dependent;
    if (!prepared.data_dependent) place_outputs(index, prepared, step);
    push(std::move(step));
}

void PlanBuilder::place_outputs(NodeIndex index, const Prepared& prepared, Step& step) {
    const Node& node = graph_.nodes[index];
    const std::int32_t overwritten = buffer_to_overwrite(node, prepared, step);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId value = node.outputs[i];
        if (value == no_value) {
            step.outputs.push_back(-1);
            step.rounding.push_back(DataType::undefined);
            continue;
        }
        const TensorDescriptor& descriptor = prepared.outputs[i];
        const DataType declared =
            prepared.rounding.empty() ? declared_type_of(node, i) : prepared.rounding[i];
        const std::int32_t tensor = i == 0 && overwritten >= 0 ? alias_tensor(descriptor, overwritten, value)
                                                               : new_tensor(descriptor, value);
        step.outputs.push_back(tensor);
        step.rounding.push_back(
            is_half(declared) && descriptor.type == DataType::float32 ? declared : DataType::undefined);
        define(value, tensor, declared);
        observe(value, tensor, step.observed);
    }
}

// The plan tensor of the input whose buffer output 0 takes over, or -1.
std::int32_t PlanBuilder::buffer_to_overwrite(const Node& node, const Prepared& prepared,
                                              const Step& step) const {
    for (const std::size_t i : prepared.in_place) {
        const std::int32_t tensor = step.inputs[i];
        if (tensor < 0 || buffer_of_tensor_[tensor] < 0) continue;
        const PlanTensor& candidate = plan_->tensors_[tensor];
        if (candidate.descriptor.bytes() != prepared.outputs[0].bytes()) continue;
        const std::int32_t buffer = buffer_of_tensor_[tensor];
        bool only_this_tensor = true;
        for (const std::int32_t other : step.inputs) {
            if (other >= 0 && other != tensor && buffer_of_tensor_[other] == buffer) only_this_tensor = false;
        }
        if (!only_this_tensor) continue;
        const bool dies =
            std::all_of(buffers_[buffer].values.begin(), buffers_[buffer].values.end(), [&](ValueId value) {
                const auto here = std::count(node.inputs.begin(), node.inputs.end(), value) +
                                  std::count(node.captured.begin(), node.captured.end(), value);
                return values_[value].uses == static_cast<std::uint32_t>(here);
            });
        if (dies) return tensor;
    }
    return -1;
}

void PlanBuilder::add_view(NodeIndex index, ValueId value, ValueId source, std::int32_t from,
                           const TensorDescriptor& descriptor, DataType declared) {
    Step step;
    step.node = index;
    const bool source_stays = program_.rights_[source] == TapRight::write && values_[source].uses > 1;
    if (program_.rights_[value] == TapRight::write || source_stays) {
        step.kind = Step::Kind::copy;
        step.inputs = {from};
        step.outputs = {new_tensor(descriptor, value)};
    } else {
        step.kind = Step::Kind::show;
        step.outputs = {alias_tensor(descriptor, from, value)};
    }
    define(value, step.outputs[0], declared);
    observe(value, step.outputs[0], step.observed);
    if (step.kind == Step::Kind::copy || !step.observed.empty()) push(std::move(step));
}

// In a program that computes in double, a kernel that makes float32 (a Cast) has its output widened.
void PlanBuilder::widen_outputs(NodeIndex index) {
    if (!program_.options_.float64) return;
    for (const ValueId value : graph_.nodes[index].outputs) {
        if (value == no_value || values_[value].descriptor.type != DataType::float32) continue;
        Step step;
        step.kind = Step::Kind::widen;
        step.node = index;
        step.inputs = {values_[value].tensors[index_of(values_[value].descriptor.order)]};
        TensorDescriptor descriptor = values_[value].descriptor;
        descriptor.type = DataType::float64;
        step.outputs = {new_tensor(descriptor, value)};
        values_[value].tensors = {-1, -1};
        step.observed = std::move(plan_->steps_.back().observed);
        plan_->steps_.back().observed.clear();
        for (Observation& observation : step.observed) observation.tensor = step.outputs[0];
        define(value, step.outputs[0], values_[value].declared);
        push(std::move(step));
    }
}

// The type the file gives the value, else that of the first float input; what it is rounded to where half.
DataType PlanBuilder::declared_type_of(const Node& node, std::size_t output) const {
    const DataType declared = graph_.values[node.outputs[output]].declared_type;
    if (declared != DataType::undefined) return declared;
    for (const ValueId input : node.inputs) {
        if (input != no_value && is_floating(values_[input].descriptor.type)) return values_[input].declared;
    }
    return DataType::undefined;
}

void PlanBuilder::define(ValueId value, std::int32_t tensor, DataType declared) {
    ValueState& state = values_[value];
    state.descriptor = plan_->tensors_[tensor].descriptor;
    state.declared = is_half(declared) ? declared : DataType::undefined;
    state.tensors[index_of(state.descriptor.order)] = tensor;
    plan_->tensor_of_value_[value] = tensor;
    plan_->declared_types_[value] = is_half(declared) ? declared : state.descriptor.type;
}

void PlanBuilder::observe(ValueId value, std::int32_t tensor, std::vector<Observation>& observed) const {
    Observation observation{value, tensor, 0};
    for (std::size_t tap = 0; tap < program_.taps_.size(); ++tap) {
        if (program_.taps_[tap]->right(graph_, value) != TapRight::ignore) observation.taps |= 1U << tap;
    }
    if (observation.taps != 0) observed.push_back(observation);
}

std::int32_t PlanBuilder::tensor_for(ValueId value, const TensorDescriptor& wanted, bool packed) {
    ValueState& state = values_[value];
    if (state.tensors[index_of(wanted.order)] >= 0) return state.tensors[index_of(wanted.order)];
    const std::int32_t tensor =
        state.constant != nullptr ? constant_tensor(state, wanted, packed) : reordered_tensor(value, wanted);
    if (!packed) state.tensors[index_of(wanted.order)] = tensor;
    return tensor;
}

// A known value in fixed memory; aligned and in the order wanted unless the kernel does not read it.
std::int32_t PlanBuilder::constant_tensor(ValueState& state, const TensorDescriptor& wanted, bool packed) {
    const Tensor& constant = *state.constant;
    const std::size_t element = size_of(constant.type());
    const bool aligned = element == 0 || reinterpret_cast<std::uintptr_t>(constant.data()) % element == 0;
    const bool ordered = wanted.order == MemoryOrder::row_major || same_in_both_orders(constant.shape());
    const std::byte* fixed = constant.data();
    if (!packed && (!aligned || !ordered)) fixed = copied_constant(state, wanted.order);
    return fixed_tensor(wanted, {0, fixed, -1});
}

// A copy of a known value in that order: shared between plans where it is a weight, else the plan's own.
const std::byte* PlanBuilder::copied_constant(const ValueState& state, MemoryOrder order) {
    const Tensor& constant = *state.constant;
    TensorDescriptor descriptor = constant.descriptor();
    descriptor.order = order;
    if (!state.weight) {
        Tensor copy(descriptor);
        copy_to_order(constant.view(), copy.mutable_view());
        plan_->kept_.push_back(copy);
        return copy.data();
    }
    const std::string layout = order == MemoryOrder::channels_last ? "channels-last" : "row-major";
    auto copy = program_.weights_.get(constant, layout, descriptor.bytes(), [&](std::byte* target) {
        copy_to_order(constant.view(), {&descriptor, target});
    });
    plan_->kept_weights_.push_back(copy);
    return copy->data();
}

std::int32_t PlanBuilder::reordered_tensor(ValueId value, const TensorDescriptor& wanted) {
    const std::int32_t made = values_[value].tensors[index_of(values_[value].descriptor.order)];
    if (same_in_both_orders(wanted.shape)) return alias_tensor(wanted, made, value);
    Step step;
    step.kind = Step::Kind::reorder;
    step.node = graph_.values[value].producer;
    step.inputs = {made};
    step.outputs = {new_tensor(wanted, value)};
    const std::int32_t tensor = step.outputs[0];
    push(std::move(step));
    return tensor;
}

std::int32_t PlanBuilder::new_tensor(const TensorDescriptor& descriptor, ValueId value) {
    const std::size_t now = plan_->steps_.size();
    buffers_.push_back({{descriptor.bytes(), now, now}, {value}, false});
    plan_->tensors_.push_back({descriptor, {}});
    buffer_of_tensor_.push_back(static_cast<std::int32_t>(buffers_.size()) - 1);
    return static_cast<std::int32_t>(plan_->tensors_.size()) - 1;
}

// A tensor in memory that is not the arena's.
std::int32_t PlanBuilder::fixed_tensor(const TensorDescriptor& descriptor, Placement placement) {
    plan_->tensors_.push_back({descriptor, placement});
    buffer_of_tensor_.push_back(-1);
    return static_cast<std::int32_t>(plan_->tensors_.size()) - 1;
}

// Another tensor in the buffer (or fixed memory) of `source`.
std::int32_t PlanBuilder::alias_tensor(const TensorDescriptor& descriptor, std::int32_t source,
                                       ValueId value) {
    plan_->tensors_.push_back({descriptor, plan_->tensors_[source].placement});
    buffer_of_tensor_.push_back(buffer_of_tensor_[source]);
    if (buffer_of_tensor_[source] >= 0) buffers_[buffer_of_tensor_[source]].values.push_back(value);
    return static_cast<std::int32_t>(plan_->tensors_.size()) - 1;
}

// Adds a step; the buffers it and its observations touch live until then at least.
void PlanBuilder::push(Step step) {
    const std::size_t now = plan_->steps_.size();
    const auto touch = [&](std::int32_t tensor) {
        if (tensor >= 0 && buffer_of_tensor_[tensor] >= 0)
            buffers_[buffer_of_tensor_[tensor]].life.last = now;
    };
    std::for_each(step.inputs.begin(), step.inputs.end(), touch);
    std::for_each(step.outputs.begin(), step.outputs.end(), touch);
    for (const Observation& observation : step.observed) touch(observation.tensor);
    plan_->steps_.push_back(std::move(step));
}

void PlanBuilder::finish_layout() {
    std::vector<BufferLife> lives;
    for (const Buffer& buffer : buffers_) {
        lives.push_back(buffer.life);
        if (buffer.pinned) lives.back().last = plan_->steps_.size();
    }
    const BufferLayout layout = lay_out(lives);
    for (std::size_t i = 0; i < plan_->tensors_.size(); ++i) {
        if (buffer_of_tensor_[i] >= 0)
            plan_->tensors_[i].placement.offset = layout.offsets[buffer_of_tensor_[i]];
    }
    plan_->arena_bytes_ = layout.bytes;
}

}  // namespace qcalib
