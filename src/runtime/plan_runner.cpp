#include "runtime/plan_runner.h"

namespace qcalib {

void PlanRunner::run(const std::shared_ptr<const Plan>& plan, std::span<const TensorView> inputs,
                     std::span<const std::byte* const> external, std::uint64_t sample) {
    last_ = 0;
    BoundPlan* bound = &bind(0, plan, external);
    for (std::size_t i = 0; i < inputs.size(); ++i) bound->set_input(i, inputs[i]);
    bound->run(sample, profile_);
    while (bound->plan().continues()) {
        Part& done = *parts_[last_];
        const std::vector<Tensor> found = bound->take_found();
        bound->list_passed_on(done.passed_on);
        bound = &bind(++last_, bound->plan().continuation_->next(found), done.passed_on);
        for (std::size_t i = 0; i < found.size(); ++i) bound->set_input(i, found[i].view());
        bound->run(sample, profile_);
    }
}

BoundPlan& PlanRunner::bind(std::size_t part, const std::shared_ptr<const Plan>& plan,
                            std::span<const std::byte* const> external) {
    while (parts_.size() <= part) parts_.push_back(std::make_unique<Part>());
    Part& place = *parts_[part];
    if (place.arena.size() < plan->arena_bytes()) place.arena = HugeBuffer(plan->arena_bytes());
    if (place.scratch.size() < plan->scratch_bytes()) place.scratch = HugeBuffer(plan->scratch_bytes());
    if (!place.bound || !place.bound->is(plan, place.arena.data(), place.scratch.data(), external)) {
        place.bound.emplace(plan, place.arena.data(), place.scratch.data(), external);
    }
    return *place.bound;
}

}  // namespace qcalib
