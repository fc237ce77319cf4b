#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "target/constant_lookup.h"
#include "target/target.h"

namespace qcalib {

// One place of a graph where the target makes one operator of several.
struct Fusion {
    // A constant operand that has no tensor of its own any more.
    struct LostOperand {
        NodeIndex node = no_node;
        std::size_t input = 0;
    };
    const FusionPattern* pattern = nullptr;
    std::vector<NodeIndex> nodes;   // in the order of the form's statements
    std::vector<ValueId> inputs;    // activations, in the order in which the form names them
    std::vector<ValueId> inside;    // outputs of all nodes but the last: no tensors of the target's
    ValueId output = no_value;      // what is left
    std::vector<LostOperand> lost;  // constants
};

// Every fusion of a graph by the patterns of a target. A node is part of one at most: patterns that come
// first in the target's file are looked for first. What lies inside is read by nodes of the fusion alone.
// Graph and target must outlive this.
class Fusions {
  public:
    Fusions(const Graph& graph, const ConstantLookup& constant, const Target& target);

    const std::vector<Fusion>& all() const { return all_; }
    // The fusion that the value lies inside, or whose output it is, or nullptr.
    const Fusion* around(ValueId value) const { return find(inside_, value); }
    const Fusion* making(ValueId value) const { return find(outputs_, value); }
    // Whether the value has no tensor of its own and gets no encoding: it lies inside a fusion that is sure.
    bool vanishes(ValueId value) const;
    // The fusion in which that operand has no tensor of its own any more, or nullptr.
    const Fusion* losing(const Node& node, std::size_t input) const;
    // "Hswish making 'y'".
    std::string label(const Fusion& fusion) const;

  private:
    const Fusion* find(const std::unordered_map<ValueId, std::size_t>& map, ValueId value) const;
    void add(Fusion fusion);

    const Graph& graph_;
    std::vector<Fusion> all_;
    std::unordered_map<ValueId, std::size_t> inside_;
    std::unordered_map<ValueId, std::size_t> outputs_;
};

}  // namespace qcalib
