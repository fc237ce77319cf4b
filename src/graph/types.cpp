#include "graph/types.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "graph/onnx_tensor.h"

namespace qcalib {

namespace {

struct OperatorType {
    std::string_view op_type;
    DataType type;  // of output 0
};

// Operators whose first output has one type whatever their inputs have.
constexpr std::array fixed_types = {
    OperatorType{"And", DataType::boolean},
    OperatorType{"ArgMax", DataType::int64},
    OperatorType{"ArgMin", DataType::int64},
    OperatorType{"ConvInteger", DataType::int32},
    OperatorType{"DynamicQuantizeLinear", DataType::uint8},
    OperatorType{"Equal", DataType::boolean},
    OperatorType{"Greater", DataType::boolean},
    OperatorType{"GreaterOrEqual", DataType::boolean},
    OperatorType{"IsInf", DataType::boolean},
    OperatorType{"IsNaN", DataType::boolean},
    OperatorType{"Less", DataType::boolean},
    OperatorType{"LessOrEqual", DataType::boolean},
    OperatorType{"MatMulInteger", DataType::int32},
    OperatorType{"NonMaxSuppression", DataType::int64},
    OperatorType{"NonZero", DataType::int64},
    OperatorType{"Not", DataType::boolean},
    OperatorType{"OptionalHasElement", DataType::boolean},
    OperatorType{"Or", DataType::boolean},
    OperatorType{"SequenceLength", DataType::int64},
    OperatorType{"Shape", DataType::int64},
    OperatorType{"Size", DataType::int64},
    OperatorType{"StringNormalizer", DataType::string},
    OperatorType{"Xor", DataType::boolean},
};

struct TypeInput {
    std::string_view op_type;
    std::size_t input;  // that hands its type on
};

// Operators that hand on the type of another input than their first.
constexpr std::array type_inputs = {
    TypeInput{"CastLike", 1},      TypeInput{"OneHot", 2},         TypeInput{"QLinearConv", 7},
    TypeInput{"QLinearMatMul", 7}, TypeInput{"QuantizeLinear", 2}, TypeInput{"DequantizeLinear", 1},
    TypeInput{"Where", 1},
};

// Operators whose type is an attribute's: its name, and the type without it (undefined: the first input's).
struct TypeAttribute {
    std::string_view op_type;
    std::string_view attribute;
    DataType otherwise;
};

constexpr std::array type_attributes = {
    TypeAttribute{"Bernoulli", "dtype", DataType::undefined},
    TypeAttribute{"BlackmanWindow", "output_datatype", DataType::float32},
    TypeAttribute{"Cast", "to", DataType::undefined},
    TypeAttribute{"EyeLike", "dtype", DataType::undefined},
    TypeAttribute{"HammingWindow", "output_datatype", DataType::float32},
    TypeAttribute{"HannWindow", "output_datatype", DataType::float32},
    TypeAttribute{"MelWeightMatrix", "output_datatype", DataType::float32},
    TypeAttribute{"Multinomial", "dtype", DataType::int32},
    TypeAttribute{"RandomNormal", "dtype", DataType::float32},
    TypeAttribute{"RandomNormalLike", "dtype", DataType::undefined},
    TypeAttribute{"RandomUniform", "dtype", DataType::float32},
    TypeAttribute{"RandomUniformLike", "dtype", DataType::undefined},
};

// Operators that make or take sequences and optional values, of which nothing is said.
constexpr std::array<std::string_view, 11> untyped = {
    "ConcatFromSequence",
    "Optional",
    "OptionalGetElement",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceMap",
    "SplitToSequence",
    "Unique",
};

template <typename Table>
const typename Table::value_type* find_row(const Table& table, std::string_view op_type) {
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.op_type == op_type; });
    return found == table.end() ? nullptr : &*found;
}

class TypeInference {
  public:
    explicit TypeInference(Graph& graph) : graph_(graph) {}

    void run(std::span<const NodeIndex> nodes) {
        for (const NodeIndex index : nodes) visit(graph_.nodes[index]);
    }

  private:
    DataType type_of(ValueId value) const {
        return value < graph_.values.size() ? graph_.values[value].declared_type : DataType::undefined;
    }

    void set(ValueId value, DataType type) {
        if (value == no_value || type_of(value) != DataType::undefined) return;
        graph_.values[value].declared_type = type;
    }

    // values `to` have the types of `from`, the first of each being at the given offsets
    void hand_on(std::span<const ValueId> from, std::size_t first, std::span<const ValueId> to,
                 std::size_t target) {
        for (; first < from.size() && target < to.size(); ++first, ++target)
            set(to[target], type_of(from[first]));
    }

    void visit(const Node& node) {
        if (!node.bodies.empty()) return visit_bodies(node);
        if (!node.domain.empty() || node.outputs.empty()) return;
        if (node.op_type == "Unique") set(node.outputs[0], type_of(input(node, 0)));
        if (std::find(untyped.begin(), untyped.end(), node.op_type) != untyped.end()) return;
        set(node.outputs[0], first_type(node));
        for (std::size_t i = 1; i < node.outputs.size(); ++i) set(node.outputs[i], further_type(node, i));
    }

    static ValueId input(const Node& node, std::size_t i) {
        return i < node.inputs.size() ? node.inputs[i] : no_value;
    }

    DataType first_type(const Node& node) const {
        if (node.op_type == "Constant") return constant_type(node);
        if (node.op_type == "ConstantOfShape") {
            const auto found = node.attributes.find("value");
            const auto* value =
                found == node.attributes.end() ? nullptr : std::get_if<Tensor>(&found->second);
            return value == nullptr ? DataType::float32 : value->type();
        }
        if (const auto* row = find_row(fixed_types, node.op_type)) return row->type;
        if (const auto* row = find_row(type_attributes, node.op_type)) {
            const auto found = node.attributes.find(row->attribute);
            const auto* code =
                found == node.attributes.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
            if (code != nullptr) return data_type_of_onnx(static_cast<std::int32_t>(*code));
            return row->otherwise == DataType::undefined ? type_of(input(node, 0)) : row->otherwise;
        }
        if (const auto* row = find_row(type_inputs, node.op_type)) {
            const DataType type = type_of(input(node, row->input));
            return type == DataType::undefined && node.op_type == "QuantizeLinear" ? DataType::uint8 : type;
        }
        return type_of(input(node, 0));
    }

    static DataType constant_type(const Node& node) {
        for (const auto& [name, value] : node.attributes) {
            if (const auto* tensor = std::get_if<Tensor>(&value)) return tensor->type();
            if (name == "value_float" || name == "value_floats") return DataType::float32;
            if (name == "value_int" || name == "value_ints") return DataType::int64;
            if (name == "value_string" || name == "value_strings") return DataType::string;
        }
        return DataType::undefined;
    }

    // Further outputs: indices, masks, or of the first output's type.
    DataType further_type(const Node& node, std::size_t output) const {
        if (node.op_type == "MaxPool" || node.op_type == "TopK") return DataType::int64;
        if (node.op_type == "Dropout") {
            return node.opset >= 10 ? DataType::boolean : type_of(node.outputs[0]);
        }
        if (node.op_type == "DynamicQuantizeLinear") {
            return output == 1 ? DataType::float32 : DataType::uint8;
        }
        return type_of(node.outputs[0]);
    }

    void visit_bodies(const Node& node) {
        for (const Body& body : node.bodies) {
            give_inputs(node, body);
            run(body.nodes);
            take_outputs(node, body);
        }
    }

    void give_inputs(const Node& node, const Body& body) {
        if (node.op_type == "Loop") {
            if (!body.inputs.empty()) set(body.inputs[0], DataType::int64);
            if (body.inputs.size() > 1) set(body.inputs[1], DataType::boolean);
            hand_on(node.inputs, 2, body.inputs, 2);
        } else if (node.op_type == "Scan") {
            hand_on(node.inputs, node.opset >= 9 ? 0 : 1, body.inputs, 0);
        }
    }

    void take_outputs(const Node& node, const Body& body) {
        if (node.op_type == "If" || node.op_type == "Scan") hand_on(body.outputs, 0, node.outputs, 0);
        if (node.op_type == "Loop") hand_on(body.outputs, 1, node.outputs, 0);
    }

    Graph& graph_;
};

}  // namespace

void infer_types(Graph& graph) {
    TypeInference(graph).run(graph.outermost_nodes());
}

}  // namespace qcalib
