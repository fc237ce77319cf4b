#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/plan.h"

namespace qcalib {

// What one worker needs to run plans: arena, scratch memory, views and kernel states bound to them. Not
// shared.
class Frame {
  public:
    // Runs one sample: copies the inputs in, runs the steps in order, calls the taps. Sets the denormal and
    // single-thread guards itself. After the first run of a plan, further runs of it allocate nothing. Errors
    // name the node and its output.
    void run(const std::shared_ptr<const Plan>& plan, std::span<const Tensor> inputs, std::uint64_t sample);

  private:
    struct BoundStep {
        std::vector<TensorView> inputs;
        std::vector<MutableTensorView> outputs;
        std::unique_ptr<KernelState> state;
        Workspace workspace;
    };

    void bind(const std::shared_ptr<const Plan>& plan);
    std::byte* address(const PlanTensor& tensor) const;
    void copy_inputs(std::span<const Tensor> inputs) const;
    void execute(std::size_t step);
    void observe(std::span<const Observation> observations, std::uint64_t sample) const;

    std::shared_ptr<const Plan> plan_;
    HugeBuffer arena_;
    HugeBuffer scratch_;
    std::vector<BoundStep> bound_;
};

}  // namespace qcalib
