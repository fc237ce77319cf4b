#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "runtime/body.h"
#include "runtime/bound_plan.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/body_memory.h"

namespace qcalib {

namespace {

constexpr std::array<std::string_view, 2> branch_names = {"else_branch", "then_branch"};

// The branch that a known condition takes; nullptr too where the node is not sound, which prepare() tells.
const Body* taken_branch(const Node& node, std::span<const InputInfo> inputs) {
    if (inputs.empty() || !inputs[0].constant || inputs[0].descriptor.type != DataType::boolean ||
        inputs[0].descriptor.elements() != 1) {
        return nullptr;
    }
    const Body* body = node.body(branch_names[inputs[0].constant->view().as<std::uint8_t>()[0] != 0 ? 1 : 0]);
    return body != nullptr && body->outputs.size() == node.outputs.size() ? body : nullptr;
}

// An If whose condition is data: both branches are prepared, and one is run. Where their outputs do not have
// the same shapes, or one cannot be prepared, the condition must be known first.
class IfKernel : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return present_orders(context);
    }

    Prepared prepare(const NodeContext& context) override {
        check(context);
        first_captured_ = context.node.inputs.size();
        Prepared prepared;
        try {
            for (std::size_t i = 0; i < branches_.size(); ++i) {
                const Body& body = *context.node.body(branch_names[i]);
                branches_[i] = BodyMemory(context.bodies->plans(context.node, body)->plan({}));
            }
        } catch (const Error&) {
            prepared.needs_values = {0};
            return prepared;
        }
        const Plan& plan = branches_[1].plan();
        for (std::size_t i = 0; i < context.node.outputs.size(); ++i) {
            if (!same_output(i)) {
                prepared.needs_values = {0};
                return prepared;
            }
            prepared.outputs.push_back(plan.output_descriptor(i));
            prepared.rounding.push_back(plan.declared_type(context.node.body(branch_names[1])->outputs[i]));
        }
        prepared.scratch_bytes = std::max(branches_[0].bytes(), branches_[1].bytes());
        return prepared;
    }

    std::unique_ptr<KernelState> make_state() const override { return std::make_unique<State>(); }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        auto& state = static_cast<State&>(*workspace.state);
        if (!state.branches[0]) {
            const std::vector<const std::byte*> captured = addresses_of(inputs.subspan(first_captured_));
            for (std::size_t i = 0; i < branches_.size(); ++i) {
                branches_[i].bind(state.branches[i], workspace.scratch.data(), captured);
            }
        }
        BoundPlan& branch = *state.branches[inputs[0].as<std::uint8_t>()[0] != 0 ? 1 : 0];
        branch.run(workspace.sample);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (outputs[i].data != nullptr) copy_to_order(branch.output(i), outputs[i]);
        }
    }

  private:
    struct State : KernelState {
        std::array<std::optional<BoundPlan>, 2> branches;
    };

    static void check(const NodeContext& context) {
        if (!context.has_input(0) || context.input(0).type != DataType::boolean ||
            context.input(0).elements() != 1) {
            context.refuse(fmt::format(
                "expected one boolean as its condition, found {}",
                context.has_input(0)
                    ? fmt::format("{} {}", name_of(context.input(0).type), to_string(context.input(0).shape))
                    : "none"));
        }
        for (const std::string_view name : branch_names) {
            const Body* body = context.node.body(name);
            if (body == nullptr) context.refuse(fmt::format("expected a graph '{}', found none", name));
            if (body->outputs.size() != context.node.outputs.size() || !body->inputs.empty()) {
                context.refuse(fmt::format("{}: expected no inputs and {} outputs, found {} and {}", name,
                                           context.node.outputs.size(), body->inputs.size(),
                                           body->outputs.size()));
            }
        }
    }

    bool same_output(std::size_t i) const {
        if (branches_[0].plan().continues() || branches_[1].plan().continues()) return false;
        const TensorDescriptor& a = branches_[0].plan().output_descriptor(i);
        const TensorDescriptor& b = branches_[1].plan().output_descriptor(i);
        return a.type == b.type && a.shape == b.shape;
    }

    std::size_t first_captured_ = 0;
    std::array<BodyMemory, 2> branches_;  // else, then
};

}  // namespace

void register_if(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "If",
                  .since = 1,
                  .summary = "One of two graphs, by a condition",
                  .make = make_kernel<IfKernel>,
                  .make_reference = make_kernel<IfKernel>,
                  .useful_values = {0},
                  .taken_body = taken_branch});
}

}  // namespace qcalib
