#pragma once

#include <memory>
#include <span>

#include "runtime/kernel.h"

namespace qcalib {

class Plan;

// The plans of one body of a node for one plan of what is around it, made on demand and kept. What the body
// captures comes to a BoundPlan as external values in the order of Node::captured. Thread-safe; the Program
// must live as long.
class BodyPlans {
  public:
    virtual ~BodyPlans() = default;
    // The plan for inputs like these, one for each Body::inputs. Throws Error naming the inner node that
    // cannot take its inputs.
    virtual std::shared_ptr<const Plan> plan(std::span<const InputInfo> inputs) = 0;
};

// What a kernel with bodies is given to prepare them with.
class BodyPlanner {
  public:
    virtual ~BodyPlanner() = default;
    virtual std::shared_ptr<BodyPlans> plans(const Node& node, const Body& body) const = 0;
};

}  // namespace qcalib
