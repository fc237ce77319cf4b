#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "graph/graph.h"

namespace qcalib {

// The domain of operators that are only made here; no file has them.
constexpr const char* fused_domain = "qcalib";

struct FusedGraph {
    std::shared_ptr<const Graph> graph;  // with the same values and as many nodes
    std::vector<bool> absorbed;  // per node: another node does its work, it is empty and not to be run
};

// Looks for convolutions whose output goes through activations (Relu, LeakyRelu, Clip, Sigmoid, SiLU,
// HardSwish also where they are written out, multiplication by and addition of a number) before anybody wants
// to see it, and makes each such chain one node "qcalib.Conv" in the place of the chain's last. `wanted` says
// per value whether somebody does; `constant` answers the value of a tensor that is known, or nullptr. Nodes
// of bodies are left alone. A NaN that a fused Relu or Clip meets may become one of its bounds.
FusedGraph fuse_convolutions(std::shared_ptr<const Graph> graph, const std::vector<bool>& wanted,
                             const std::function<const Tensor*(ValueId)>& constant);

}  // namespace qcalib
