#include "target/tidl_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "target/float_values.h"

namespace qcalib {

namespace {

constexpr double no_bound = std::numeric_limits<double>::infinity();
constexpr Range open_bounds{-no_bound, no_bound};

constexpr std::string_view data_layer = "TIDL_DataLayer";
constexpr std::string_view constant_layer = "TIDL_ConstDataLayer";
constexpr std::string_view convolution_layer = "TIDL_ConvolutionLayer";
constexpr std::string_view deconvolution_layer = "TIDL_Deconv2DLayer";
constexpr std::string_view product_layer = "TIDL_InnerProductLayer";
constexpr std::string_view norm_layer = "TIDL_BatchNormLayer";
constexpr std::string_view eltwise_layer = "TIDL_EltWiseLayer";
constexpr std::string_view pooling_layer = "TIDL_PoolingLayer";
constexpr std::string_view concat_layer = "TIDL_ConcatLayer";
constexpr std::string_view resize_layer = "TIDL_ResizeLayer";
constexpr std::string_view pad_layer = "TIDL_PadLayer";
constexpr std::string_view convert_layer = "TIDL_DataConvertLayer";

// What an operator becomes.
struct OperatorForm {
    std::string_view op_type;
    std::string_view layer;
    bool passes_scale = false;
    bool takes_clip = false;  // a Clip behind it becomes a part of it
};

constexpr std::array operator_forms{
    OperatorForm{"Conv", convolution_layer, false, true},
    OperatorForm{"ConvTranspose", deconvolution_layer, false, true},
    OperatorForm{"Gemm", product_layer, false, true},
    OperatorForm{"MatMul", product_layer, false, true},
    OperatorForm{"BatchNormalization", norm_layer, false, true},
    OperatorForm{"Relu", norm_layer, false, true},
    OperatorForm{"Clip", norm_layer, false, true},
    OperatorForm{"LeakyRelu", norm_layer},
    OperatorForm{"PRelu", norm_layer},
    OperatorForm{"HardSigmoid", norm_layer},
    OperatorForm{"HardSwish", norm_layer},
    OperatorForm{"Tanh", norm_layer},
    OperatorForm{"Elu", norm_layer},
    OperatorForm{"Gelu", norm_layer},
    OperatorForm{"Sigmoid", "TIDL_SigmoidLayer"},
    OperatorForm{"Add", eltwise_layer, false, true},
    OperatorForm{"Sub", eltwise_layer, false, true},
    OperatorForm{"Mul", eltwise_layer, false, true},
    OperatorForm{"Div", eltwise_layer, false, true},
    OperatorForm{"Sum", eltwise_layer, false, true},
    OperatorForm{"Max", eltwise_layer, false, true},
    OperatorForm{"Min", eltwise_layer, false, true},
    OperatorForm{"MaxPool", pooling_layer, true, true},
    OperatorForm{"GlobalMaxPool", pooling_layer, true, true},
    OperatorForm{"AveragePool", pooling_layer, false, true},
    OperatorForm{"GlobalAveragePool", pooling_layer, false, true},
    OperatorForm{"Concat", concat_layer, false, true},
    OperatorForm{"Resize", resize_layer, false, true},
    OperatorForm{"Upsample", resize_layer, false, true},
    OperatorForm{"Softmax", "TIDL_SoftMaxLayer"},
    OperatorForm{"ArgMax", "TIDL_ArgOpLayer"},
    OperatorForm{"ArgMin", "TIDL_ArgOpLayer"},
    OperatorForm{"ReduceMax", "TIDL_ReduceLayer"},
    OperatorForm{"ReduceMin", "TIDL_ReduceLayer"},
    OperatorForm{"ReduceMean", "TIDL_ReduceLayer"},
    OperatorForm{"ReduceSum", "TIDL_ReduceLayer"},
    OperatorForm{"LayerNormalization", "TIDL_LayerNormLayer"},
    OperatorForm{"Gather", "TIDL_GatherLayer", true},
    OperatorForm{"Cast", convert_layer},
    OperatorForm{"Flatten", "TIDL_FlattenLayer", true},
    OperatorForm{"Reshape", "TIDL_ReshapeLayer", true},
    OperatorForm{"Squeeze", "TIDL_ReshapeLayer", true},
    OperatorForm{"Unsqueeze", "TIDL_ReshapeLayer", true},
    OperatorForm{"Transpose", "TIDL_TransposeLayer", true},
    OperatorForm{"Slice", "TIDL_SliceLayer", true},
    OperatorForm{"Split", "TIDL_SliceLayer", true},
    OperatorForm{"Pad", pad_layer, true},
    OperatorForm{"DepthToSpace", "TIDL_DepthToSpaceLayer", true},
};

const OperatorForm* form_of(const Node& node) {
    if (!node.domain.empty()) return nullptr;
    const auto* found = std::find_if(operator_forms.begin(), operator_forms.end(),
                                     [&](const OperatorForm& form) { return form.op_type == node.op_type; });
    return found == operator_forms.end() ? nullptr : found;
}

bool is_of(const Node& node, std::initializer_list<std::string_view> types) {
    return node.domain.empty() && std::find(types.begin(), types.end(), node.op_type) != types.end();
}

bool does_nothing(const Node& node) {
    return is_of(node, {"Identity", "Dropout"});
}

// float32's own limits stand for a bound left out.
double bound_or_open(double bound) {
    constexpr double most = 3e38;
    return bound >= most ? no_bound : bound <= -most ? -no_bound : bound;
}

std::optional<double> single_number(const Node& node, std::size_t input, const ConstantLookup& constant) {
    const Tensor* tensor = constant(node.inputs[input]);
    if (tensor == nullptr || tensor->descriptor().elements() != 1 || !is_floating(tensor->type()))
        return std::nullopt;
    return numbers_of(tensor->view()).front();
}

std::optional<Range> bounds_of_clip(const Node& node, const ConstantLookup& constant) {
    Range bounds = open_bounds;
    if (node.opset < 11) {
        bounds.min = node.attribute("min", -std::numeric_limits<float>::max());
        bounds.max = node.attribute("max", std::numeric_limits<float>::max());
    }
    for (std::size_t input = 1; input < std::min<std::size_t>(node.inputs.size(), 3); ++input) {
        if (node.inputs[input] == no_value) continue;
        const std::optional<double> bound = single_number(node, input, constant);
        if (!bound) return std::nullopt;
        (input == 1 ? bounds.min : bounds.max) = *bound;
    }
    return Range{bound_or_open(bounds.min), bound_or_open(bounds.max)};
}

std::optional<Range> bounds_of_extreme(const Node& node, const ConstantLookup& constant) {
    if (node.inputs.size() != 2) return std::nullopt;
    for (std::size_t input = 0; input < 2; ++input) {
        if (node.inputs[input] == no_value || node.inputs[1 - input] == no_value) return std::nullopt;
        if (constant(node.inputs[1 - input]) != nullptr) continue;
        const std::optional<double> bound = single_number(node, input, constant);
        if (!bound) continue;
        return node.op_type == "Max" ? Range{bound_or_open(*bound), no_bound}
                                     : Range{-no_bound, bound_or_open(*bound)};
    }
    return std::nullopt;
}

TidlActivation activation_of(Range bounds) {
    constexpr double relu6_end = 6;
    if (bounds.min == -no_bound && bounds.max == no_bound) return {};
    if (bounds.min == 0 && bounds.max == no_bound) return {TidlActivation::Kind::relu, bounds};
    if (bounds.min == 0 && bounds.max == relu6_end) return {TidlActivation::Kind::relu6, bounds};
    return {TidlActivation::Kind::clip, bounds};
}

class LayerBuilder {
  public:
    LayerBuilder(const Graph& graph, const ConstantLookup& constant)
        : graph_(graph),
          constant_(constant),
          floats_(float_values(graph,
                               [&](ValueId value) {
                                   const Tensor* tensor = constant(value);
                                   return tensor != nullptr && is_floating(tensor->type());
                               })),
          readers_(graph.values.size()),
          is_output_(graph.values.size()),
          taken_(graph.nodes.size()) {
        made.resize(graph.values.size());
        around.resize(graph.values.size());
        node.resize(graph.nodes.size());
        for (const ValueId output : graph.outputs) is_output_[output] = true;
        for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
            for (const ValueId input : graph.nodes[index].inputs) {
                if (input != no_value) readers_[input].push_back(index);
            }
        }
    }

    void build() {
        for (const ValueId input : graph_.inputs) {
            if (floats_[input]) add_data(data_layer, input);
        }
        for (const NodeIndex index : graph_.outermost_nodes()) {
            if (!taken_[index] && is_layer(graph_.nodes[index])) add_layer(index);
        }
    }

    std::vector<TidlLayer> layers;
    std::vector<std::optional<std::size_t>> made;
    std::vector<std::optional<std::size_t>> around;
    std::vector<std::optional<std::size_t>> node;

  private:
    bool is_activation(ValueId value) const {
        return value != no_value && floats_[value] && constant_(value) == nullptr;
    }

    bool is_layer(const Node& one) const {
        if (!one.bodies.empty() || is_of(one, {"Shape", "Size", "Constant"})) return false;
        const auto activation = [&](ValueId value) { return is_activation(value); };
        return std::any_of(one.inputs.begin(), one.inputs.end(), activation);
    }

    void add_data(std::string_view type, ValueId value) {
        TidlLayer layer;
        layer.type = type;
        layer.outputs = {value};
        made[value] = around[value] = layers.size();
        layers.push_back(std::move(layer));
    }

    void add_layer(NodeIndex index) {
        const Node& first = graph_.nodes[index];
        if (does_nothing(first)) return pass_name_on(first);
        const OperatorForm* form = form_of(first);
        TidlLayer layer;
        layer.type = form == nullptr ? "" : form->layer;
        layer.nodes = {index};
        for (const ValueId output : first.outputs) {
            if (output != no_value) layer.outputs.push_back(output);
        }
        if (layer.outputs.empty()) return;
        take_operands(first, layer);
        const bool clips = take_own_bounds(first, layer);
        const bool extends = form != nullptr && (clips || (form->takes_clip && layer.outputs.size() == 1));
        if (extends) take_nodes_behind(layer);
        layer.passes_scale = form != nullptr && form->passes_scale && !layer.inputs.empty() &&
                             layer.activation.kind == TidlActivation::Kind::none;
        layer.is_unsigned =
            layer.passes_scale ? layers[layer.inputs.front()].is_unsigned : layer.activation.is_unsigned();
        place(std::move(layer));
    }

    // Identity and Dropout: the same tensor under another name.
    void pass_name_on(const Node& one) {
        if (one.outputs.empty() || one.outputs[0] == no_value || one.inputs[0] == no_value) return;
        made[one.outputs[0]] = made[one.inputs[0]];
        around[one.outputs[0]] = around[one.inputs[0]];
    }

    void take_operands(const Node& first, TidlLayer& layer) {
        const bool weighted = is_of(first, {"Conv", "ConvTranspose", "Gemm", "MatMul"});
        const bool pairs = layer.type == eltwise_layer;
        for (std::size_t i = 0; i < first.inputs.size(); ++i) {
            const ValueId input = first.inputs[i];
            if (input == no_value) continue;
            if (is_activation(input)) {
                take_input(input, layer);
            } else if (weighted && constant_(input) != nullptr) {
                (i == 2 ? layer.bias : layer.weight) = input;
            } else if (pairs && constant_(input) != nullptr && !clip_bounds(first, constant_)) {
                take_constant_operand(first, input, layer);
            }
        }
    }

    void take_input(ValueId input, TidlLayer& layer) {
        layer.input_values.push_back(input);
        if (around[input]) layer.inputs.push_back(*around[input]);
    }

    void take_constant_operand(const Node& first, ValueId input, TidlLayer& layer) {
        if (first.inputs.size() == 2 && is_channelwise(first, input)) {
            layer.type = norm_layer;
            layer.weight = input;
            return;
        }
        if (!made[input]) add_data(constant_layer, input);
        take_input(input, layer);
    }

    // One number, or one for each channel (axis 1 of the other operand where its rank is known).
    bool is_channelwise(const Node& first, ValueId input) const {
        const Shape& shape = constant_(input)->shape();
        const ValueId other = first.inputs[0] == input ? first.inputs[1] : first.inputs[0];
        std::optional<std::size_t> from_end;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            if (shape[axis] == 1) continue;
            if (from_end) return false;
            from_end = shape.size() - axis;
        }
        if (other == no_value) return false;
        const auto& declared = graph_.values[other].declared_shape;
        if (!from_end || !declared || declared->size() < 3) return true;
        return *from_end == declared->size() - 1;
    }

    // Of a layer that is made for a Relu or Clip itself.
    bool take_own_bounds(const Node& first, TidlLayer& layer) {
        const std::optional<Range> bounds = clip_bounds(first, constant_);
        if (!bounds) return false;
        if (!tidl_takes_clip(*bounds)) {
            layer.type = "";
            layer.refused.push_back(layer.nodes.front());
            return false;
        }
        layer.type = norm_layer;
        layer.stands_alone = true;
        layer.activation = activation_of(*bounds);
        return true;
    }

    void take_nodes_behind(TidlLayer& layer) {
        while (true) {
            const ValueId output = layer.outputs.front();
            if (is_output_[output] || readers_[output].size() != 1) return;
            const NodeIndex next = readers_[output].front();
            const Node& behind = graph_.nodes[next];
            if (behind.owner != no_node || behind.outputs.empty() || behind.outputs[0] == no_value ||
                !take_behind(next, layer))
                return;
            taken_[next] = true;
            layer.nodes.push_back(next);
            inside_.push_back(output);
            layer.outputs = {behind.outputs[0]};
        }
    }

    bool take_behind(NodeIndex next, TidlLayer& layer) {
        const Node& behind = graph_.nodes[next];
        const bool bare = layer.activation.kind == TidlActivation::Kind::none;
        const bool leads = behind.inputs[0] == layer.outputs.front();
        if (leads && does_nothing(behind)) return true;
        if (const std::optional<Range> bounds = clip_bounds(behind, constant_)) {
            if (!tidl_takes_clip(*bounds)) return false;
            const Range before = bare ? open_bounds : layer.activation.bounds;
            layer.activation =
                activation_of({std::max(before.min, bounds->min), std::min(before.max, bounds->max)});
            return true;
        }
        const bool convolves = layer.type == convolution_layer || layer.type == deconvolution_layer;
        if (bare && leads && convolves && layer.norm == no_node && is_of(behind, {"BatchNormalization"})) {
            layer.norm = next;
            return true;
        }
        if (bare && layer.bias == no_value && layer.nodes.size() == 1 &&
            is_of(graph_.nodes[layer.nodes.front()], {"MatMul"}) && is_of(behind, {"Add"}))
            return take_bias(behind, layer);
        return false;
    }

    bool take_bias(const Node& add, TidlLayer& layer) const {
        for (const ValueId operand : add.inputs) {
            const Tensor* bias = operand == no_value ? nullptr : constant_(operand);
            if (bias == nullptr) continue;
            const Shape& shape = bias->shape();
            const auto elements = static_cast<std::int64_t>(bias->descriptor().elements());
            if (elements != 1 && (shape.empty() || shape.back() != elements)) return false;
            layer.bias = operand;
            return true;
        }
        return false;
    }

    void place(TidlLayer layer) {
        const std::size_t index = layers.size();
        for (const NodeIndex one : layer.nodes) node[one] = index;
        for (const ValueId value : inside_) around[value] = index;
        for (const ValueId value : layer.outputs) made[value] = around[value] = index;
        inside_.clear();
        layers.push_back(std::move(layer));
    }

    const Graph& graph_;
    const ConstantLookup& constant_;
    std::vector<bool> floats_;
    std::vector<std::vector<NodeIndex>> readers_;
    std::vector<bool> is_output_;
    std::vector<bool> taken_;
    std::vector<ValueId> inside_;  // of the layer being built
};

}  // namespace

bool TidlActivation::has_range() const {
    return (kind == Kind::relu6 || kind == Kind::clip) && std::isfinite(bounds.min) &&
           std::isfinite(bounds.max);
}

bool TidlActivation::is_unsigned() const {
    return kind != Kind::none && bounds.min >= 0;
}

bool TidlLayer::lacks_range() const {
    if (type == data_layer || type == constant_layer || type == pad_layer || type == convert_layer)
        return false;
    if (activation.has_range()) return false;
    return type != norm_layer || activation.kind != TidlActivation::Kind::none;
}

TidlLayers::TidlLayers(const Graph& graph, const ConstantLookup& constant) {
    LayerBuilder builder(graph, constant);
    builder.build();
    all_ = std::move(builder.layers);
    made_ = std::move(builder.made);
    around_ = std::move(builder.around);
    node_ = std::move(builder.node);
}

std::optional<std::size_t> TidlLayers::making(ValueId value) const {
    return value == no_value ? std::nullopt : made_[value];
}

std::optional<std::size_t> TidlLayers::around(ValueId value) const {
    return value == no_value ? std::nullopt : around_[value];
}

std::optional<std::size_t> TidlLayers::of_node(NodeIndex node) const {
    return node == no_node ? std::nullopt : node_[node];
}

std::size_t TidlLayers::scale_of(std::size_t layer) const {
    while (all_[layer].passes_scale) layer = all_[layer].inputs.front();
    return layer;
}

std::vector<std::size_t> TidlLayers::readers(std::size_t layer) const {
    std::vector<std::size_t> found;
    for (std::size_t other = layer + 1; other < all_.size(); ++other) {
        const std::vector<std::size_t>& inputs = all_[other].inputs;
        if (std::find(inputs.begin(), inputs.end(), layer) != inputs.end()) found.push_back(other);
    }
    return found;
}

std::optional<Range> clip_bounds(const Node& node, const ConstantLookup& constant) {
    if (!node.domain.empty() || node.inputs.empty() || node.inputs[0] == no_value) return std::nullopt;
    if (node.op_type == "Relu") return Range{0, no_bound};
    if (node.op_type == "Clip") return bounds_of_clip(node, constant);
    if (node.op_type == "Max" || node.op_type == "Min") return bounds_of_extreme(node, constant);
    return std::nullopt;
}

bool tidl_takes_clip(Range bounds) {
    return bounds.min <= 0 && bounds.max > 0;
}

}  // namespace qcalib
