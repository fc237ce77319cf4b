// The parts of PlanBuilder that know of bodies, and of plans that end where a shape depends on data.
#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

#include "runtime/plan_builder.h"

namespace qcalib {

namespace {

// A few plans by a text that tells apart what they were made for, the most recently used first.
class PlanShelf {
  public:
    template <typename Make>
    std::shared_ptr<const Plan> get(std::string signature, Make make) {
        const std::scoped_lock lock(mutex_);
        const auto found = std::find_if(plans_.begin(), plans_.end(),
                                        [&](const auto& entry) { return entry.first == signature; });
        if (found != plans_.end()) {
            std::rotate(plans_.begin(), found, found + 1);
            return plans_.front().second;
        }
        std::shared_ptr<const Plan> plan = make();
        plans_.emplace(plans_.begin(), std::move(signature), plan);
        if (plans_.size() > most) plans_.pop_back();
        return plan;
    }

  private:
    static constexpr std::size_t most = 16;
    std::mutex mutex_;
    std::vector<std::pair<std::string, std::shared_ptr<const Plan>>> plans_;
};

std::string signature_of(std::span<const InputInfo> inputs) {
    std::string signature;
    for (const InputInfo& input : inputs) {
        signature += name_of(input.descriptor.type);
        signature += to_string(input.descriptor.shape);
        signature += input.descriptor.order == MemoryOrder::channels_last ? "c" : "r";
        if (!input.constant) continue;
        const std::span<const std::byte> bytes = input.constant->view().bytes();
        signature.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return signature;
}

class TaskPlans : public BodyPlans {
  public:
    TaskPlans(const Program& program, PlanTask task) : program_(program), task_(std::move(task)) {}

    std::shared_ptr<const Plan> plan(std::span<const InputInfo> inputs) override {
        return shelf_.get(signature_of(inputs), [&] { return PlanBuilder(program_, task_, inputs).build(); });
    }

  private:
    const Program& program_;
    PlanTask task_;
    PlanShelf shelf_;
};

class NextPart : public Continuation {
  public:
    NextPart(const Program& program, PlanTask task)
        : as_values_(task.inputs_are_values), plans_(program, std::move(task)) {}

    std::shared_ptr<const Plan> next(std::span<const Tensor> found) override {
        std::vector<InputInfo> inputs;
        for (const Tensor& tensor : found) {
            InputInfo& input = inputs.emplace_back();
            input.descriptor = tensor.descriptor();
            if (as_values_) input.constant = tensor;
        }
        return plans_.plan(inputs);
    }

  private:
    bool as_values_;
    TaskPlans plans_;
};

}  // namespace

std::shared_ptr<BodyPlans> PlanBuilder::plans(const Node& node, const Body& body) const {
    PlanTask task;
    for (auto index = body.nodes.rbegin(); index != body.nodes.rend(); ++index) task.work.push_back({*index});
    task.inputs = body.inputs;
    for (const ValueId captured : node.captured) task.around.push_back(outer_value(captured));
    task.outputs = body.outputs;
    task.body = true;
    return std::make_shared<TaskPlans>(program_, std::move(task));
}

OuterValue PlanBuilder::outer_value(ValueId value) const {
    const ValueState& state = values_[value];
    OuterValue outer{value, state.descriptor, state.declared, std::nullopt, state.weight};
    if (state.constant != nullptr) outer.constant = *state.constant;
    return outer;
}

// The body's nodes take the node's place among what is still to be done.
void PlanBuilder::enter_body(NodeIndex index, const Body& body) {
    const WorkItem leave{index, &body};
    count_uses(leave, 1);
    task_.work.push_back(leave);
    for (auto inner = body.nodes.rbegin(); inner != body.nodes.rend(); ++inner) {
        count_uses({*inner}, 1);
        task_.work.push_back({*inner});
    }
    count_uses({index}, -1U);
}

void PlanBuilder::leave_body(NodeIndex index, const Body& body) {
    const Node& node = graph_.nodes[index];
    Step known;
    known.kind = Step::Kind::show;
    known.node = index;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId value = node.outputs[i];
        const ValueId source = body.outputs[i];
        if (value == no_value) continue;
        if (values_[source].constant != nullptr) {
            set_known(value, *values_[source].constant, known);
            values_[value].weight = values_[source].weight && values_[value].constant != nullptr;
        } else {
            add_view(index, value, source, any_tensor(source), values_[source].descriptor,
                     values_[source].declared);
        }
    }
    if (!known.observed.empty()) push(std::move(known));
    count_uses({index, &body}, -1U);
}

// Those of the inputs `wanted` of the node whose values are not known.
std::vector<ValueId> PlanBuilder::unknown_values(NodeIndex index, std::span<const std::size_t> wanted) const {
    const Node& node = graph_.nodes[index];
    std::vector<ValueId> unknown;
    for (const std::size_t i : wanted) {
        if (i >= node.inputs.size() || node.inputs[i] == no_value) continue;
        const ValueId value = node.inputs[i];
        const bool listed = std::find(unknown.begin(), unknown.end(), value) != unknown.end();
        if (values_[value].constant == nullptr && !listed) unknown.push_back(value);
    }
    return unknown;
}

// The plan ends; the next part begins with the node and is made for the values of `unknown`.
void PlanBuilder::end_before(NodeIndex index, std::vector<ValueId> unknown) {
    assert(!unknown.empty());
    task_.work.push_back({index});
    for (const ValueId value : unknown) {
        plan_->found_.push_back(any_tensor(value));
        pin(plan_->found_.back());
    }
    end_part(std::move(unknown), true);
}

// The plan ends; the next part begins with what the node made.
void PlanBuilder::end_after(NodeIndex index) {
    std::vector<ValueId> made;
    for (const ValueId output : graph_.nodes[index].outputs) {
        if (output != no_value) made.push_back(output);
    }
    end_part(std::move(made), false);
}

void PlanBuilder::end_part(std::vector<ValueId> found, bool as_values) {
    PlanTask next;
    next.work = std::move(task_.work);
    next.inputs_are_values = as_values;
    next.outputs = task_.outputs;
    for (ValueId value = 0; value < values_.size(); ++value) {
        const ValueState& state = values_[value];
        const bool made = state.descriptor.type != DataType::undefined;
        if (!made || state.uses == 0 || program_.constant(value) != nullptr) continue;
        if (std::find(found.begin(), found.end(), value) != found.end()) continue;
        next.around.push_back(outer_value(value));
        plan_->passed_on_.push_back(state.constant != nullptr ? -1 : any_tensor(value));
        pin(plan_->passed_on_.back());
    }
    next.inputs = std::move(found);
    plan_->continuation_ = std::make_unique<NextPart>(program_, std::move(next));
}

void PlanBuilder::add_body_outputs() {
    for (const ValueId value : task_.outputs) {
        Plan::Output& output = plan_->outputs_.emplace_back();
        TensorDescriptor wanted = values_[value].descriptor;
        wanted.order = MemoryOrder::row_major;
        output.tensor = tensor_for(value, wanted, false);
        if (values_[value].constant != nullptr) output.constant = *values_[value].constant;
        pin(output.tensor);
        const std::int32_t buffer = buffer_of_tensor_[static_cast<std::size_t>(output.tensor)];
        for (std::size_t i = 0; buffer >= 0 && i < plan_->inputs_.size(); ++i) {
            const std::int32_t input = plan_->inputs_[i].tensor;
            if (input >= 0 && buffer_of_tensor_[static_cast<std::size_t>(input)] == buffer) {
                output.input_buffer = static_cast<std::int32_t>(i);
            }
        }
    }
}

// A plan tensor of a value that is made or known.
std::int32_t PlanBuilder::any_tensor(ValueId value) {
    return tensor_for(value, values_[value].descriptor, false);
}

void PlanBuilder::pin(std::int32_t tensor) {
    if (tensor < 0) return;
    const std::int32_t buffer = buffer_of_tensor_[static_cast<std::size_t>(tensor)];
    if (buffer >= 0) buffers_[static_cast<std::size_t>(buffer)].pinned = true;
}

}  // namespace qcalib
