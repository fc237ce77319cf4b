#include "format/circle_types.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace qcalib {

namespace {

// Operators whose first input does not hold the data.
struct DataInput {
    std::string_view op_type;
    std::size_t input = 0;
};
constexpr std::array<DataInput, 9> data_inputs{{{"SPLIT", 1},
                                                {"TRANSPOSE_CONV", 2},
                                                {"ONE_HOT", 2},
                                                {"SELECT", 1},
                                                {"SELECT_V2", 1},
                                                {"FILL", 1},
                                                {"EMBEDDING_LOOKUP", 1},
                                                {"SPARSE_TO_DENSE", 2},
                                                {"DYNAMIC_UPDATE_SLICE", 0}}};

// Operators whose outputs have a type of their own, which the file already says.
constexpr std::array<std::string_view, 23> own_types{
    "QUANTIZE",    "CAST",  "ARG_MAX",       "ARG_MIN",    "EQUAL",         "NOT_EQUAL",
    "GREATER",     "LESS",  "GREATER_EQUAL", "LESS_EQUAL", "LOGICAL_AND",   "LOGICAL_OR",
    "LOGICAL_NOT", "SHAPE", "RANK",          "WHERE",      "CUSTOM",        "IF",
    "WHILE",       "CALL",  "BITCAST",       "RANGE",      "RANDOM_UNIFORM"};

std::size_t data_input(const Node& node) {
    const auto found = std::ranges::find(data_inputs, node.op_type, &DataInput::op_type);
    return found == data_inputs.end() ? 0 : found->input;
}

std::optional<std::string> output_type(const Node& node, const std::vector<std::string>& types) {
    if (node.op_type == "DEQUANTIZE") return "float32";
    if (std::ranges::count(own_types, node.op_type) > 0) return std::nullopt;
    const std::size_t input = data_input(node);
    if (input >= node.inputs.size() || node.inputs[input] == no_value) return std::nullopt;
    return types[node.inputs[input]];
}

}  // namespace

std::vector<std::string> inferred_circle_types(const Graph& graph, std::vector<std::string> types) {
    for (const Node& node : graph.nodes) {
        const std::optional<std::string> type = output_type(node, types);
        if (!type) continue;
        for (const ValueId output : node.outputs) {
            // Integers beside the data: indices of TOPK_V2, counts of UNIQUE.
            const bool data = output != no_value && graph.values[output].declared_type == DataType::float32;
            if (data) types[output] = *type;
        }
    }
    return types;
}

}  // namespace qcalib
