#include "target/counted_values.h"

#include <algorithm>
#include <iterator>

#include "target/float_values.h"

namespace qcalib {

std::vector<ValueId> values_in_order(const Graph& graph) {
    std::vector<ValueId> values = graph.inputs;
    for (const Node& node : graph.nodes) {
        std::copy_if(node.outputs.begin(), node.outputs.end(), std::back_inserter(values),
                     [](ValueId output) { return output != no_value; });
    }
    return values;
}

CountedValues::CountedValues(const Graph& graph, const ConstantLookup& constant,
                             const StatisticsFile& statistics)
    : activations_(graph.values.size()), computed_(graph.values.size()) {
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        const auto found = statistics.find(graph.values[value].name);
        if (!found) continue;
        places_.emplace(value, *found);
        activations_[value] = !statistics.header().tensors[*found].constant;
    }
    floats_ = float_values(graph, [&](ValueId value) {
        if (counted(value)) return true;
        const Tensor* tensor = constant(value);
        return tensor != nullptr && is_floating(tensor->type());
    });
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        computed_[value] =
            counted(value) ? bool{activations_[value]} : floats_[value] && constant(value) == nullptr;
    }
}

}  // namespace qcalib
