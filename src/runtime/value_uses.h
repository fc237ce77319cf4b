#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace qcalib {

// Who reads which value of a graph, and which values nobody else would miss.
class ValueUses {
  public:
    // `wanted` says per value whether somebody wants to see it; `constant` answers the value of a tensor that
    // is known, or nullptr, and must outlive this.
    ValueUses(const Graph& graph, std::vector<bool> wanted,
              const std::function<const Tensor*(ValueId)>& constant);

    // The nodes that read the value, one for each time they do.
    const std::vector<NodeIndex>& users(ValueId value) const { return users_[value]; }
    // Float32 or of no declared type; false for no_value, as all below.
    bool is_float(ValueId value) const;
    // A float that nobody wants, no body reads and no output is.
    bool hidden(ValueId value) const { return is_float(value) && !seen_[value]; }
    // The one node that reads a hidden value, or no_node.
    NodeIndex only_user(ValueId value) const;
    // The number that a float32 constant of one element and at most `highest_rank` dimensions is.
    std::optional<float> number(ValueId value, std::size_t highest_rank) const;

  private:
    const Graph& graph_;
    const std::function<const Tensor*(ValueId)>& constant_;
    std::vector<bool> seen_;
    std::vector<std::vector<NodeIndex>> users_;
};

}  // namespace qcalib
