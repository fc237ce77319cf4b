// Constants that converters compute from those of the ONNX model.
#include <algorithm>
#include <cmath>

#include "mapping/mapping_state.h"

namespace qcalib {

namespace {

using Numbers = std::vector<double>;

Numbers numbers_in(const Tensor& tensor) {
    const auto values = tensor.view().as<float>();
    return {values.begin(), values.end()};
}

Tensor tensor_of(Shape shape, const Numbers& numbers) {
    std::vector<float> values(numbers.begin(), numbers.end());
    return Tensor::of<float>(std::move(shape), std::span<const float>(values));
}

// y = x * scale + shift, by channel; from which constants that comes.
struct ChannelAffine {
    Numbers scale;
    Numbers shift;
    ValueId shift_from = no_value;
    std::string how;
};

// Collects what follows from one model's constants.
class ConstantDerivation {
  public:
    explicit ConstantDerivation(const MappedSide& onnx) : onnx_(onnx) {}

    std::vector<DerivedConstant> all() {
        for (NodeIndex i = 0; i < onnx_.graph.nodes.size(); ++i) {
            const Node& node = onnx_.graph.nodes[i];
            if (!node.domain.empty()) continue;
            add_normalization(node);
            add_inverse(node);
            add_factors(node);
            add_groups(node);
            add_folded(node);
        }
        return std::move(derived_);
    }

  private:
    const Tensor* constant(const Node& node, std::size_t input) const {
        if (input >= node.inputs.size() || node.inputs[input] == no_value) return nullptr;
        return onnx_.probe.constant(node.inputs[input]);
    }

    void add(Tensor tensor, ValueId from, std::string how) {
        if (tensor.view().elements() == 0 || from == no_value) return;
        const Fingerprint print = fingerprint(tensor.view());
        derived_.push_back({std::move(tensor), from, std::move(how), print});
    }

    std::optional<ChannelAffine> normalization(const Node& node) const {
        if (node.op_type != "BatchNormalization") return std::nullopt;
        std::vector<Numbers> parts;
        for (std::size_t i = 1; i < 5; ++i) {
            const Tensor* part = constant(node, i);
            if (part == nullptr) return std::nullopt;
            parts.push_back(numbers_in(*part));
            if (parts.back().size() != parts.front().size()) return std::nullopt;
        }
        const double epsilon = node.attribute<float>("epsilon", 1e-5F);
        ChannelAffine affine;
        affine.shift_from = node.inputs[2];
        affine.how = label(onnx_.graph, node);
        for (std::size_t c = 0; c < parts.front().size(); ++c) {
            affine.scale.push_back(parts[0][c] / std::sqrt(parts[3][c] + epsilon));
            affine.shift.push_back(parts[1][c] - parts[2][c] * affine.scale.back());
        }
        return affine;
    }

    void add_normalization(const Node& node) {
        const auto affine = normalization(node);
        if (!affine) return;
        const Shape shape{static_cast<std::int64_t>(affine->scale.size())};
        add(tensor_of(shape, affine->scale), node.inputs[1], "the scale of " + affine->how);
        add(tensor_of(shape, affine->shift), node.inputs[2], "the shift of " + affine->how);
    }

    // 1 / c of a division, -c of a subtraction.
    void add_inverse(const Node& node) {
        if (node.op_type != "Div" && node.op_type != "Sub") return;
        const Tensor* divisor = constant(node, 1);
        if (divisor == nullptr) return;
        Numbers numbers = numbers_in(*divisor);
        for (double& number : numbers) number = node.op_type == "Div" ? 1 / number : -number;
        add(tensor_of(divisor->shape(), numbers), node.inputs[1],
            (node.op_type == "Div" ? "1 / it, for " : "its negative, for ") + label(onnx_.graph, node));
    }

    // alpha * B and beta * C of a Gemm.
    void add_factors(const Node& node) {
        if (node.op_type != "Gemm") return;
        const std::pair<std::size_t, double> factors[] = {{1, node.attribute<float>("alpha", 1.0F)},
                                                          {2, node.attribute<float>("beta", 1.0F)}};
        for (const auto& [input, factor] : factors) {
            const Tensor* matrix = constant(node, input);
            if (matrix == nullptr || factor == 1) continue;
            Numbers numbers = numbers_in(*matrix);
            for (double& number : numbers) number *= factor;
            add(tensor_of(matrix->shape(), numbers), node.inputs[input],
                fmt::format("times {} of {}", factor, label(onnx_.graph, node)));
        }
    }

    // The filters and biases of each group of a convolution.
    void add_groups(const Node& node) {
        const auto groups = static_cast<std::size_t>(node.attribute<std::int64_t>("group", 1));
        if (node.op_type != "Conv" || groups < 2) return;
        for (const std::size_t input : {std::size_t{1}, std::size_t{2}}) {
            const Tensor* whole = constant(node, input);
            if (whole == nullptr || whole->shape().empty()) continue;
            const auto rows = static_cast<std::size_t>(whole->shape()[0]);
            if (rows % groups != 0 || rows == groups) continue;
            Shape shape = whole->shape();
            shape[0] = static_cast<std::int64_t>(rows / groups);
            const Numbers numbers = numbers_in(*whole);
            const std::size_t size = numbers.size() / groups;
            for (std::size_t g = 0; g < groups; ++g) {
                const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(g * size);
                add(tensor_of(shape, Numbers(begin, begin + static_cast<std::ptrdiff_t>(size))),
                    node.inputs[input],
                    fmt::format("group {} of {} of {}", g + 1, groups, label(onnx_.graph, node)));
            }
        }
    }

    // An operator that a converter may take into the weights before it.
    std::optional<ChannelAffine> affine_of(const Node& node, ValueId data, std::size_t channels,
                                           bool channels_last) const {
        if (const auto found = normalization(node))
            return found->scale.size() == channels ? found : std::nullopt;
        const bool product = node.op_type == "Mul" || node.op_type == "Div";
        if (!product && node.op_type != "Add" && node.op_type != "Sub") return std::nullopt;
        const std::size_t other = node.inputs[0] == data ? 1 : 0;
        if (other == 0 && (node.op_type == "Div" || node.op_type == "Sub")) return std::nullopt;
        const Tensor* operand = constant(node, other);
        if (operand == nullptr) return std::nullopt;
        const auto numbers = by_channel(*operand, channels, channels_last);
        if (!numbers) return std::nullopt;
        ChannelAffine affine{Numbers(channels, 1), Numbers(channels, 0), no_value, label(onnx_.graph, node)};
        if (!product) affine.shift_from = node.inputs[other];
        for (std::size_t c = 0; c < channels; ++c) {
            const double number = (*numbers)[c];
            if (product) affine.scale[c] = node.op_type == "Mul" ? number : 1 / number;
            if (!product) affine.shift[c] = node.op_type == "Add" ? number : -number;
        }
        return affine;
    }

    // A number a channel, where the operand is one number or has nothing but channels: [C,1,1] before spatial
    // axes, [C] or [1,C] after.
    static std::optional<Numbers> by_channel(const Tensor& operand, std::size_t channels,
                                             bool channels_last) {
        const Numbers numbers = numbers_in(operand);
        if (numbers.size() == 1) return Numbers(channels, numbers.front());
        if (numbers.size() != channels) return std::nullopt;
        const Shape& shape = operand.shape();
        const std::size_t wanted =
            channels_last ? shape.size() - 1 : shape.size() - std::min<std::size_t>(3, shape.size());
        const auto size = static_cast<std::int64_t>(channels);
        const bool there = shape[wanted] == size || (!channels_last && shape.size() == 4 && shape[1] == size);
        return there ? std::optional(numbers) : std::nullopt;
    }

    // Where the channels of a weighted operator lie in its weight, and whether its output has them last.
    struct WeightPlace {
        std::size_t axis = 0;
        bool channels_last = false;
    };
    static std::optional<WeightPlace> weight_place(const Node& node, const Tensor& weight) {
        const std::size_t rank = weight.shape().size();
        if (rank < 2) return std::nullopt;
        if (node.op_type == "Conv") return WeightPlace{0, false};
        if (node.op_type == "ConvTranspose" && node.attribute<std::int64_t>("group", 1) == 1)
            return WeightPlace{1, false};
        if (node.op_type == "Gemm")
            return WeightPlace{node.attribute<std::int64_t>("transB", 0) != 0 ? 0U : 1U, true};
        if (node.op_type == "MatMul") return WeightPlace{rank - 1, true};
        return std::nullopt;
    }

    static Tensor scaled(const Tensor& weight, std::size_t axis, const Numbers& scale) {
        Numbers numbers = numbers_in(weight);
        std::size_t inner = 1;
        for (std::size_t i = axis + 1; i < weight.shape().size(); ++i)
            inner *= static_cast<std::size_t>(weight.shape()[i]);
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= scale[i / inner % scale.size()];
        return tensor_of(weight.shape(), numbers);
    }

    // Weights and bias with the operators behind taken in, as far as each has one consumer.
    void add_folded(const Node& node) {
        const Tensor* weight = constant(node, 1);
        if (weight == nullptr) return;
        const auto place = weight_place(node, *weight);
        if (!place) return;
        const auto channels = static_cast<std::size_t>(weight->shape()[place->axis]);
        const Tensor* bias = constant(node, 2);
        const bool has_bias = bias != nullptr && bias->view().elements() == channels;
        if (node.inputs.size() > 2 && node.inputs[2] != no_value && !has_bias) return;
        ChannelAffine whole{Numbers(channels, 1),
                            has_bias ? numbers_in(*bias) : Numbers(channels, 0),
                            has_bias ? node.inputs[2] : no_value,
                            {}};
        ValueId at = node.outputs[0];
        while (onnx_.consumers[at].size() == 1) {
            const Node& next = onnx_.graph.nodes[onnx_.consumers[at].front()];
            const auto affine = affine_of(next, at, channels, place->channels_last);
            if (!affine) return;
            bool scales = false;
            for (std::size_t c = 0; c < channels; ++c) {
                whole.scale[c] *= affine->scale[c];
                whole.shift[c] = whole.shift[c] * affine->scale[c] + affine->shift[c];
                scales = scales || whole.scale[c] != 1;
            }
            if (whole.shift_from == no_value) whole.shift_from = affine->shift_from;
            whole.how += (whole.how.empty() ? "" : ", ") + affine->how;
            at = next.outputs[0];
            if (scales)
                add(scaled(*weight, place->axis, whole.scale), node.inputs[1], whole.how + " folded in");
            add(tensor_of({static_cast<std::int64_t>(channels)}, whole.shift), whole.shift_from,
                whole.how + " folded in");
        }
    }

    const MappedSide& onnx_;
    std::vector<DerivedConstant> derived_;
};

}  // namespace

std::vector<DerivedConstant> derive_constants(const MappedSide& onnx) {
    return ConstantDerivation(onnx).all();
}

}  // namespace qcalib
