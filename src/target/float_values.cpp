#include "target/float_values.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace qcalib {

namespace {

// Operators whose first output may have another type than their first input, or is no tensor.
constexpr std::array<std::string_view, 30> type_changers{"ArgMax",
                                                         "ArgMin",
                                                         "Bernoulli",
                                                         "Cast",
                                                         "CastLike",
                                                         "DynamicQuantizeLinear",
                                                         "Equal",
                                                         "EyeLike",
                                                         "Greater",
                                                         "GreaterOrEqual",
                                                         "If",
                                                         "IsInf",
                                                         "IsNaN",
                                                         "Less",
                                                         "LessOrEqual",
                                                         "Loop",
                                                         "Multinomial",
                                                         "NonMaxSuppression",
                                                         "NonZero",
                                                         "Optional",
                                                         "OneHot",
                                                         "QuantizeLinear",
                                                         "RandomNormalLike",
                                                         "RandomUniformLike",
                                                         "Scan",
                                                         "SequenceConstruct",
                                                         "SequenceMap",
                                                         "Shape",
                                                         "Size",
                                                         "SplitToSequence"};

bool hands_type_on(const Node& node) {
    return node.domain.empty() &&
           std::find(type_changers.begin(), type_changers.end(), node.op_type) == type_changers.end();
}

bool is_float(const Graph& graph, ValueId value, const std::function<bool(ValueId)>& known_float) {
    const DataType declared = graph.values[value].declared_type;
    return declared == DataType::undefined ? known_float(value) : is_floating(declared);
}

}  // namespace

std::vector<bool> float_values(const Graph& graph, const std::function<bool(ValueId)>& known_float) {
    std::vector<bool> floats(graph.values.size());
    for (ValueId value = 0; value < graph.values.size(); ++value)
        floats[value] = is_float(graph, value, known_float);
    for (const Node& node : graph.nodes) {
        if (node.outputs.empty() || node.outputs[0] == no_value || node.inputs.empty()) continue;
        const ValueId output = node.outputs[0];
        const ValueId first = node.inputs[0];
        if (graph.values[output].declared_type != DataType::undefined || first == no_value) continue;
        if (floats[first] && hands_type_on(node)) floats[output] = true;
    }
    return floats;
}

}  // namespace qcalib
