// Convolutions and products of matrices of Circle.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/activation.h"
#include "runtime/fusion.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/circle_lowering.h"

namespace qcalib {

namespace {

using Operand = CircleLowering::Operand;
using Numbers = std::vector<std::int64_t>;

std::int64_t number(const CircleLowering& lowering, std::string_view name, std::int64_t otherwise = 0) {
    return lowering.node().attribute<std::int64_t>(name, otherwise);
}

// "SAME": output = ceil(input / stride), the odd one of the padding at the end.
std::string automatic_padding(const CircleLowering& lowering) {
    return lowering.node().attribute<std::string>("padding", "SAME") == "SAME" ? "SAME_UPPER" : "VALID";
}

void require_rank(const CircleLowering& lowering, Operand operand, std::size_t rank, std::string_view what) {
    if (lowering.of(operand).rank() == rank) return;
    lowering.context().refuse(fmt::format("expected {} of rank {}, found shape {}", what, rank,
                                          to_string(lowering.of(operand).shape)));
}

// The fused activation as one that a convolution does while it stores; none where it cannot.
std::vector<Activation> stored_activations(const CircleLowering& lowering, Operand input) {
    if (lowering.of(input).type != DataType::float32) return {};
    const auto function = lowering.node().attribute<std::string>("fused_activation_function", "NONE");
    if (function == "RELU") return {{Activation::Kind::leaky_relu, 0, 0}};
    if (function == "RELU6") return {{Activation::Kind::clip, 0, 6}};
    if (function == "RELU_N1_TO_1") return {{Activation::Kind::clip, -1, 1}};
    return {};
}

// The weights told in ONNX's order of dimensions while they lie as they do: `order[i]` is the dimension of
// the file's tensor that is ONNX's dimension i, no_dimension one of size 1.
constexpr std::size_t no_dimension = 99;
struct TurnedWeights {
    Operand operand;
    Numbers strides;
};

TurnedWeights turn_weights(CircleLowering& lowering, Operand weights, std::span<const std::size_t> order) {
    const Shape lying = lowering.of(weights).shape;
    Numbers steps(lying.size(), 1);
    for (std::size_t i = steps.size(); i-- > 1;) steps[i - 1] = steps[i] * lying[i];
    Shape shape;
    TurnedWeights turned;
    for (const std::size_t dimension : order) {
        shape.push_back(dimension == no_dimension ? 1 : lying[dimension]);
        turned.strides.push_back(dimension == no_dimension ? 1 : steps[dimension]);
    }
    turned.operand = lowering.told_as(weights, shape);
    return turned;
}

void convolve(CircleLowering& lowering, const TurnedWeights& weights, std::int64_t groups,
              const Numbers& strides, const Numbers& dilations) {
    const Operand input = lowering.required_input(0);
    CircleLowering::Attributes attributes;
    attributes["group"] = groups;
    attributes["strides"] = strides;
    attributes["dilations"] = dilations;
    attributes["auto_pad"] = automatic_padding(lowering);
    attributes["weight_strides"] = weights.strides;
    const std::vector<Activation> activations = stored_activations(lowering, input);
    attributes["activations"] = to_strings(activations);
    const Operand made =
        lowering.run("Conv", {lowering.channels_second(input), weights.operand, lowering.input(2)},
                     std::move(attributes), 1, fused_domain);
    const Operand output = lowering.channels_last(made);
    if (activations.empty()) {
        lowering.activated_result(output);
    } else {
        lowering.result(0, output);
    }
}

Numbers strides_of(const CircleLowering& lowering) {
    return {number(lowering, "stride_h", 1), number(lowering, "stride_w", 1)};
}

Numbers dilations_of(const CircleLowering& lowering) {
    return {number(lowering, "dilation_h_factor", 1), number(lowering, "dilation_w_factor", 1)};
}

// Input [N,H,W,C], weights [O,H,W,C/groups], bias [O].
void lower_conv_2d(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Operand weights = lowering.required_input(1);
    require_rank(lowering, input, 4, "an input [N,H,W,C]");
    require_rank(lowering, weights, 4, "weights [O,H,W,I]");
    const std::int64_t channels = lowering.of(input).shape[3];
    const std::int64_t of_group = lowering.of(weights).shape[3];
    if (of_group < 1 || channels % of_group != 0) {
        lowering.context().refuse(fmt::format("{} input channels do not fit weights of shape {}", channels,
                                              to_string(lowering.of(weights).shape)));
    }
    convolve(lowering, turn_weights(lowering, weights, std::array<std::size_t, 4>{0, 3, 1, 2}),
             channels / of_group, strides_of(lowering), dilations_of(lowering));
}

// Input [N,H,W,C], weights [1,H,W,C*multiplier]: output channel c is of input channel c / multiplier.
void lower_depthwise_conv_2d(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Operand weights = lowering.required_input(1);
    require_rank(lowering, input, 4, "an input [N,H,W,C]");
    require_rank(lowering, weights, 4, "weights [1,H,W,C]");
    const Shape& shape = lowering.of(weights).shape;
    const std::int64_t channels = lowering.of(input).shape[3];
    if (shape[0] != 1 || channels < 1 || shape[3] % channels != 0) {
        lowering.context().refuse(
            fmt::format("{} input channels do not fit weights of shape {}", channels, to_string(shape)));
    }
    convolve(lowering, turn_weights(lowering, weights, std::array<std::size_t, 4>{3, no_dimension, 1, 2}),
             channels, strides_of(lowering), dilations_of(lowering));
}

// Input [N,D,H,W,C], weights [D,H,W,I,O].
void lower_conv_3d(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Operand weights = lowering.required_input(1);
    require_rank(lowering, input, 5, "an input [N,D,H,W,C]");
    require_rank(lowering, weights, 5, "weights [D,H,W,I,O]");
    const std::int64_t channels = lowering.of(input).shape[4];
    const std::int64_t of_group = lowering.of(weights).shape[3];
    if (of_group < 1 || channels % of_group != 0) {
        lowering.context().refuse(fmt::format("{} input channels do not fit weights of shape {}", channels,
                                              to_string(lowering.of(weights).shape)));
    }
    const Numbers strides{number(lowering, "stride_d", 1), number(lowering, "stride_h", 1),
                          number(lowering, "stride_w", 1)};
    const Numbers dilations{number(lowering, "dilation_d_factor", 1),
                            number(lowering, "dilation_h_factor", 1),
                            number(lowering, "dilation_w_factor", 1)};
    convolve(lowering, turn_weights(lowering, weights, std::array<std::size_t, 5>{4, 3, 0, 1, 2}),
             channels / of_group, strides, dilations);
}

// Inputs: the output's shape, weights [O,H,W,I], the data [N,H,W,I], a bias. The padding is that which the
// convolution from the output to the input would have.
void lower_transpose_conv(CircleLowering& lowering) {
    const Operand weights = lowering.required_input(1);
    const Operand input = lowering.required_input(2);
    const Numbers output = lowering.context().integers(0);
    require_rank(lowering, weights, 4, "weights [O,H,W,I]");
    require_rank(lowering, input, 4, "an input [N,H,W,I]");
    if (output.size() != 4) {
        lowering.context().refuse(
            fmt::format("expected an output shape of rank 4, found {}", to_string(output)));
    }
    const Shape lying = lowering.of(weights).shape;
    const Shape source = lowering.of(input).shape;
    const Numbers strides = strides_of(lowering);
    const bool same = automatic_padding(lowering) != "VALID";
    Numbers pads(4);
    Numbers behind(2);
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t natural = (source[1 + i] - 1) * strides[i] + lying[1 + i];
        const std::int64_t total = same ? std::max<std::int64_t>(0, natural - output[1 + i]) : 0;
        pads[i] = total / 2;
        pads[2 + i] = total - pads[i];
        behind[i] = output[1 + i] - (natural - total);
        if (behind[i] < 0) {  // what the shape leaves no room for
            pads[2 + i] -= behind[i];
            behind[i] = 0;
        }
    }
    const TurnedWeights turned = turn_weights(lowering, weights, std::array<std::size_t, 4>{3, 0, 1, 2});
    CircleLowering::Attributes attributes;
    attributes["strides"] = strides;
    attributes["pads"] = pads;
    attributes["output_padding"] = behind;
    attributes["weight_strides"] = turned.strides;
    const Operand made =
        lowering.run("ConvTranspose", {lowering.channels_second(input), turned.operand, lowering.input(3)},
                     std::move(attributes), 1, fused_domain);
    lowering.activated_result(lowering.channels_last(made));
}

// Input [..., I] as rows of I, weights [O,I], bias [O]; the output is [rows,O], or with keep_num_dims the
// input's shape with O last.
void lower_fully_connected(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Operand weights = lowering.required_input(1);
    const auto format = lowering.node().attribute<std::string>("weights_format", "DEFAULT");
    if (format != "DEFAULT") {
        lowering.context().refuse(fmt::format("expected weights in the format DEFAULT, found {}", format));
    }
    require_rank(lowering, weights, 2, "weights [O,I]");
    const Shape lying = lowering.of(weights).shape;
    Shape shape = lowering.of(input).shape;
    const std::int64_t elements = element_count(shape);
    if (lying[1] < 1 || elements % lying[1] != 0) {
        lowering.context().refuse(
            fmt::format("an input of shape {} has no rows of {} as the weights {} ask for", to_string(shape),
                        lying[1], to_string(lying)));
    }
    const std::int64_t rows = elements / lying[1];
    Operand bias = lowering.input(2);
    if (bias != CircleLowering::absent &&
        lowering.of(bias).elements() == static_cast<std::size_t>(lying[0])) {
        bias = lowering.as(bias, {lying[0]});
    }
    const Operand product = lowering.run("Gemm", {lowering.as(input, {rows, lying[1]}), weights, bias},
                                         {{"transB", std::int64_t{1}}});
    if (number(lowering, "keep_num_dims") == 0 || shape.empty() || shape.back() != lying[1]) {
        return lowering.activated_result(product);
    }
    shape.back() = lying[0];
    lowering.activated_result(lowering.as(product, shape));
}

Operand last_two_swapped(CircleLowering& lowering, Operand operand) {
    Numbers order(lowering.of(operand).rank());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    if (order.size() < 2) {
        lowering.context().refuse(
            fmt::format("expected matrices, found shape {}", to_string(lowering.of(operand).shape)));
    }
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return lowering.run("Transpose", {operand}, {{"perm", order}});
}

void lower_batch_matmul(CircleLowering& lowering) {
    Operand first = lowering.required_input(0);
    Operand second = lowering.required_input(1);
    if (number(lowering, "adj_x") != 0) first = last_two_swapped(lowering, first);
    if (number(lowering, "adj_y") != 0) second = last_two_swapped(lowering, second);
    lowering.result(0, lowering.run("MatMul", {first, second}));
}

}  // namespace

void register_circle_convolution(KernelRegistry& registry) {
    add_circle_operator<lower_conv_2d>(registry, "CONV_2D", "convolution [N,H,W,C] by [O,H,W,C/groups]");
    add_circle_operator<lower_depthwise_conv_2d>(registry, "DEPTHWISE_CONV_2D",
                                                 "convolution of each channel by [1,H,W,C*multiplier]");
    add_circle_operator<lower_conv_3d>(registry, "CONV_3D", "convolution [N,D,H,W,C] by [D,H,W,I,O]");
    add_circle_operator<lower_transpose_conv>(registry, "TRANSPOSE_CONV",
                                              "transposed convolution by [O,H,W,I]", {0});
    add_circle_operator<lower_fully_connected>(registry, "FULLY_CONNECTED", "rows by [O,I], plus a bias");
    add_circle_operator<lower_batch_matmul>(registry, "BATCH_MATMUL", "products of matrices");
}

}  // namespace qcalib
