// Operators of Circle that work on single elements, and on types.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/circle_lowering.h"

namespace qcalib {

namespace {

using Operand = CircleLowering::Operand;

// An operator's name as a template argument.
template <std::size_t size>
struct OperatorName {
    consteval OperatorName(const char (&text)[size]) {
        std::copy_n(text, size, characters.begin());
    }  // NOLINT
    std::array<char, size> characters{};
};

// ONNX has the very operator.
template <OperatorName name>
void same_unary(CircleLowering& lowering) {
    lowering.result(0, lowering.run(name.characters.data(), {lowering.required_input(0)}));
}

template <OperatorName name>
void same_binary(CircleLowering& lowering) {
    lowering.activated_result(
        lowering.run(name.characters.data(), {lowering.required_input(0), lowering.required_input(1)}));
}

// x within [low, high].
template <int low, int high>
void lower_clip(CircleLowering& lowering) {
    const Operand x = lowering.required_input(0);
    lowering.result(0,
                    lowering.run("Clip", {x, lowering.number_like(x, low), lowering.number_like(x, high)}));
}

void lower_rsqrt(CircleLowering& lowering) {
    lowering.result(0, lowering.run("Reciprocal", {lowering.run("Sqrt", {lowering.required_input(0)})}));
}

void lower_square(CircleLowering& lowering) {
    const Operand x = lowering.required_input(0);
    lowering.result(0, lowering.run("Mul", {x, x}));
}

void lower_squared_difference(CircleLowering& lowering) {
    const Operand difference = lowering.run("Sub", {lowering.required_input(0), lowering.required_input(1)});
    lowering.result(0, lowering.run("Mul", {difference, difference}));
}

void lower_leaky_relu(CircleLowering& lowering) {
    lowering.result(0, lowering.run("LeakyRelu", {lowering.required_input(0)},
                                    {{"alpha", lowering.node().attribute<float>("alpha", 0)}}));
}

void lower_gelu(CircleLowering& lowering) {
    const bool approximate = lowering.node().attribute<std::int64_t>("approximate", 0) != 0;
    lowering.result(0, lowering.run("Gelu", {lowering.required_input(0)},
                                    {{"approximate", std::string(approximate ? "tanh" : "none")}}));
}

bool of_floats(const CircleLowering& lowering, Operand operand) {
    return is_floating(lowering.of(operand).type);
}

// The greatest whole number up to a / b.
void lower_floor_div(CircleLowering& lowering) {
    const Operand a = lowering.required_input(0);
    const Operand b = lowering.required_input(1);
    if (of_floats(lowering, a)) {
        return lowering.result(0, lowering.run("Floor", {lowering.run("Div", {a, b})}));
    }
    const Operand rest = lowering.run("Mod", {a, b});
    lowering.result(0, lowering.run("Div", {lowering.run("Sub", {a, rest}), b}));
}

// The rest that has the divisor's sign.
void lower_floor_mod(CircleLowering& lowering) {
    const Operand a = lowering.required_input(0);
    const Operand b = lowering.required_input(1);
    if (!of_floats(lowering, a)) return lowering.result(0, lowering.run("Mod", {a, b}));
    const CircleLowering::Attributes truncated{{"fmod", std::int64_t{1}}};
    const Operand rest = lowering.run("Mod", {a, b}, truncated);
    lowering.result(0, lowering.run("Mod", {lowering.run("Add", {rest, b}), b}, truncated));
}

void lower_not_equal(CircleLowering& lowering) {
    const Operand equal = lowering.run("Equal", {lowering.required_input(0), lowering.required_input(1)});
    lowering.result(0, lowering.run("Not", {equal}));
}

void lower_add_n(CircleLowering& lowering) {
    std::vector<Operand> inputs;
    for (std::size_t i = 0; i < lowering.node().inputs.size(); ++i)
        inputs.push_back(lowering.required_input(i));
    lowering.result(0, lowering.run("Sum", inputs));
}

// SELECT takes a condition of the operands' shape, or one of rank 1 for their first dimension.
void lower_select(CircleLowering& lowering) {
    Operand condition = lowering.required_input(0);
    const Operand first = lowering.required_input(1);
    const std::size_t rank = lowering.of(first).rank();
    if (lowering.of(condition).rank() == 1 && rank > 1) {
        Shape shape(rank, 1);
        shape[0] = lowering.of(condition).shape[0];
        condition = lowering.as(condition, shape);
    }
    lowering.result(0, lowering.run("Where", {condition, first, lowering.required_input(2)}));
}

void lower_select_v2(CircleLowering& lowering) {
    lowering.result(0, lowering.run("Where", {lowering.required_input(0), lowering.required_input(1),
                                              lowering.required_input(2)}));
}

// ONNX's numbers for the names of types.
std::int64_t onnx_type_of(const CircleLowering& lowering, const std::string& name) {
    constexpr std::array<std::pair<std::string_view, std::int64_t>, 13> types = {{{"float32", 1},
                                                                                  {"uint8", 2},
                                                                                  {"int8", 3},
                                                                                  {"uint16", 4},
                                                                                  {"int16", 5},
                                                                                  {"int32", 6},
                                                                                  {"int64", 7},
                                                                                  {"bool", 9},
                                                                                  {"float16", 10},
                                                                                  {"float64", 11},
                                                                                  {"uint32", 12},
                                                                                  {"uint64", 13},
                                                                                  {"bfloat16", 16}}};
    const auto found =
        std::find_if(types.begin(), types.end(), [&](const auto& type) { return type.first == name; });
    if (found == types.end()) lowering.context().refuse(fmt::format("cannot cast to {}", name));
    return found->second;
}

// The type is that of the output; files without options have it nowhere else.
void lower_cast(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Value& output = lowering.context().graph.values[lowering.node().outputs[0]];
    const std::string name = output.declared_type != DataType::undefined
                                 ? std::string(name_of(output.declared_type))
                                 : lowering.node().attribute<std::string>("out_data_type", "float32");
    lowering.result(0, lowering.run("Cast", {input}, {{"to", onnx_type_of(lowering, name)}}));
}

// The steps and zero points of a quantized tensor, broadcast to its shape: per tensor, or along an axis.
struct QuantizedSteps {
    Operand scales = CircleLowering::absent;
    Operand offsets = CircleLowering::absent;  // absent: all 0
};

Operand floats_like(CircleLowering& lowering, Operand operand, const Shape& shape,
                    const std::vector<float>& numbers) {
    if (lowering.of(operand).type != DataType::float64) {
        return lowering.constant(Tensor::of<float>(shape, std::span<const float>(numbers)));
    }
    const std::vector<double> wide(numbers.begin(), numbers.end());
    return lowering.constant(Tensor::of<double>(shape, std::span<const double>(wide)));
}

// `side`: "input" or "output", whose numbers the reader gives as attributes; for `operand`, which is float.
QuantizedSteps quantized_steps(CircleLowering& lowering, const std::string& side, Operand operand) {
    const Shape shape = lowering.of(operand).shape;
    const Node& node = lowering.node();
    const auto scales = node.attribute<std::vector<float>>(side + "_scale", {});
    const auto zeros = node.attribute<std::vector<std::int64_t>>(side + "_zero_point", {});
    const auto axis = node.attribute<std::int64_t>(side + "_axis", 0);
    const bool along_axis = scales.size() > 1;
    const bool has_axis = axis >= 0 && static_cast<std::size_t>(axis) < shape.size();
    const bool fits =
        !along_axis || (has_axis && std::cmp_equal(shape[static_cast<std::size_t>(axis)], scales.size()));
    if (scales.empty() || !fits || (zeros.size() != scales.size() && zeros.size() > 1)) {
        lowering.context().refuse(fmt::format(
            "expected one scale for its {} or one for each of dimension {} of {}, found {} scales "
            "and {} zero points",
            side, axis, to_string(shape), scales.size(), zeros.size()));
    }
    Shape told(along_axis ? shape.size() : 0, 1);
    if (along_axis) told[static_cast<std::size_t>(axis)] = shape[static_cast<std::size_t>(axis)];
    std::vector<float> offsets(zeros.begin(), zeros.end());
    offsets.resize(scales.size(), zeros.size() == 1 ? offsets[0] : 0.0F);
    QuantizedSteps steps;
    steps.scales = floats_like(lowering, operand, told, scales);
    if (std::any_of(offsets.begin(), offsets.end(), [](float zero) { return zero != 0; })) {
        steps.offsets = floats_like(lowering, operand, told, offsets);
    }
    return steps;
}

Operand as_float32(CircleLowering& lowering, Operand operand) {
    return lowering.run("Cast", {operand}, {{"to", onnx_type_of(lowering, "float32")}});
}

// (q - zero point) * scale; float16 as it is.
void lower_dequantize(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    if (of_floats(lowering, input)) return lowering.result(0, input);
    Operand numbers = as_float32(lowering, input);
    const QuantizedSteps steps = quantized_steps(lowering, "input", numbers);
    if (steps.offsets != CircleLowering::absent) numbers = lowering.run("Sub", {numbers, steps.offsets});
    lowering.result(0, lowering.run("Mul", {numbers, steps.scales}));
}

// The codes that an integer type has; nothing for other types.
std::optional<std::pair<double, double>> codes_of(DataType type) {
    if (type == DataType::uint8) return std::pair{0.0, 255.0};
    if (type == DataType::int8) return std::pair{-128.0, 127.0};
    if (type == DataType::int16) return std::pair{-32768.0, 32767.0};
    return std::nullopt;
}

// x / scale + zero point, halves away from zero, held to the type. Where the file keeps the tensor in float
// it only marks where types shall differ: the elements as they are.
void lower_quantize(CircleLowering& lowering) {
    const Operand input = lowering.required_input(0);
    const Value& output = lowering.context().graph.values[lowering.node().outputs[0]];
    const bool to_float = output.declared_type == DataType::undefined || is_floating(output.declared_type);
    if (of_floats(lowering, input) && to_float) return lowering.result(0, input);
    const auto codes = codes_of(output.declared_type);
    if (!of_floats(lowering, input) || !codes) {
        lowering.context().refuse(
            fmt::format("expected float elements made int8, uint8 or int16, found {} made {}",
                        name_of(lowering.of(input).type), name_of(output.declared_type)));
    }
    const QuantizedSteps steps = quantized_steps(lowering, "output", input);
    const Operand scaled = lowering.run("Div", {input, steps.scales});
    const Operand half =
        lowering.run("Add", {lowering.run("Abs", {scaled}), lowering.number_like(scaled, 0.5)});
    Operand whole = lowering.run("Mul", {lowering.run("Floor", {half}), lowering.run("Sign", {scaled})});
    if (steps.offsets != CircleLowering::absent) whole = lowering.run("Add", {whole, steps.offsets});
    const Operand held = lowering.run("Clip", {whole, lowering.number_like(whole, codes->first),
                                               lowering.number_like(whole, codes->second)});
    lowering.result(
        0, lowering.run("Cast", {held},
                        {{"to", onnx_type_of(lowering, std::string(name_of(output.declared_type)))}}));
}

// The nearest of 2^bits steps from min to max, the range moved so that 0 is a step.
void lower_fake_quant(CircleLowering& lowering) {
    const Operand x = lowering.required_input(0);
    const Node& node = lowering.node();
    const float low = node.attribute<float>("min", 0);
    const float high = node.attribute<float>("max", 0);
    const auto bits = node.attribute<std::int64_t>("num_bits", 8);
    const bool narrow = node.attribute<std::int64_t>("narrow_range", 0) != 0;
    if (!(low <= 0) || !(high >= 0) || !(low < high) || bits < 2 || bits > 16) {
        lowering.context().refuse(fmt::format(
            "expected a range around 0 and 2 to 16 bits, found [{},{}] and {} bits", low, high, bits));
    }
    const float first = narrow ? 1 : 0;
    const float last = static_cast<float>((std::int64_t{1} << bits) - 1);
    const float step = (high - low) / (last - first);
    const float zero = std::clamp(std::round(first - low / step), first, last);
    const double least = static_cast<double>((first - zero) * step);
    const double most = static_cast<double>((last - zero) * step);
    const Operand held =
        lowering.run("Clip", {x, lowering.number_like(x, least), lowering.number_like(x, most)});
    const Operand from_least = lowering.run("Sub", {held, lowering.number_like(x, least)});
    const Operand steps =
        lowering.run("Mul", {from_least, lowering.number_like(x, static_cast<double>(1 / step))});
    const Operand whole = lowering.run("Floor", {lowering.run("Add", {steps, lowering.number_like(x, 0.5)})});
    const Operand scaled = lowering.run("Mul", {whole, lowering.number_like(x, static_cast<double>(step))});
    lowering.result(0, lowering.run("Add", {scaled, lowering.number_like(x, least)}));
}

void add_unary(KernelRegistry& registry) {
    add_circle_operator<same_unary<"Abs">>(registry, "ABS", "|x|");
    add_circle_operator<same_unary<"Ceil">>(registry, "CEIL", "least whole number from x on");
    add_circle_operator<same_unary<"Cos">>(registry, "COS", "cosine");
    add_circle_operator<same_unary<"Elu">>(registry, "ELU", "x, e^x - 1 below 0");
    add_circle_operator<same_unary<"Exp">>(registry, "EXP", "e^x");
    add_circle_operator<same_unary<"Floor">>(registry, "FLOOR", "greatest whole number up to x");
    add_circle_operator<lower_gelu>(registry, "GELU", "x times the normal distribution's share below x");
    add_circle_operator<same_unary<"HardSwish">>(registry, "HARD_SWISH", "x times x/6 + 1/2 within [0, 1]");
    add_circle_operator<lower_leaky_relu>(registry, "LEAKY_RELU", "x, alpha x below 0");
    add_circle_operator<same_unary<"Log">>(registry, "LOG", "natural logarithm");
    add_circle_operator<same_unary<"Not">>(registry, "LOGICAL_NOT", "logical not");
    add_circle_operator<same_unary<"Sigmoid">>(registry, "LOGISTIC", "1 / (1 + e^-x)");
    add_circle_operator<same_unary<"Neg">>(registry, "NEG", "-x");
    add_circle_operator<same_unary<"Relu">>(registry, "RELU", "max(x, 0)");
    add_circle_operator<lower_clip<0, 6>>(registry, "RELU6", "x within [0, 6]");
    add_circle_operator<lower_clip<0, 1>>(registry, "RELU_0_TO_1", "x within [0, 1]");
    add_circle_operator<lower_clip<-1, 1>>(registry, "RELU_N1_TO_1", "x within [-1, 1]");
    add_circle_operator<same_unary<"Round">>(registry, "ROUND", "nearest whole number, halves to even");
    add_circle_operator<lower_rsqrt>(registry, "RSQRT", "1 / square root");
    add_circle_operator<same_unary<"Sign">>(registry, "SIGN", "-1, 0 or 1");
    add_circle_operator<same_unary<"Sin">>(registry, "SIN", "sine");
    add_circle_operator<same_unary<"Sqrt">>(registry, "SQRT", "square root");
    add_circle_operator<lower_square>(registry, "SQUARE", "x^2");
    add_circle_operator<same_unary<"Tanh">>(registry, "TANH", "hyperbolic tangent");
    add_circle_operator<lower_cast>(registry, "CAST", "the elements as another type");
    add_circle_operator<lower_dequantize>(registry, "DEQUANTIZE", "integers or float16 as float32");
    add_circle_operator<lower_quantize>(registry, "QUANTIZE", "float32 as integers, or as it is");
    add_circle_operator<lower_fake_quant>(registry, "FAKE_QUANT", "rounded to the steps of a range");
}

void add_binary(KernelRegistry& registry) {
    add_circle_operator<same_binary<"Add">>(registry, "ADD", "a + b");
    add_circle_operator<same_binary<"Sub">>(registry, "SUB", "a - b");
    add_circle_operator<same_binary<"Mul">>(registry, "MUL", "a b");
    add_circle_operator<same_binary<"Div">>(registry, "DIV", "a / b");
    add_circle_operator<same_binary<"Pow">>(registry, "POW", "a^b");
    add_circle_operator<same_binary<"Max">>(registry, "MAXIMUM", "the greater");
    add_circle_operator<same_binary<"Min">>(registry, "MINIMUM", "the lesser");
    add_circle_operator<same_binary<"PRelu">>(registry, "PRELU", "x, alpha x below 0, alpha a tensor");
    add_circle_operator<lower_floor_div>(registry, "FLOOR_DIV", "a / b, rounded down");
    add_circle_operator<lower_floor_mod>(registry, "FLOOR_MOD", "the rest of a / b rounded down");
    add_circle_operator<lower_squared_difference>(registry, "SQUARED_DIFFERENCE", "(a - b)^2");
    add_circle_operator<same_binary<"Equal">>(registry, "EQUAL", "a = b");
    add_circle_operator<lower_not_equal>(registry, "NOT_EQUAL", "not a = b");
    add_circle_operator<same_binary<"Greater">>(registry, "GREATER", "a > b");
    add_circle_operator<same_binary<"GreaterOrEqual">>(registry, "GREATER_EQUAL", "a >= b");
    add_circle_operator<same_binary<"Less">>(registry, "LESS", "a < b");
    add_circle_operator<same_binary<"LessOrEqual">>(registry, "LESS_EQUAL", "a <= b");
    add_circle_operator<same_binary<"And">>(registry, "LOGICAL_AND", "a and b");
    add_circle_operator<same_binary<"Or">>(registry, "LOGICAL_OR", "a or b");
    add_circle_operator<lower_add_n>(registry, "ADD_N", "the sum of several tensors");
    add_circle_operator<lower_select>(registry, "SELECT", "one of two, by a condition");
    add_circle_operator<lower_select_v2>(registry, "SELECT_V2", "one of two, by a condition");
}

}  // namespace

void register_circle_elementwise(KernelRegistry& registry) {
    add_unary(registry);
    add_binary(registry);
}

}  // namespace qcalib
