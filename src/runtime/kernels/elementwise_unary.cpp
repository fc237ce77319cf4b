#include <cassert>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/fusion.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/elementwise_unary_rows.h"

namespace qcalib {

namespace {

using P = UnaryParameters;

// out[i] = f(in[i]), one element after the other.
struct ScalarRow {
    void (*run)(const std::byte* in, std::byte* out, std::size_t count, const P& parameters) = nullptr;
    DataType result = DataType::undefined;
};

template <auto function, typename In, typename Out>
void scalar_row(const std::byte* in, std::byte* out, std::size_t count, const P& parameters) {
    const auto* from = reinterpret_cast<const In*>(in);
    auto* to = reinterpret_cast<Out*>(out);
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Out>(function(from[i], parameters));
}

template <auto function, typename T>
constexpr ScalarRow row_of() {
    return {&scalar_row<function, T, T>, data_type_of<T>()};
}

// For functions of float types, computed in double.
template <auto function>
ScalarRow floats(DataType type) {
    constexpr auto in_double = [](auto x, const P& p) { return function(static_cast<double>(x), p); };
    if (type == DataType::float32) return row_of<in_double, float>();
    if (type == DataType::float64) return row_of<in_double, double>();
    return {};
}

// For functions of float types that answer true or false.
template <auto function>
ScalarRow tests(DataType type) {
    if (type == DataType::float32) return {&scalar_row<function, float, bool>, DataType::boolean};
    if (type == DataType::float64) return {&scalar_row<function, double, bool>, DataType::boolean};
    return {};
}

// For functions of all number types, computed in the type itself.
template <auto function>
ScalarRow numbers(DataType type) {
    switch (type) {
        case DataType::float32:
            return row_of<function, float>();
        case DataType::float64:
            return row_of<function, double>();
        case DataType::int8:
            return row_of<function, std::int8_t>();
        case DataType::uint8:
            return row_of<function, std::uint8_t>();
        case DataType::int16:
            return row_of<function, std::int16_t>();
        case DataType::uint16:
            return row_of<function, std::uint16_t>();
        case DataType::int32:
            return row_of<function, std::int32_t>();
        case DataType::uint32:
            return row_of<function, std::uint32_t>();
        case DataType::int64:
            return row_of<function, std::int64_t>();
        case DataType::uint64:
            return row_of<function, std::uint64_t>();
        default:
            return {};
    }
}

ScalarRow logical_not(DataType type) {
    constexpr auto negation = [](std::uint8_t x, const P&) { return x == 0; };
    if (type != DataType::boolean) return {};
    return {&scalar_row<negation, std::uint8_t, bool>, DataType::boolean};
}

// -x; the least integer stays itself.
template <typename T>
T negative(T x) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x));
    else
        return -x;
}

P no_parameters(const NodeContext& /*context*/) {
    return {};
}

P small_alpha(const NodeContext& context) {
    return {.a = context.node.attribute<float>("alpha", 0.01F)};
}
P unit_alpha(const NodeContext& context) {
    return {.a = context.node.attribute<float>("alpha", 1.0F)};
}

P hard_sigmoid_parameters(const NodeContext& context) {
    return {.a = context.node.attribute<float>("alpha", 0.2F),
            .b = context.node.attribute<float>("beta", 0.5F)};
}

P selu_parameters(const NodeContext& context) {
    return {.a = context.node.attribute<float>("alpha", 1.67326319217681884765625F),
            .b = context.node.attribute<float>("gamma", 1.05070102214813232421875F)};
}

P infinity_parameters(const NodeContext& context) {
    return {.a = static_cast<double>(context.node.attribute<std::int64_t>("detect_positive", 1)),
            .b = static_cast<double>(context.node.attribute<std::int64_t>("detect_negative", 1))};
}

// a: 1 for the approximation by tanh.
P gelu_parameters(const NodeContext& context) {
    const std::string form = context.node.attribute<std::string>("approximate", "none");
    if (form != "none" && form != "tanh") {
        context.refuse(fmt::format("expected 'none' or 'tanh' as attribute approximate, found '{}'", form));
    }
    return {.a = form == "tanh" ? 1.0 : 0.0};
}

double gelu(double x, const P& p) {
    if (p.a != 0) return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
}

double softplus(double x) {
    return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}
double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}
double clamp_unit(double x) {
    return x < 0 ? 0 : (x > 1 ? 1 : x);
}

struct UnaryOperator {
    const char* name;
    std::int64_t since;
    const char* summary;
    UnaryFunction fast;                 // for float32; none: the plain form serves
    ScalarRow (*plain)(DataType type);  // no row: the type is not taken
    P (*parameters)(const NodeContext& context) = no_parameters;
};

using F = UnaryFunction;

// A new operator is one line here, and one in elementwise_unary_rows.cpp where it is worth vectors.
// clang-format off
constexpr UnaryOperator operators[] = {
    {"Relu", 6, "max(x, 0)", F::relu, numbers<[](auto x, const P&) { return x <= 0 ? decltype(x){0} : x; }>},
    {"LeakyRelu", 6, "x, alpha x below 0", F::leaky_relu, floats<[](double x, const P& p) { return x < 0 ? p.a * x : x; }>, small_alpha},
    {"ThresholdedRelu", 10, "x, 0 up to alpha", F::thresholded_relu, floats<[](double x, const P& p) { return x <= p.a ? 0 : x; }>, unit_alpha},
    {"Elu", 6, "x, alpha (e^x - 1) below 0", F::elu, floats<[](double x, const P& p) { return x < 0 ? p.a * std::expm1(x) : x; }>, unit_alpha},
    {"Celu", 12, "max(0, x) + min(0, alpha (e^(x/alpha) - 1))", F::celu, floats<[](double x, const P& p) { return x < 0 ? p.a * std::expm1(x / p.a) : x; }>, unit_alpha},
    {"Selu", 6, "gamma x, gamma alpha (e^x - 1) below 0", F::selu, floats<[](double x, const P& p) { return p.b * (x < 0 ? p.a * std::expm1(x) : x); }>, selu_parameters},
    {"Sigmoid", 6, "1 / (1 + e^-x)", F::sigmoid, floats<[](double x, const P&) { return sigmoid(x); }>},
    {"HardSigmoid", 6, "alpha x + beta within [0, 1]", F::hard_sigmoid, floats<[](double x, const P& p) { return clamp_unit(p.a * x + p.b); }>, hard_sigmoid_parameters},
    {"HardSwish", 14, "x times x/6 + 1/2 within [0, 1]", F::hard_swish, floats<[](double x, const P&) { return x * clamp_unit(x / 6 + 0.5); }>},
    {"Swish", 24, "x / (1 + e^(-alpha x))", F::swish, floats<[](double x, const P& p) { return x * sigmoid(p.a * x); }>, unit_alpha},
    {"Tanh", 6, "hyperbolic tangent", F::tanh, floats<[](double x, const P&) { return std::tanh(x); }>},
    {"Softplus", 1, "log(1 + e^x)", F::softplus, floats<[](double x, const P&) { return std::isnan(x) ? x : softplus(x); }>},
    {"Softsign", 1, "x / (1 + |x|)", F::softsign, floats<[](double x, const P&) { return x / (1 + std::fabs(x)); }>},
    {"Mish", 18, "x tanh(log(1 + e^x))", F::mish, floats<[](double x, const P&) { return std::isnan(x) ? x : x * std::tanh(softplus(x)); }>},
    {"Erf", 9, "error function", F::erf, floats<[](double x, const P&) { return std::erf(x); }>},
    {"Gelu", 20, "x times the normal distribution's share below x", F::gelu, floats<gelu>, gelu_parameters},
    {"Exp", 6, "e^x", F::exp, floats<[](double x, const P&) { return std::exp(x); }>},
    {"Log", 6, "natural logarithm", F::log, floats<[](double x, const P&) { return std::log(x); }>},
    {"Sqrt", 6, "square root", F::sqrt, floats<[](double x, const P&) { return std::sqrt(x); }>},
    {"Reciprocal", 6, "1 / x", F::reciprocal, floats<[](double x, const P&) { return 1 / x; }>},
    {"Neg", 6, "-x", F::negate, numbers<[](auto x, const P&) { return negative(x); }>},
    {"Abs", 6, "|x|", F::absolute, numbers<[](auto x, const P&) { return x < 0 ? negative(x) : (x == 0 ? decltype(x){0} : x); }>},
    {"Sign", 9, "-1, 0 or 1", F::none, numbers<[](auto x, const P&) { return 0 < x ? 1 : (x < 0 ? -1 : x); }>},
    {"Floor", 6, "greatest whole number up to x", F::floor, floats<[](double x, const P&) { return std::floor(x); }>},
    {"Ceil", 6, "least whole number from x on", F::ceil, floats<[](double x, const P&) { return std::ceil(x); }>},
    {"Round", 11, "nearest whole number, halves to even", F::round, floats<[](double x, const P&) { return std::nearbyint(x); }>},
    {"Sin", 7, "sine", F::none, floats<[](double x, const P&) { return std::sin(x); }>},
    {"Cos", 7, "cosine", F::none, floats<[](double x, const P&) { return std::cos(x); }>},
    {"Tan", 7, "tangent", F::none, floats<[](double x, const P&) { return std::tan(x); }>},
    {"Asin", 7, "inverse sine", F::none, floats<[](double x, const P&) { return std::asin(x); }>},
    {"Acos", 7, "inverse cosine", F::none, floats<[](double x, const P&) { return std::acos(x); }>},
    {"Atan", 7, "inverse tangent", F::none, floats<[](double x, const P&) { return std::atan(x); }>},
    {"Sinh", 9, "hyperbolic sine", F::none, floats<[](double x, const P&) { return std::sinh(x); }>},
    {"Cosh", 9, "hyperbolic cosine", F::none, floats<[](double x, const P&) { return std::cosh(x); }>},
    {"Asinh", 9, "inverse hyperbolic sine", F::none, floats<[](double x, const P&) { return std::asinh(x); }>},
    {"Acosh", 9, "inverse hyperbolic cosine", F::none, floats<[](double x, const P&) { return std::acosh(x); }>},
    {"Atanh", 9, "inverse hyperbolic tangent", F::none, floats<[](double x, const P&) { return std::atanh(x); }>},
    {"IsNaN", 9, "whether x is NaN", F::none, tests<[](auto x, const P&) { return std::isnan(x); }>},
    {"IsInf", 10, "whether x is infinite", F::none, tests<[](auto x, const P& p) { return std::isinf(x) && (x > 0 ? p.a : p.b) != 0; }>, infinity_parameters},
    {"Not", 1, "logical not", F::none, logical_not},
};
// clang-format on

const UnaryOperator& operator_of(const Node& node) {
    for (const UnaryOperator& candidate : operators) {
        if (node.op_type == candidate.name) return candidate;
    }
    assert(false);
    return operators[0];
}

// What both kernels do when prepared.
class UnaryKernel : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const UnaryOperator& definition = operator_of(context.node);
        if (!context.has_input(0)) context.refuse("expected one input, found none");
        const TensorDescriptor& input = context.input(0);
        plain_ = definition.plain(input.type);
        if (plain_.run == nullptr) {
            context.refuse(fmt::format("its input has a type it does not take: {}", name_of(input.type)));
        }
        parameters_ = definition.parameters(context);
        Prepared prepared;
        prepared.outputs = {{plain_.result, input.shape, input.order}};
        if (size_of(plain_.result) == size_of(input.type)) prepared.in_place = {0};
        choose(definition, input);
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        plain_.run(inputs[0].data, outputs[0].data, inputs[0].elements(), parameters_);
    }

  protected:
    virtual void choose(const UnaryOperator& /*definition*/, const TensorDescriptor& /*input*/) {}

    ScalarRow plain_;
    P parameters_;
};

class FastUnaryKernel : public UnaryKernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return keep_first_order(context);
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (fast_ == nullptr) return UnaryKernel::run(inputs, outputs, workspace);
        const std::span<const float> in = inputs[0].as<float>();
        fast_(in.data(), outputs[0].as<float>().data(), in.size(), parameters_);
    }

  protected:
    void choose(const UnaryOperator& definition, const TensorDescriptor& input) override {
        if (definition.fast == F::swish && parameters_.a != 1) return;
        const bool approximate = definition.fast == F::gelu && parameters_.a != 0;
        const UnaryFunction function = approximate ? F::gelu_tanh : definition.fast;
        if (input.type == DataType::float32) fast_ = fast_unary_row(function);
    }

  private:
    UnaryRow fast_ = nullptr;
};

}  // namespace

void register_elementwise_unary(KernelRegistry& registry) {
    for (const UnaryOperator& definition : operators) {
        OperatorEntry entry;
        entry.op_type = definition.name;
        entry.since = definition.since;
        entry.summary = definition.summary;
        entry.make = make_kernel<FastUnaryKernel>;
        entry.make_reference = make_kernel<UnaryKernel>;
        registry.add(entry);
        if (definition.fast != F::swish && definition.fast != F::gelu) continue;
        entry.domain = fused_domain;
        entry.since = 1;
        registry.add(std::move(entry));
    }
}

}  // namespace qcalib
