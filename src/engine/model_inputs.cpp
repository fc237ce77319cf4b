#include "engine/model_inputs.h"

namespace qcalib {

std::vector<InputSpec> input_specs(const Graph& graph) {
    std::vector<InputSpec> specs;
    for (const ValueId input : graph.inputs) {
        const Value& value = graph.values[input];
        InputSpec& spec = specs.emplace_back();
        spec.name = value.name;
        spec.type = is_floating(value.declared_type) ? DataType::float32 : value.declared_type;
        spec.rank_known = value.declared_shape.has_value();
        if (!value.declared_shape) continue;
        for (const Dimension& dimension : *value.declared_shape) spec.shape.push_back(dimension.size);
    }
    return specs;
}

}  // namespace qcalib
