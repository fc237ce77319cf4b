#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/bound_plan.h"
#include "runtime/weight_cache.h"

namespace qcalib {

// Runs a plan in memory of its own and, where shapes depend on data, the parts that follow it. Once a plan
// has run, running it again allocates nothing. For one thread at a time.
class PlanRunner {
  public:
    // `external` are the plan's external values. Errors name the node and its output.
    void run(const std::shared_ptr<const Plan>& plan, std::span<const TensorView> inputs,
             std::span<const std::byte* const> external, std::uint64_t sample);

    // Adds the time of each step of the runs to come to `profile`, which must outlive them; nullptr: no more.
    // The steps of bodies are part of their node's.
    void record(Profile* profile) { profile_ = profile; }

    // What the body that ran last gave.
    TensorView output(std::size_t i) const { return parts_[last_]->bound->output(i); }

  private:
    // Where one part of a plan runs.
    struct Part {
        HugeBuffer arena;
        HugeBuffer scratch;
        std::optional<BoundPlan> bound;
        std::vector<const std::byte*> passed_on;  // external values of the part behind
    };

    BoundPlan& bind(std::size_t part, const std::shared_ptr<const Plan>& plan,
                    std::span<const std::byte* const> external);

    std::vector<std::unique_ptr<Part>> parts_;
    std::size_t last_ = 0;
    Profile* profile_ = nullptr;
};

}  // namespace qcalib
