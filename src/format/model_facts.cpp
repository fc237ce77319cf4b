#include "format/model_facts.h"

#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "format/format_reader.h"
#include "format/tidl_weight_names.h"

namespace qcalib {

namespace {

// The axis of a weight that its operator makes output channels of; nothing for an operator without one.
std::optional<int> output_axis(const Node& node, std::size_t rank) {
    if (node.op_type == "Conv") return 0;
    if (node.op_type == "ConvTranspose") return 1;
    if (node.op_type == "MatMul") return static_cast<int>(rank) - 1;
    if (node.op_type == "Gemm") return node.attribute<std::int64_t>("transB", 0) != 0 ? 0 : 1;
    return std::nullopt;
}

using Axes = std::unordered_map<std::string, int>;

// Weights whose output channels do not lie on axis 0.
Axes unusual_axes(const Graph& graph) {
    Axes axes;
    for (const Node& node : graph.nodes) {
        if (node.inputs.size() < 2 || node.inputs[1] == no_value) continue;
        const Value& weight = graph.values[node.inputs[1]];
        if (!weight.initializer) continue;
        const std::optional<int> axis = output_axis(node, weight.initializer->shape().size());
        if (axis && *axis > 0) axes.emplace(weight.name, *axis);
    }
    return axes;
}

void place_channels(TensorEncoding& encoding, const Axes& axes, const Shape& shape) {
    if (!encoding.axis) return;
    const auto rank = static_cast<int>(shape.size());
    if (*encoding.axis < 0) *encoding.axis += rank;
    const auto found = axes.find(encoding.tensor);
    if (found == axes.end() || *encoding.axis != 0 || found->second >= rank) return;
    if (encoding.per_block() && encoding.block_axis == 1) encoding.block_axis = 0;
    encoding.axis = found->second;
}

Shape nesting_of(const TensorEncoding& encoding, const Shape& shape) {
    Shape nesting(shape.size(), 1);
    const auto place = [&](int axis) { return static_cast<std::size_t>(axis); };
    if (encoding.axis) nesting[place(*encoding.axis)] = shape[place(*encoding.axis)];
    nesting[place(*encoding.block_axis)] = shape[place(*encoding.block_axis)] / encoding.block_size;
    return nesting;
}

}  // namespace

ShapeLookup shapes_of(const Graph& graph) {
    return [&graph](const std::string& name) -> std::optional<Shape> {
        const ValueId id = graph.find(name);
        if (id == no_value) return std::nullopt;
        const Value& value = graph.values[id];
        if (value.initializer)
            return Shape(value.initializer->shape().begin(), value.initializer->shape().end());
        if (!value.declared_shape) return std::nullopt;
        Shape shape;
        for (const Dimension& dimension : *value.declared_shape) {
            if (!dimension.size) return std::nullopt;
            shape.push_back(*dimension.size);
        }
        return shape;
    };
}

void add_model_facts(EncodingFile& file, const Graph& graph, Remarks& remarks) {
    if (file.format.starts_with("tidl-")) name_tidl_weights(file, graph);
    const ShapeLookup shape = shapes_of(graph);
    const Axes axes = unusual_axes(graph);
    const bool implied_axes = file.format != "aimet-2.0.0" && file.format != "ort-overrides";
    std::vector<std::string> unknown;
    for (FileEntry& entry : file.entries) {
        const ValueId id = graph.find(entry.encoding.tensor);
        if (id == no_value) {
            unknown.push_back(entry.encoding.tensor);
            continue;
        }
        if (entry.section == Section::any) {
            entry.section = graph.values[id].initializer ? Section::parameter : Section::activation;
        }
        if (const std::optional<Shape> found = shape(entry.encoding.tensor)) {
            place_channels(entry.encoding, implied_axes ? axes : Axes{}, *found);
        }
    }
    if (!unknown.empty()) {
        remarks.add(fmt::format("{}: {} {} no tensor of the model: {}", printable(file.path.string()),
                                unknown.size(), unknown.size() == 1 ? "entry names" : "entries name",
                                name_list(unknown)));
    }
    std::vector<std::string> faults;
    for (const EntryFault& fault : check_shapes(file, shape)) faults.push_back(describe(file.path, fault));
    if (!faults.empty()) throw Error(join(faults, "\n"));
    for (FileEntry& entry : file.entries) {
        const std::optional<Shape> found = shape(entry.encoding.tensor);
        if (found && entry.encoding.per_block()) entry.nesting = nesting_of(entry.encoding, *found);
    }
}

}  // namespace qcalib
