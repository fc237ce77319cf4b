#include "simulate/chain_layers.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"

namespace qcalib {

namespace {

using LayerKind = ChainLayer::Kind;

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> types) {
    return std::ranges::find(types, type) != types.end();
}

class LayerReader {
  public:
    explicit LayerReader(const SimulatedModel& model)
        : model_(model),
          graph_(*model.graph()),
          layers_(graph_, [&](ValueId value) { return model.constant(value); }) {}

    std::vector<ChainLayer> run() const {
        std::vector<ChainLayer> result;
        for (NodeIndex index = 0; index < graph_.nodes.size(); ++index) {
            const Node& node = graph_.nodes[index];
            if (!node.bodies.empty()) {
                fail("{}: the integer chain has no If, Loop or Scan; use --arithmetic fake",
                     label(graph_, node));
            }
            const std::optional<std::size_t> place = layers_.of_node(index);
            if (!place) {
                result.push_back(lone_node(index));
            } else if (layers_.at(*place).nodes.front() == index) {
                result.push_back(read(layers_.at(*place)));
            }
        }
        return result;
    }

  private:
    bool is_activation(ValueId value) const { return value != no_value && model_.is_activation(value); }

    // Of no layer: an Identity or a Dropout, or what makes constants and shapes.
    ChainLayer lone_node(NodeIndex index) const {
        const Node& node = graph_.nodes[index];
        ChainLayer layer;
        layer.nodes = {index};
        layer.output = node.outputs.empty() ? no_value : node.outputs[0];
        const bool makes = std::ranges::any_of(node.outputs, [&](ValueId v) { return is_activation(v); });
        const bool moves = node.domain.empty() && is_one_of(node.op_type, {"Identity", "Dropout"});
        layer.kind = !makes ? LayerKind::constant : moves ? LayerKind::passed : LayerKind::function;
        return layer;
    }

    ChainLayer read(const TidlLayer& source) const {
        const Node& node = graph_.nodes[source.nodes.front()];
        ChainLayer layer;
        layer.nodes = source.nodes;
        layer.norm = source.norm;
        layer.weight = source.weight;
        layer.bias = source.bias;
        layer.output = source.output();
        layer.activation = source.activation;
        layer.is_unsigned = source.is_unsigned;
        layer.kind = kind_of(source, node);
        layer.leading = source.stands_alone && graph_.values[source.input_values.at(0)].producer == no_node;
        layer.whole = node.op_type == "GlobalAveragePool";
        layer.stays_float = source.type == "TIDL_SoftMaxLayer" &&
                            std::ranges::find(graph_.outputs, layer.output) != graph_.outputs.end();
        return layer;
    }

    LayerKind kind_of(const TidlLayer& layer, const Node& node) const {
        if (!is_activation(layer.output())) return LayerKind::constant;
        if (layer.type.empty() || layer.input_values.empty()) return LayerKind::function;
        if (layer.type == "TIDL_BatchNormLayer" && is_one_of(node.op_type, {"Add", "Sub", "Mul", "Div"}))
            return LayerKind::batch_norm;
        if (!is_activation(node.inputs.at(0))) return LayerKind::function;
        const std::string& type = node.op_type;
        const std::size_t activations = layer.input_values.size();
        const bool all = activations == node.inputs.size();
        if (layer.stands_alone) {
            const TidlActivation& activation = layer.activation;
            const bool known = activation.has_range() || activation.kind == TidlActivation::Kind::relu;
            return known ? LayerKind::clip : LayerKind::function;
        }
        if (is_one_of(type, {"Conv", "ConvTranspose"}))
            return has_weight(layer, node, {}) ? LayerKind::convolution : LayerKind::function;
        if (is_one_of(type, {"Gemm", "MatMul"}))
            return has_weight(layer, node, 2) ? LayerKind::inner_product : LayerKind::function;
        if (type == "BatchNormalization") return LayerKind::batch_norm;
        if (is_one_of(type, {"Add", "Sum", "Sub"}) && all) return LayerKind::sum;
        if (type == "Mul" && all) return LayerKind::product;
        if (is_one_of(type, {"GlobalAveragePool", "AveragePool"})) return LayerKind::average;
        if (type == "Concat" && all) return LayerKind::concat;
        if (layer.passes_scale && activations == 1 && (type != "Pad" || pads_zeros(node)))
            return LayerKind::passed;
        if (is_one_of(type, {"MaxPool", "GlobalMaxPool"})) return LayerKind::maximum;
        return LayerKind::function;
    }

    // Whether data times constant weights of that rank, plus constant biases, is all that it is.
    bool has_weight(const TidlLayer& layer, const Node& node, std::optional<std::size_t> rank) const {
        if (layer.input_values.size() != 1 || node.inputs.size() < 2 || node.inputs[1] != layer.weight)
            return false;
        if (layer.weight == no_value || node.attribute<std::int64_t>("transA", 0) != 0) return false;
        const Tensor& weight = *model_.constant(layer.weight);
        if (rank && weight.shape().size() != *rank) return false;
        if (layer.bias == no_value) return true;
        const Shape& bias = model_.constant(layer.bias)->shape();
        return element_count(bias) == 1 || (!bias.empty() && bias.back() == element_count(bias));
    }

    // Zeros are the code 0, and edges are codes that are there.
    bool pads_zeros(const Node& node) const {
        if (node.attribute<std::string>("mode", "constant") != "constant") return true;
        if (node.opset < 11) return node.attribute("value", 0.0F) == 0;
        if (node.inputs.size() < 3 || node.inputs[2] == no_value) return true;
        const Tensor* value = model_.constant(node.inputs[2]);
        return value != nullptr && value->view().elements() == 1 && numbers_of(value->view())[0] == 0;
    }

    const SimulatedModel& model_;
    const Graph& graph_;
    TidlLayers layers_;
};

}  // namespace

std::vector<ChainLayer> chain_layers(const SimulatedModel& model) {
    return LayerReader(model).run();
}

std::size_t range_clips(const SimulatedModel& model) {
    const Graph& graph = *model.graph();
    const bool quantizes = std::ranges::any_of(graph.nodes, [](const Node& node) {
        return node.op_type.find("QuantizeLinear") != std::string::npos;
    });
    if (quantizes) return 0;
    const TidlLayers layers(graph, [&](ValueId value) { return model.constant(value); });
    return static_cast<std::size_t>(std::ranges::count_if(layers.all(), [](const TidlLayer& layer) {
        return layer.activation.kind == TidlActivation::Kind::clip && layer.activation.has_range();
    }));
}

}  // namespace qcalib
