#include "target/circle_constants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr float greatest_float = std::numeric_limits<float>::max();

// The greatest magnitude a bias's codes hold.
double bias_codes(int bits) {
    return bits == 8 ? std::numeric_limits<std::int32_t>::max()
                     : static_cast<double>(std::numeric_limits<std::int64_t>::max());
}

double product_of_scales(const Encoding& data, const Encoding& weight) {
    return static_cast<float>(data.scale) * static_cast<float>(weight.scale);
}

std::vector<float> floats_of(const Tensor& tensor) {
    std::vector<float> values(tensor.view().elements());  // the file's may lie unaligned
    if (!values.empty()) std::memcpy(values.data(), tensor.data(), values.size() * sizeof(float));
    return values;
}

// The extremes of those that stand for no mask; of all where there are no others.
Range range_without_masks(const std::vector<float>& values, Range all, std::size_t& masks) {
    constexpr float least_mask = 1e30F;
    std::optional<Range> range;
    for (const float value : values) {
        if (std::abs(value) >= least_mask) {
            ++masks;
            continue;
        }
        range = range ? Range{std::min<double>(range->min, value), std::max<double>(range->max, value)}
                      : Range{value, value};
    }
    return range.value_or(all);
}

// Whether each element is its channel's scale.
bool holds_scales(const std::vector<float>& values, const TensorEncoding& encoding) {
    if (values.size() != encoding.encodings.size()) return false;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (static_cast<float>(encoding.encodings[i].scale) != std::abs(values[i])) return false;
    }
    return true;
}

}  // namespace

CircleCoding circle_coding(const CircleGraph& graph, const Target& target, ValueId value,
                           const TensorEncoding& encoding) {
    for (const Node& node : graph.graph().nodes) {
        const CircleBiasRule* rule = target.circle->bias_rule(node.op_type);
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            if (node.inputs[i] != value) continue;
            if (rule != nullptr && rule->bias == i) return CircleCoding::bias;
            const bool sign = target.circle->is_sign(node.op_type, i) &&
                              holds_scales(floats_of(graph.constant(value)), encoding);
            if (sign) return CircleCoding::sign;
        }
    }
    return encoding.origin == "shared" ? CircleCoding::given : CircleCoding::own;
}

CircleConstants::CircleConstants(const CircleGraph& graph, const Target& target,
                                 const ResolvedOptions& options, CircleEncodings& encodings, Remarks& remarks)
    : graph_(graph),
      target_(target),
      options_(options),
      encodings_(encodings),
      remarks_(remarks),
      bits_(options.activations.bits),
      biases_(graph.graph().values.size()),
      weights_(graph.graph().values.size()) {
    for (const Node& node : graph.graph().nodes) {
        if (const std::optional<Product> product = product_of(node)) biases_[product->bias] = true;
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            if (graph.is_constant(node.inputs[i]) && target.weight_rule(node.op_type, i) != nullptr)
                weights_[node.inputs[i]] = true;
        }
    }
}

std::string CircleConstants::quoted(ValueId value) const {
    return fmt::format("'{}'", printable(graph_.name(value)));
}

std::optional<CircleConstants::Product> CircleConstants::product_of(const Node& node) const {
    const CircleBiasRule* rule = target_.circle->bias_rule(node.op_type);
    if (rule == nullptr || node.inputs.size() <= rule->bias) return std::nullopt;
    const Product product{&node, node.inputs[rule->data], node.inputs[rule->weight], node.inputs[rule->bias]};
    if (!graph_.is_constant(product.bias)) return std::nullopt;
    return product;
}

Decision& CircleConstants::decide(ValueId value, Decision::Kind kind, std::string method,
                                  const std::string& origin) {
    Encoded& encoded = encodings_.of[value];
    encoded.entry = TensorEncoding{graph_.name(value), {}, {}, origin};
    Decision& decision = encoded.decision;
    decision.tensor = graph_.name(value);
    decision.kind = kind;
    decision.method = std::move(method);
    decision.origin = origin;
    decision.rules = options_.activations;
    decision.by_rules = false;
    return decision;
}

void CircleConstants::encode_whole(ValueId value, Decision::Kind kind, const std::string& method) {
    const Tensor& tensor = graph_.constant(value);
    Decision& decision = decide(value, kind, method, kind == Decision::Kind::weight ? "weights" : "constant");
    const MethodChoice& choice = options_.weight_methods.of(graph_.name(value));
    if (kind == Decision::Kind::weight) {
        decision.ranges = chosen_weight_ranges(tensor, {}, graph_.name(value), choice, options_.activations);
    } else {
        std::size_t masks = 0;
        const Range all = weight_ranges(tensor.view(), {}, graph_.name(value)).front();
        decision.ranges = {range_without_masks(floats_of(tensor), all, masks)};
        if (masks > 0 && decision.ranges.front() != all)
            remarks_.add(fmt::format("{}: left out of its range: {} masks", quoted(value), masks));
    }
    encodings_.of[value].entry->encodings = {
        circle_encoding(decision.ranges.front(), bits_, *target_.circle)};
}

void CircleConstants::encode_operands() {
    for (const Node& node : graph_.graph().nodes) {
        for (const ValueId input : node.inputs) {
            if (!graph_.is_constant(input) || weights_[input] || biases_[input]) continue;
            if (encodings_.of[input].entry) continue;
            encode_whole(input, Decision::Kind::constant, "minmax");
            const std::vector<std::string>& known = target_.circle->own_constants;
            const bool handed =
                target_.circle->hand_rule(node.op_type, CircleHandRule::Way::to_inputs) != nullptr;
            if (handed || std::ranges::count(known, node.op_type) > 0) continue;
            remarks_.add(
                fmt::format("{}: circle-quantizer has no rule for a constant of {} (\"Unsupported Op for "
                            "const inputs\"): "
                            "encoded by its own range, as operands of ADD are",
                            quoted(input), node.op_type));
        }
    }
}

std::optional<int> CircleConstants::axis_of(const Node& node, std::size_t input, ValueId weight) const {
    const WeightRule* rule = target_.weight_rule(node.op_type, input);
    const auto rank = static_cast<int>(graph_.constant(weight).shape().size());
    if (rule == nullptr || rank == 0) return std::nullopt;
    const int axis = rule->channel_axis < 0 ? rule->channel_axis + rank : rule->channel_axis;
    if (axis >= 0 && axis < rank) return axis;
    fail("{}: expected a weight {} with an axis {}, found {} dimensions", label(graph_.graph(), node),
         quoted(weight), rule->channel_axis, rank);
}

// Nothing where its users want different ones, or no channels at all.
std::optional<int> CircleConstants::channel_axis(ValueId weight) {
    std::optional<int> axis;
    bool first = true;
    for (const Node& node : graph_.graph().nodes) {
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            if (node.inputs[i] != weight) continue;
            const std::optional<int> wanted = axis_of(node, i, weight);
            if (!first && wanted != axis) {
                remarks_.add(
                    fmt::format("{}: stays per tensor, since the operators that share it have their channels "
                                "elsewhere or "
                                "take none",
                                quoted(weight)));
                return std::nullopt;
            }
            axis = wanted;
            first = false;
        }
    }
    return axis;
}

void CircleConstants::encode_channels(ValueId weight, int axis, const MethodChoice& choice) {
    Decision& decision = decide(weight, Decision::Kind::weight, to_string(choice), "weights");
    decision.ranges = chosen_weight_ranges(graph_.constant(weight), axis, graph_.name(weight), choice,
                                           options_.activations);
    TensorEncoding& entry = *encodings_.of[weight].entry;
    entry.axis = axis;
    for (const Range& range : decision.ranges)
        entry.encodings.push_back(circle_encoding(range, bits_, *target_.circle));
}

void CircleConstants::encode_signs(ValueId weight, int axis) {
    Decision& decision = decide(weight, Decision::Kind::weight, "its values", "weights");
    TensorEncoding& entry = *encodings_.of[weight].entry;
    entry.axis = axis;
    for (const float value : floats_of(graph_.constant(weight))) {
        decision.ranges.push_back({std::min(0.0F, value), std::max(0.0F, value)});
        entry.encodings.push_back(circle_sign_encoding(value, bits_));
    }
    encodings_.coding[weight] = CircleCoding::sign;
}

void CircleConstants::encode_weight(ValueId weight, const Node& node, std::size_t input) {
    const Tensor& tensor = graph_.constant(weight);
    if (tensor.view().elements() == 0)
        fail("{}: expected a weight with elements, found none", quoted(weight));
    const std::vector<Range> extremes = weight_ranges(tensor.view(), {}, graph_.name(weight));
    if (extremes.front().min <= -greatest_float || extremes.front().max >= greatest_float) {
        fail("{}: expected finite weights, found {:.4g}, which circle-quantizer refuses as inf",
             quoted(weight),
             extremes.front().min <= -greatest_float ? extremes.front().min : extremes.front().max);
    }
    const MethodChoice& choice = options_.weight_methods.of(graph_.name(weight));
    const std::optional<int> axis = options_.per_channel_weights ? channel_axis(weight) : std::nullopt;
    if (!axis) return encode_whole(weight, Decision::Kind::weight, to_string(choice));
    if (!target_.circle->is_sign(node.op_type, input)) return encode_channels(weight, *axis, choice);
    const Shape& shape = tensor.shape();
    if (static_cast<std::size_t>(shape[static_cast<std::size_t>(*axis)]) == tensor.view().elements())
        return encode_signs(weight, *axis);
    remarks_.add(fmt::format(
        "{}: stays per tensor: circle-quantizer takes one value a channel alone for {}, found shape {}",
        quoted(weight), node.op_type, to_string(shape)));
    encode_whole(weight, Decision::Kind::weight, to_string(choice));
}

void CircleConstants::encode_weights() {
    for (const Node& node : graph_.graph().nodes) {
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            const ValueId weight = node.inputs[i];
            if (!graph_.is_constant(weight) || encodings_.of[weight].entry) continue;
            if (target_.weight_rule(node.op_type, i) != nullptr) encode_weight(weight, node, i);
        }
    }
    for (const Node& node : graph_.graph().nodes) {
        if (const std::optional<Product> product = product_of(node)) widen(*product);
    }
}

bool CircleConstants::widen_channel(const Product& product, std::size_t channel, float bias) {
    const Encoding& data = *encodings_.first(product.data);
    Encoding& weight = encodings_.of[product.weight].entry->encodings[channel];
    const double scale = product_of_scales(data, weight);
    const double most = bias_codes(bits_);
    if (bias == 0 || std::abs(bias) <= scale * most) return false;
    const double needed =
        std::abs(bias) / most * target_.circle->bias_margin / static_cast<float>(data.scale);
    remarks_.add(fmt::format(
        "{}: the scale of channel {} is widened from {:.6g} to {:.6g}: bias {} of {:.6g} in {} would be "
        "{:.4g} codes at the scale of input times weight",
        quoted(product.weight), channel, weight.scale, needed, quoted(product.bias), bias,
        label(graph_.graph(), *product.node),
        scale == 0 ? std::numeric_limits<double>::infinity() : bias / scale));
    weight = circle_encoding_of(needed, circle_zero_point(weight), bits_);
    return true;
}

void CircleConstants::widen(const Product& product) {
    const bool possible = encodings_.first(product.data) != nullptr &&
                          encodings_.first(product.weight) != nullptr && graph_.is_constant(product.weight);
    if (!possible) return;
    const std::size_t channels = encodings_.of[product.weight].entry->encodings.size();
    const std::vector<float> bias = floats_of(graph_.constant(product.bias));
    check_channels(product, bias.size(), channels);
    bool widened = false;
    for (std::size_t i = 0; i < bias.size(); ++i)
        widened |= widen_channel(product, channels == 1 ? 0 : i, bias[i]);
    if (!widened) return;
    encodings_.of[product.weight].decision.notes.push_back(
        fmt::format("widened so that bias {} fits", quoted(product.bias)));
}

void CircleConstants::check_channels(const Product& product, std::size_t elements,
                                     std::size_t channels) const {
    const Shape& shape = graph_.constant(product.bias).shape();
    if (shape.empty()) {
        fail("{}: expected a bias of shape [..., channels], found a scalar, which circle-quantizer refuses",
             quoted(product.bias));
    }
    if (channels == 1 || elements == channels) return;
    fail("{}: expected {} elements, a bias for each channel of {}, found {}", quoted(product.bias), channels,
         quoted(product.weight), elements);
}

void CircleConstants::encode_bias(const Product& product) {
    const Encoding* data = encodings_.first(product.data);
    if (data == nullptr || encodings_.first(product.weight) == nullptr) {
        encodings_.of[product.bias].decision.no_encoding =
            fmt::format("{} has no encoding to make the bias's of",
                        quoted(data == nullptr ? product.data : product.weight));
        return;
    }
    const TensorEncoding& weight = *encodings_.of[product.weight].entry;
    check_channels(product, graph_.constant(product.bias).view().elements(), weight.encodings.size());
    std::vector<Encoding> encodings;
    for (const Encoding& one : weight.encodings) {
        encodings.push_back(circle_encoding_of(product_of_scales(*data, one), 0,
                                               bits_ == 8 ? circle_bias_bits_8 : circle_bias_bits_16));
    }
    const auto [known, added] = bias_of_.emplace(product.bias, product.node);
    if (!added && encodings_.of[product.bias].entry->encodings != encodings) {
        fail(
            "{}: expected one scale for a bias, which has one entry, found that {} and {} give it different "
            "ones: "
            "let each have a constant of its own",
            quoted(product.bias), label(graph_.graph(), *known->second),
            label(graph_.graph(), *product.node));
    }
    Decision& decision = decide(
        product.bias, Decision::Kind::bias,
        fmt::format("scale of {} times that of {}", quoted(product.data), quoted(product.weight)), "bias");
    for (const Encoding& one : encodings) decision.ranges.push_back({one.min, one.max});
    TensorEncoding& entry = *encodings_.of[product.bias].entry;
    entry.axis = encodings.size() > 1
                     ? std::optional(static_cast<int>(graph_.constant(product.bias).shape().size()) - 1)
                     : std::nullopt;
    entry.encodings = std::move(encodings);
    encodings_.coding[product.bias] = CircleCoding::bias;
}

void CircleConstants::encode_biases() {
    for (const Node& node : graph_.graph().nodes) {
        if (const std::optional<Product> product = product_of(node)) encode_bias(*product);
    }
}

}  // namespace qcalib
