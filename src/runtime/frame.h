#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/plan.h"
#include "runtime/plan_runner.h"

namespace qcalib {

// What one worker needs to run plans: arena, scratch memory, views and kernel states bound to them. Not
// shared.
class Frame {
  public:
    // Runs one sample: copies the inputs in, runs the steps in order, calls the taps. Sets the denormal and
    // single-thread guards itself. After the first run of a plan, further runs of it allocate nothing, unless
    // shapes depend on data. Errors name the node and its output. The plan's Program must still live.
    void run(const std::shared_ptr<const Plan>& plan, std::span<const Tensor> inputs, std::uint64_t sample);

    // Adds the time of each step of the runs to come to `profile`, which must outlive them; nullptr: no more.
    void record(Profile* profile) { runner_.record(profile); }

  private:
    PlanRunner runner_;
    std::vector<TensorView> views_;
};

}  // namespace qcalib
