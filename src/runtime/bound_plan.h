#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/plan.h"
#include "runtime/profile.h"

namespace qcalib {

// A plan bound to memory, ready to run. For one thread at a time.
class BoundPlan {
  public:
    // `arena` and `scratch` have as many bytes as the plan asks for; `external` are the values from around
    // it.
    BoundPlan(std::shared_ptr<const Plan> plan, std::byte* arena, std::byte* scratch,
              std::span<const std::byte* const> external);

    // Whether it is bound to just this.
    bool is(const std::shared_ptr<const Plan>& plan, const std::byte* arena, const std::byte* scratch,
            std::span<const std::byte* const> external) const;

    void set_input(std::size_t i, TensorView value) const;
    // Runs the steps in order and calls the taps. Errors name the node and its output. `profile`, if any,
    // gets what each step took.
    void run(std::uint64_t sample, Profile* profile = nullptr);
    // What an input holds, or of a body what it gave.
    MutableTensorView input(std::size_t i) const { return view(plan_->inputs_[i].tensor); }
    TensorView output(std::size_t i) const { return view(plan_->outputs_[i].tensor); }

    const Plan& plan() const { return *plan_; }
    // Of a plan that continues: what the next part is made for, and the addresses of its external values.
    std::vector<Tensor> take_found();
    void list_passed_on(std::vector<const std::byte*>& addresses) const;

  private:
    struct BoundStep {
        std::vector<TensorView> inputs;
        std::vector<MutableTensorView> outputs;
        std::unique_ptr<KernelState> state;
        Workspace workspace;
    };

    std::byte* address(const PlanTensor& tensor) const;
    MutableTensorView view(std::int32_t tensor) const;
    void execute(std::size_t step, std::uint64_t sample);
    void execute_timed(std::size_t step, std::uint64_t sample);
    void observe(std::span<const Observation> observations, std::uint64_t sample) const;

    std::shared_ptr<const Plan> plan_;
    std::byte* arena_;
    std::byte* scratch_;
    std::vector<const std::byte*> external_;
    std::vector<BoundStep> bound_;
    std::vector<double> seconds_;  // per step of this run, where a profile is kept
    std::vector<Tensor> made_;     // by a last step whose shapes depend on data
};

}  // namespace qcalib
