#include "simulate/chain_weights.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "simulate/chain_scales.h"

namespace qcalib {

namespace {

double greatest_magnitude_of(const std::vector<double>& numbers) {
    double greatest = 0;
    for (const double number : numbers) greatest = std::max(greatest, std::abs(number));
    return greatest;
}

// y = x * factor + term.
struct ChannelFactors {
    std::vector<double> factors;
    std::vector<double> terms;
};

ChannelFactors normalization_factors(const SimulatedModel& model, const Node& node) {
    const auto numbers = [&](std::size_t input) {
        return numbers_of(model.constant(node.inputs[input])->view());
    };
    const std::vector<double> gamma = numbers(1);
    const std::vector<double> beta = numbers(2);
    const std::vector<double> mean = numbers(3);
    const std::vector<double> variance = numbers(4);
    const auto epsilon = static_cast<double>(node.attribute("epsilon", 1e-5F));
    ChannelFactors result;
    for (std::size_t c = 0; c < gamma.size(); ++c) {
        result.factors.push_back(gamma[c] / std::sqrt(variance.at(c) + epsilon));
        result.terms.push_back(beta.at(c) - mean.at(c) * result.factors.back());
    }
    return result;
}

// Which channel each weight makes.
void number_channels(const Node& node, LayerWeights& result) {
    const Shape& shape = result.shape;
    const std::size_t count = result.weights.size();
    result.channels.resize(count);
    const bool matrix = node.op_type == "MatMul" || node.op_type == "Gemm";
    const bool transposed = node.op_type == "ConvTranspose";
    const bool rows = matrix && node.attribute<std::int64_t>("transB", 0) == 0;
    const auto groups = static_cast<std::size_t>(transposed ? node.attribute<std::int64_t>("group", 1) : 1);
    const auto outer = static_cast<std::size_t>(shape.at(0));
    const auto inner = static_cast<std::size_t>(shape.at(1));
    result.channel_count = transposed ? inner * groups : rows ? inner : outer;
    const std::size_t block = std::max<std::size_t>(count / std::max<std::size_t>(outer, 1), 1);
    const std::size_t taps = std::max<std::size_t>(block / std::max<std::size_t>(inner, 1), 1);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t first = i / block;
        const std::size_t second = i % block / taps;
        result.channels[i] = transposed ? first / (outer / groups) * inner + second : rows ? second : first;
    }
}

void read_product(const SimulatedModel& model, const Node& node, const ChainLayer& layer,
                  LayerWeights& result) {
    result.value = layer.weight;
    const Tensor& weight = *model.constant(result.value);
    result.shape = weight.shape();
    result.weights = numbers_of(weight.view());
    number_channels(node, result);
    const bool gemm = node.op_type == "Gemm";
    const double alpha = gemm ? static_cast<double>(node.attribute("alpha", 1.0F)) : 1;
    const double beta = gemm ? static_cast<double>(node.attribute("beta", 1.0F)) : 1;
    for (double& one : result.weights) one *= alpha;
    result.axis = layer.kind == ChainLayer::Kind::inner_product ? -1 : 1;
    if (layer.bias == no_value) return;
    if (beta == 1) result.bias_value = layer.bias;
    result.biases = numbers_of(model.constant(layer.bias)->view());
    if (result.biases.size() == 1) result.biases.resize(result.channel_count, result.biases.front());
    for (double& one : result.biases) one *= beta;
}

void take_in_norm(const ChannelFactors& norm, LayerWeights& result) {
    result.bias_value = no_value;
    for (std::size_t i = 0; i < result.weights.size(); ++i)
        result.weights[i] *= norm.factors.at(result.channels[i]);
    result.biases.resize(result.channel_count, 0);
    for (std::size_t c = 0; c < result.channel_count; ++c)
        result.biases[c] = result.biases[c] * norm.factors.at(c) + norm.terms.at(c);
}

// y = x op c or c op x, one number or one a channel.
bool read_arithmetic(const SimulatedModel& model, const Node& node, LayerWeights& result) {
    const std::size_t place = model.is_activation(node.inputs[0]) ? 1 : 0;
    const Tensor& constant = *model.constant(node.inputs[place]);
    const std::vector<double> numbers = numbers_of(constant.view());
    const bool first = place == 0;
    const bool adds = node.op_type == "Add" || node.op_type == "Sub";
    if (first && node.op_type == "Div") return false;
    for (std::size_t axis = 0; axis < constant.shape().size(); ++axis) {
        if (constant.shape()[axis] != 1)
            result.axis =
                static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(constant.shape().size());
    }
    result.channel_count = numbers.size();
    const bool subtracts = node.op_type == "Sub";
    for (std::size_t c = 0; c < numbers.size(); ++c) {
        result.channels.push_back(c);
        const double factor = node.op_type == "Div" ? 1 / numbers[c] : numbers[c];
        result.weights.push_back(!adds ? factor : subtracts && first ? -1 : 1);
        if (adds) result.biases.push_back(subtracts && !first ? -numbers[c] : numbers[c]);
    }
    return true;
}

}  // namespace

double LayerWeights::greatest_weight() const {
    return greatest_magnitude_of(weights);
}

double LayerWeights::greatest_bias() const {
    return greatest_magnitude_of(biases);
}

std::optional<LayerWeights> layer_weights(const SimulatedModel& model, const ChainLayer& layer) {
    const Graph& graph = *model.graph();
    const Node& node = graph.nodes[layer.node()];
    LayerWeights result;
    if (layer.kind == ChainLayer::Kind::clip) {
        result.weights = {1};
        result.channels = {0};
    } else if (layer.kind == ChainLayer::Kind::batch_norm && node.op_type != "BatchNormalization") {
        if (!read_arithmetic(model, node, result)) return std::nullopt;
    } else if (layer.kind == ChainLayer::Kind::batch_norm) {
        ChannelFactors norm = normalization_factors(model, node);
        result.channel_count = norm.factors.size();
        for (std::size_t c = 0; c < norm.factors.size(); ++c) result.channels.push_back(c);
        result.weights = std::move(norm.factors);
        result.biases = std::move(norm.terms);
    } else {
        read_product(model, node, layer, result);
        if (layer.norm != no_node)
            take_in_norm(normalization_factors(model, graph.nodes[layer.norm]), result);
    }
    for (const double weight : result.weights) {
        if (!std::isfinite(weight)) return std::nullopt;
    }
    return result;
}

std::vector<std::int64_t> weight_codes(const std::vector<double>& weights, double scale, int bits,
                                       TopWeight top) {
    const std::int64_t end = std::int64_t{1} << (bits - 1);
    const std::int64_t greatest = top == TopWeight::kept ? end : end - 1;
    std::vector<std::int64_t> codes;
    codes.reserve(weights.size());
    for (const double weight : weights) {
        const double code =
            std::clamp(std::round(weight * scale), -static_cast<double>(end), static_cast<double>(greatest));
        codes.push_back(static_cast<std::int64_t>(code));
    }
    return codes;
}

std::vector<double> bias_codes(const std::vector<double>& biases, double sums, int bits, bool signed_input,
                               BiasForm form) {
    const double limit = greatest_magnitude_of(biases);
    const double own = chain_scale(8, true, limit);
    const SplitBias split = split_bias(limit, sums, bits, signed_input);
    std::vector<double> codes;
    for (const double bias : biases) {
        switch (form) {
            case BiasForm::floating:
                codes.push_back(std::round(bias * sums));
                break;
            case BiasForm::int32:
                codes.push_back(std::clamp(std::round(bias * sums), -2147483648.0, 2147483647.0));
                break;
            case BiasForm::int8:
                codes.push_back(std::round(std::clamp(std::round(bias * own), -128.0, 127.0) / own * sums));
                break;
            case BiasForm::split:
                codes.push_back(split.value(bias, sums));
                break;
        }
    }
    return codes;
}

QuantizedConstant quantized_constant(const std::vector<double>& before, const std::vector<double>& codes,
                                     double scale) {
    QuantizedConstant result;
    result.step = 1 / scale;
    std::vector<float> first;
    std::vector<float> second;
    for (std::size_t i = 0; i < before.size(); ++i) {
        first.push_back(static_cast<float>(before[i]));
        second.push_back(static_cast<float>(codes[i] / scale));
        const double moved = before[i] - codes[i] / scale;
        result.sums.add({1, std::abs(moved) * scale > 0.5 + 1e-9 ? std::uint64_t{1} : 0,
                         before[i] * before[i], moved * moved});
    }
    const auto count = static_cast<std::int64_t>(before.size());
    const Tensor a = Tensor::of<float>({count}, std::span<const float>(first));
    const Tensor b = Tensor::of<float>({count}, std::span<const float>(second));
    result.error = compare(a.view(), b.view());
    return result;
}

}  // namespace qcalib
