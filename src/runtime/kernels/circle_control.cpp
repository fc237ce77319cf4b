// Operators of Circle that run subgraphs.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/body.h"
#include "runtime/bound_plan.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/body_memory.h"

namespace qcalib {

namespace {

const Body& required_body(const NodeContext& context, std::string_view name, std::size_t inputs,
                          std::size_t outputs) {
    const Body* body = context.node.body(name);
    if (body == nullptr) context.refuse(fmt::format("expected a subgraph '{}', found none", name));
    if (body->inputs.size() != inputs || body->outputs.size() != outputs) {
        context.refuse(fmt::format("{}: expected {} inputs and {} outputs, found {} and {}", name, inputs,
                                   outputs, body->inputs.size(), body->outputs.size()));
    }
    return *body;
}

// The node's inputs from `first` on as a body's.
std::vector<InputInfo> body_inputs_from(const NodeContext& context, std::size_t first) {
    std::vector<InputInfo> inputs;
    for (std::size_t i = first; i < context.node.inputs.size(); ++i) {
        if (!context.has_input(i)) context.refuse(fmt::format("expected input {}, which is left out", i));
        inputs.push_back(context.inputs[i]);
    }
    return inputs;
}

// Which of its two subgraphs an IF runs; CALL has one.
constexpr std::array<std::string_view, 2> circle_branches = {"else_branch", "then_branch"};

// IF: both branches are prepared, and one is run by the condition; where the outputs of both do not have the
// same shapes, or one cannot be prepared, the condition must be known first. CALL: one is always run.
class CircleBranches : public Kernel {
  public:
    explicit CircleBranches(bool has_condition) : first_input_(has_condition ? 1 : 0) {}

    Prepared prepare(const NodeContext& context) override {
        Prepared prepared;
        branches_ = {};
        std::vector<std::string_view> names{"body"};
        if (first_input_ == 1) {
            check_condition(context);
            names.assign(circle_branches.begin(), circle_branches.end());
            if (context.inputs[0].constant) {
                const bool taken = context.inputs[0].constant->view().as<std::uint8_t>()[0] != 0;
                names = {circle_branches[taken ? 1 : 0]};
            }
        }
        const std::vector<InputInfo> inputs = body_inputs_from(context, first_input_);
        count_ = names.size();
        try {
            for (std::size_t i = 0; i < count_; ++i) {
                const Body& body =
                    required_body(context, names[i], inputs.size(), context.node.outputs.size());
                branches_[i] = BodyMemory(context.bodies->plans(context.node, body)->plan(inputs));
            }
        } catch (const Error&) {
            if (count_ == 1) throw;
            prepared.needs_values = {0};
            return prepared;
        }
        describe_outputs(context, names, prepared);
        return prepared;
    }

    std::unique_ptr<KernelState> make_state() const override { return std::make_unique<State>(); }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        auto& state = static_cast<State&>(*workspace.state);
        const std::size_t taken = count_ == 1 ? 0 : (inputs[0].as<std::uint8_t>()[0] != 0 ? 1 : 0);
        std::optional<BoundPlan>& branch = state.branches[taken];
        if (!branch) branches_[taken].bind(branch, workspace.scratch.data(), {});
        for (std::size_t i = first_input_; i < inputs.size(); ++i)
            branch->set_input(i - first_input_, inputs[i]);
        branch->run(workspace.sample);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (outputs[i].data != nullptr) copy_to_order(branch->output(i), outputs[i]);
        }
    }

  private:
    struct State : KernelState {
        std::array<std::optional<BoundPlan>, 2> branches;
    };

    static void check_condition(const NodeContext& context) {
        if (context.has_input(0) && context.input(0).type == DataType::boolean &&
            context.input(0).elements() == 1) {
            return;
        }
        context.refuse("expected one boolean as its condition");
    }

    void describe_outputs(const NodeContext& context, std::span<const std::string_view> names,
                          Prepared& prepared) {
        for (std::size_t i = 0; i < count_; ++i) {
            if (!branches_[i].plan().continues()) continue;
            if (count_ == 1) context.refuse("a subgraph whose shapes depend on data is not supported");
            prepared.needs_values = {0};
            return;
        }
        const Plan& plan = branches_[0].plan();
        for (std::size_t i = 0; i < context.node.outputs.size(); ++i) {
            const TensorDescriptor& made = plan.output_descriptor(i);
            if (count_ == 2) {
                const TensorDescriptor& other = branches_[1].plan().output_descriptor(i);
                if (made.type != other.type || made.shape != other.shape) {
                    prepared = {};
                    prepared.needs_values = {0};
                    return;
                }
            }
            prepared.outputs.push_back(made);
            prepared.rounding.push_back(plan.declared_type(context.node.body(names[0])->outputs[i]));
        }
        for (std::size_t i = 0; i < count_; ++i) {
            prepared.scratch_bytes = std::max(prepared.scratch_bytes, branches_[i].bytes());
        }
    }

    std::size_t first_input_;
    std::size_t count_ = 0;
    std::array<BodyMemory, 2> branches_;
};

// Runs its body on the states while the condition, a subgraph too, says so. Every iteration has the shapes of
// the first.
class CircleWhile : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const std::size_t states = context.node.inputs.size();
        if (context.node.outputs.size() != states) {
            context.refuse(fmt::format("expected as many outputs as inputs, found {} and {}",
                                       context.node.outputs.size(), states));
        }
        std::vector<InputInfo> inputs = body_inputs_from(context, 0);
        for (InputInfo& input : inputs) {  // they change
            input.constant.reset();
            input.weight = false;
        }
        condition_ = BodyMemory(
            context.bodies->plans(context.node, required_body(context, "cond", states, 1))->plan(inputs));
        const Body& body = required_body(context, "body", states, states);
        body_ = BodyMemory(context.bodies->plans(context.node, body)->plan(inputs));
        check_plans(context, inputs);
        Prepared prepared;
        std::size_t bytes = aligned(condition_.bytes()) + aligned(body_.bytes());
        states_.clear();
        for (std::size_t i = 0; i < states; ++i) {
            prepared.outputs.push_back(inputs[i].descriptor);
            prepared.rounding.push_back(body_.plan().declared_type(body.outputs[i]));
            states_.push_back({inputs[i].descriptor, bytes});
            bytes += aligned(inputs[i].descriptor.bytes());
        }
        prepared.scratch_bytes = bytes;
        return prepared;
    }

    std::unique_ptr<KernelState> make_state() const override { return std::make_unique<Bound>(); }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        auto& bound = static_cast<Bound&>(*workspace.state);
        std::byte* scratch = workspace.scratch.data();
        if (!bound.condition) {
            condition_.bind(bound.condition, scratch, {});
            body_.bind(bound.body, scratch + aligned(condition_.bytes()), {});
        }
        const auto state = [&](std::size_t i) {
            return MutableTensorView{&states_[i].descriptor, scratch + states_[i].offset};
        };
        for (std::size_t i = 0; i < states_.size(); ++i) copy_to_order(inputs[i], state(i));
        for (;;) {
            for (std::size_t i = 0; i < states_.size(); ++i) bound.condition->set_input(i, state(i));
            bound.condition->run(workspace.sample);
            if (std::to_integer<int>(*bound.condition->output(0).data) == 0) break;
            for (std::size_t i = 0; i < states_.size(); ++i) bound.body->set_input(i, state(i));
            bound.body->run(workspace.sample);
            for (std::size_t i = 0; i < states_.size(); ++i) copy_to_order(bound.body->output(i), state(i));
        }
        for (std::size_t i = 0; i < states_.size(); ++i) {
            if (outputs[i].data != nullptr) copy_to_order(state(i), outputs[i]);
        }
    }

  private:
    struct Bound : KernelState {
        std::optional<BoundPlan> condition;
        std::optional<BoundPlan> body;
    };
    struct StatePlace {
        TensorDescriptor descriptor;
        std::size_t offset = 0;
    };

    static std::size_t aligned(std::size_t bytes) {
        constexpr std::size_t alignment = 64;
        return (bytes + alignment - 1) / alignment * alignment;
    }

    void check_plans(const NodeContext& context, std::span<const InputInfo> inputs) const {
        if (condition_.plan().continues() || body_.plan().continues()) {
            context.refuse("a subgraph whose shapes depend on data is not supported");
        }
        const TensorDescriptor& answer = condition_.plan().output_descriptor(0);
        if (answer.type != DataType::boolean || answer.elements() != 1) {
            context.refuse("expected a condition that makes one boolean");
        }
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const TensorDescriptor& made = body_.plan().output_descriptor(i);
            if (made.shape == inputs[i].descriptor.shape && made.type == inputs[i].descriptor.type) continue;
            context.refuse(fmt::format("expected states that keep their shape, found {} after {}",
                                       to_string(made.shape), to_string(inputs[i].descriptor.shape)));
        }
    }

    BodyMemory condition_;
    BodyMemory body_;
    std::vector<StatePlace> states_;
};

template <bool has_condition>
std::unique_ptr<Kernel> make_branches() {
    return std::make_unique<CircleBranches>(has_condition);
}

}  // namespace

void register_circle_control(KernelRegistry& registry) {
    registry.add({.domain = "circle",
                  .op_type = "IF",
                  .summary = "one of two subgraphs, by a condition",
                  .make = make_branches<true>,
                  .make_reference = make_branches<true>,
                  .useful_values = {0}});
    registry.add({.domain = "circle",
                  .op_type = "CALL",
                  .summary = "a subgraph",
                  .make = make_branches<false>,
                  .make_reference = make_branches<false>});
    registry.add({.domain = "circle",
                  .op_type = "WHILE",
                  .summary = "a subgraph again and again while another says so",
                  .make = make_kernel<CircleWhile>,
                  .make_reference = make_kernel<CircleWhile>});
}

}  // namespace qcalib
