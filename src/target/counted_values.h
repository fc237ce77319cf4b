#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "statistics/statistics_file.h"
#include "target/constant_lookup.h"

namespace qcalib {

// The values of the graph in the order in which they come to be: its inputs, then what each node makes.
std::vector<ValueId> values_in_order(const Graph& graph);

// What the statistics hold of the values of a graph.
class CountedValues {
  public:
    CountedValues(const Graph& graph, const ConstantLookup& constant, const StatisticsFile& statistics);

    bool counted(ValueId value) const { return places_.find(value) != places_.end(); }
    std::size_t place(ValueId value) const { return places_.at(value); }
    // Counted, and no constants.
    const std::vector<bool>& activations() const { return activations_; }
    // Holding floating-point numbers, counted or not.
    const std::vector<bool>& floats() const { return floats_; }
    // Floats that are no constants, counted or not.
    const std::vector<bool>& computed() const { return computed_; }

  private:
    std::unordered_map<ValueId, std::size_t> places_;
    std::vector<bool> activations_;
    std::vector<bool> floats_;
    std::vector<bool> computed_;
};

}  // namespace qcalib
