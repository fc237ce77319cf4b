#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/body.h"
#include "runtime/kernel.h"
#include "runtime/kernels/body_memory.h"

namespace qcalib {

// The axis along which elements of a tensor are taken or put together, one an iteration.
struct SequenceAxis {
    std::int64_t axis = 0;  // may be negative, counted from the rank of the whole
    bool reverse = false;
};

// How the inputs and outputs of a node and of its body that is run several times are laid out. The body's
// inputs: `lead_inputs` that the node makes (a Loop's count and condition), the states, the elements of what
// is taken apart. Its outputs: `lead_outputs` (the condition), the states, the elements to put together. The
// node's inputs from `first_state` on: the states, what is taken apart; its outputs: the states, what was put
// together.
struct IterationForm {
    std::size_t lead_inputs = 0;
    std::size_t lead_outputs = 0;
    std::size_t first_state = 0;
    std::size_t states = 0;
    std::vector<SequenceAxis> taken;
    std::vector<SequenceAxis> collected;
};

// How often the body is run at most, and whether it is run at all.
struct Course {
    std::int64_t count = 0;
    bool go = true;
};

// What Loop and Scan have in common. Where the body's shapes do not change and it is known how often it is
// run, run() allocates nothing; else each iteration has the plan that its shapes ask for.
class IterationKernel : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override;
    Prepared prepare(const NodeContext& context) override;
    std::unique_ptr<KernelState> make_state() const override;
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override;
    std::vector<Tensor> make_outputs(std::span<const TensorView> inputs, Workspace& workspace) const override;

  protected:
    // The form of the node; refuses one whose inputs, outputs and body do not fit together.
    virtual IterationForm form_of(const NodeContext& context) const = 0;
    // The numbers of iterations where they are known before the run: otherwise nothing, with the inputs that
    // would have to be known in `needs_values` where that helps.
    virtual std::optional<std::int64_t> known_count(const NodeContext& context, const Plan& body,
                                                    std::vector<std::size_t>& needs_values) const = 0;
    virtual Course start(std::span<const TensorView> inputs) const = 0;

    const IterationForm& form() const { return form_; }

  private:
    struct FixedState;
    struct FreeState;

    std::vector<InputInfo> body_inputs(const NodeContext& context) const;
    bool fixed_shapes(std::span<const InputInfo> inputs) const;
    void prepare_fixed(const NodeContext& context, std::span<const InputInfo> inputs, std::int64_t count,
                       Prepared& prepared);
    void give_elements(std::span<const TensorView> inputs, std::int64_t iteration,
                       const BoundPlan& body) const;
    void collect_elements(const BoundPlan& body, std::int64_t iteration,
                          std::span<const MutableTensorView> outputs) const;
    void carry_states(const BoundPlan& body, std::byte* staging) const;
    std::vector<Tensor> inputs_of_iteration(std::span<const TensorView> inputs,
                                            std::span<const Tensor> states, std::int64_t iteration) const;
    TensorDescriptor nothing_collected(const NodeContext& context, std::size_t output) const;

    IterationForm form_;
    std::size_t first_captured_ = 0;
    std::shared_ptr<BodyPlans> plans_;
    BodyMemory body_;                  // where the shapes are fixed
    std::vector<std::size_t> staged_;  // states to copy aside before the states of the next iteration are set
    std::vector<TensorDescriptor> nothing_;  // what is collected where there is no iteration
};

}  // namespace qcalib
