#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/bound_plan.h"
#include "runtime/kernel.h"

namespace qcalib {

// The plan of a body whose shapes are known, and how it lies in the scratch memory of the node that runs it.
class BodyMemory {
  public:
    BodyMemory() = default;
    explicit BodyMemory(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

    const Plan& plan() const { return *plan_; }
    // Bytes of scratch memory: its arena, then its own scratch.
    std::size_t bytes() const { return arena_bytes() + plan_->scratch_bytes(); }
    // `captured` are the addresses of what the node captures, which must stay.
    void bind(std::optional<BoundPlan>& bound, std::byte* memory,
              std::span<const std::byte* const> captured) const {
        bound.emplace(plan_, memory, memory + arena_bytes(), captured);
    }

  private:
    std::size_t arena_bytes() const { return (plan_->arena_bytes() + alignment - 1) / alignment * alignment; }

    static constexpr std::size_t alignment = 64;
    std::shared_ptr<const Plan> plan_;
};

// The orders that a node's inputs and what its bodies capture have anyway.
std::vector<MemoryOrder> present_orders(const NodeContext& context);
std::vector<const std::byte*> addresses_of(std::span<const TensorView> views);

}  // namespace qcalib
