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

// Makes one node of several where nobody wants to see what is between, in the place of the last of them:
//   qcalib.Conv   a convolution and the Relu, LeakyRelu, Clip, HardSwish (also written out), multiplications
//   by and
//                 additions of numbers behind it; a NaN that meets its Relu or Clip may become a bound
//   qcalib.Swish  Sigmoid and Mul with its input
//   qcalib.Gelu   Div by the root of 2, Erf, Add 1, Mul, Mul by 1/2
// `wanted` says per value whether somebody wants it; `constant` answers the value of a tensor that is known,
// or nullptr. Nodes of bodies are left alone.
FusedGraph fuse_nodes(const std::shared_ptr<const Graph>& graph, const std::vector<bool>& wanted,
                      const std::function<const Tensor*(ValueId)>& constant);

}  // namespace qcalib
