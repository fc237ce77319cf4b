#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "target/target.h"
#include "tensor/range.h"

namespace qcalib {

// Which activations of a graph share one encoding, by the rules of a target.
class Sharing {
  public:
    // `activations`: per value whether it is one.
    Sharing(const Graph& graph, const Target& target, const std::vector<bool>& activations);

    // The value whose encoding this one takes (SharingRule::first_input), or no_value.
    ValueId source(ValueId value) const { return source_[value]; }
    // What source() leads to in the end: the value itself where it takes none.
    ValueId root(ValueId value) const;

    // Sets of roots that have one encoding (SharingRule::all_inputs), with the output of an operator that
    // makes them so.
    struct Group {
        std::vector<ValueId> members;  // ascending
        ValueId output = no_value;
    };
    const std::vector<Group>& groups() const { return groups_; }

  private:
    std::vector<ValueId> source_;
    std::vector<Group> groups_;
};

}  // namespace qcalib
