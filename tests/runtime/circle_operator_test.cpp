#include <algorithm>
#include <array>
#include <cmath>

#include <doctest/doctest.h>

#include "support/operator_harness.h"

namespace qcalib::test {

namespace {

constexpr std::array circle_kernels = {Kernels::fast, Kernels::fast_channels_last, Kernels::fast_row_major,
                                       Kernels::reference, Kernels::reference_float64};

using CircleAttributes = std::map<std::string, AttributeValue, std::less<>>;

template <typename T>
Tensor circle_tensor(Shape shape, const std::vector<T>& values) {
    return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

Tensor ints(const std::vector<std::int32_t>& values) {
    return circle_tensor<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
}

OperatorCase circle_case(const std::string& op_type, std::vector<std::optional<Tensor>> inputs,
                         CircleAttributes attributes = {}, std::vector<bool> constant = {},
                         std::size_t outputs = 1) {
    OperatorCase one;
    one.domain = "circle";
    one.opset = 1;
    one.op_type = op_type;
    one.inputs = std::move(inputs);
    one.attributes = std::move(attributes);
    one.constant = std::move(constant);
    one.outputs = outputs;
    return one;
}

void check_makes(const OperatorCase& test, const Shape& shape, const std::vector<double>& expected,
                 std::size_t output = 0) {
    for (const Kernels kernels : circle_kernels) {
        CAPTURE(static_cast<int>(kernels));
        const Tensor made = run_operator(test, kernels)[output];
        CHECK(made.shape() == shape);
        const std::vector<double> numbers = numbers_of(made.view());
        REQUIRE(numbers.size() == expected.size());
        for (std::size_t i = 0; i < numbers.size(); ++i)
            CHECK(numbers[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    }
}

struct CircleWindow {
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    bool same = false;
};

// TFLite's rule: SAME gives ceil(input / stride) positions, half of the padding (rounded down) before.
std::pair<std::int64_t, std::int64_t> positions_and_pad(std::int64_t input, std::int64_t kernel,
                                                        const CircleWindow& window) {
    const std::int64_t reach = (kernel - 1) * window.dilation + 1;
    if (!window.same) return {(input - reach) / window.stride + 1, 0};
    const std::int64_t positions = (input + window.stride - 1) / window.stride;
    return {positions, std::max<std::int64_t>(0, (positions - 1) * window.stride + reach - input) / 2};
}

// y[n,h,w,o] = b[o] + sum of x[n,..,c] w(o, kh, kw, c) by plain loops over [N,H,W,C].
template <typename Weight>
std::vector<double> plain_convolution(const Tensor& x, std::int64_t outputs, std::int64_t kh, std::int64_t kw,
                                      const CircleWindow& window, const Weight& weight, Shape& shape) {
    const Shape in = x.shape();
    const auto [rows, top] = positions_and_pad(in[1], kh, window);
    const auto [columns, left] = positions_and_pad(in[2], kw, window);
    shape = {in[0], rows, columns, outputs};
    const std::vector<double> source = numbers_of(x.view());
    std::vector<double> y;
    for (std::int64_t n = 0; n < in[0]; ++n)
        for (std::int64_t h = 0; h < rows; ++h)
            for (std::int64_t w = 0; w < columns; ++w)
                for (std::int64_t o = 0; o < outputs; ++o) {
                    double sum = 0;
                    for (std::int64_t i = 0; i < kh; ++i)
                        for (std::int64_t j = 0; j < kw; ++j)
                            for (std::int64_t c = 0; c < in[3]; ++c) {
                                const std::int64_t at_h = h * window.stride - top + i * window.dilation;
                                const std::int64_t at_w = w * window.stride - left + j * window.dilation;
                                if (at_h < 0 || at_h >= in[1] || at_w < 0 || at_w >= in[2]) continue;
                                sum += source[static_cast<std::size_t>(
                                           ((n * in[1] + at_h) * in[2] + at_w) * in[3] + c)] *
                                       weight(o, i, j, c);
                            }
                    y.push_back(sum);
                }
    return y;
}

CircleAttributes window_attributes(const CircleWindow& window, const std::string& activation = "NONE") {
    return {{"padding", std::string(window.same ? "SAME" : "VALID")},
            {"stride_h", window.stride},
            {"stride_w", window.stride},
            {"dilation_h_factor", window.dilation},
            {"dilation_w_factor", window.dilation},
            {"fused_activation_function", activation}};
}

}  // namespace

TEST_CASE("CONV_2D is the plain convolution of [N,H,W,C] by [O,H,W,C], with its padding and activation") {
    const Tensor x = random_tensor({2, 7, 6, 3}, 1);
    const Tensor w = random_tensor({4, 3, 2, 3}, 2);
    const Tensor b = random_tensor({4}, 3);
    const std::vector<double> weights = numbers_of(w.view());
    const std::vector<double> bias = numbers_of(b.view());
    const auto weight = [&](std::int64_t o, std::int64_t i, std::int64_t j, std::int64_t c) {
        return weights[static_cast<std::size_t>(((o * 3 + i) * 2 + j) * 3 + c)];
    };
    for (const CircleWindow& window : {CircleWindow{1, 1, false}, CircleWindow{2, 1, true},
                                       CircleWindow{1, 2, true}, CircleWindow{3, 1, true}}) {
        for (const std::string activation : {"NONE", "RELU", "RELU6", "RELU_N1_TO_1", "TANH"}) {
            CAPTURE(activation);
            Shape shape;
            std::vector<double> expected = plain_convolution(x, 4, 3, 2, window, weight, shape);
            for (std::size_t i = 0; i < expected.size(); ++i) {
                double& y = expected[i];
                y += bias[i % 4];
                if (activation == "RELU") y = std::max(y, 0.0);
                if (activation == "RELU6") y = std::clamp(y, 0.0, 6.0);
                if (activation == "RELU_N1_TO_1") y = std::clamp(y, -1.0, 1.0);
                if (activation == "TANH") y = std::tanh(y);
            }
            for (const bool known : {true, false}) {
                const OperatorCase test = circle_case(
                    "CONV_2D", {x, w, b}, window_attributes(window, activation), {false, known, known});
                for (const Kernels kernels : circle_kernels) {
                    const Tensor made = run_operator(test, kernels)[0];
                    REQUIRE(made.shape() == shape);
                    const std::vector<double> numbers = numbers_of(made.view());
                    double farthest = 0;
                    for (std::size_t i = 0; i < numbers.size(); ++i) {
                        farthest = std::max(farthest, std::abs(numbers[i] - expected[i]));
                    }
                    CHECK(farthest < 1e-5);
                }
            }
        }
    }
}

TEST_CASE("DEPTHWISE_CONV_2D makes several channels of each, its weights [1,H,W,C*multiplier]") {
    const Tensor x = random_tensor({1, 6, 5, 3}, 4);
    const Tensor w = random_tensor({1, 3, 3, 6}, 5);
    const std::vector<double> weights = numbers_of(w.view());
    const CircleWindow window{2, 1, true};
    Shape shape;
    const std::vector<double> expected = plain_convolution(
        x, 6, 3, 3, window,
        [&](std::int64_t o, std::int64_t i, std::int64_t j, std::int64_t c) {
            return o / 2 == c ? weights[static_cast<std::size_t>((i * 3 + j) * 6 + o)] : 0.0;
        },
        shape);
    CircleAttributes attributes = window_attributes(window);
    attributes["depth_multiplier"] = std::int64_t{2};
    const OperatorCase test =
        circle_case("DEPTHWISE_CONV_2D", {x, w, std::nullopt}, attributes, {false, true});
    for (const Kernels kernels : circle_kernels) {
        const Tensor made = run_operator(test, kernels)[0];
        REQUIRE(made.shape() == shape);
        const std::vector<double> numbers = numbers_of(made.view());
        for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(std::abs(numbers[i] - expected[i]) < 1e-5);
    }
}

TEST_CASE("TRANSPOSE_CONV spreads each element over its window") {
    // 1 and 2 in a row, a window of 10, 20, 30 and stride 2; the shape asked for leaves one column of padding
    // where SAME: pad_begin is 0, the last column goes.
    const Tensor x = circle_tensor<float>({1, 1, 2, 1}, {1, 2});
    const Tensor w = circle_tensor<float>({1, 1, 3, 1}, {10, 20, 30});
    CircleAttributes attributes = window_attributes({2, 1, false});
    check_makes(circle_case("TRANSPOSE_CONV", {ints({1, 1, 5, 1}), w, x}, attributes, {true, true}),
                {1, 1, 5, 1}, {10, 20, 50, 40, 60});
    attributes["padding"] = std::string("SAME");
    attributes["stride_h"] = std::int64_t{1};
    check_makes(circle_case("TRANSPOSE_CONV", {ints({1, 1, 4, 1}), w, x}, attributes, {true, true}),
                {1, 1, 4, 1}, {10, 20, 50, 40});
}

TEST_CASE("FULLY_CONNECTED multiplies rows by [O,I], with or without the input's dimensions") {
    const Tensor x = circle_tensor<float>({1, 2, 2}, {1, 2, 3, 4});
    const Tensor w = circle_tensor<float>({3, 2}, {1, 0, 0, 1, 1, 1});
    const Tensor b = circle_tensor<float>({3}, {0, 0, -5});
    check_makes(circle_case("FULLY_CONNECTED", {x, w, b}, {}, {false, true, true}), {2, 3},
                {1, 2, -2, 3, 4, 2});
    check_makes(
        circle_case("FULLY_CONNECTED", {x, w, b},
                    {{"keep_num_dims", std::int64_t{1}}, {"fused_activation_function", std::string("RELU")}}),
        {1, 2, 3}, {1, 2, 0, 3, 4, 2});
    check_refused(circle_case("FULLY_CONNECTED", {random_tensor({5}, 1), w, b}), "has no rows of 2");
}

TEST_CASE("pooling leaves the padding out of the mean") {
    const Tensor x = circle_tensor<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    CircleAttributes attributes = window_attributes({2, 1, true});
    attributes["filter_height"] = attributes["filter_width"] = std::int64_t{2};
    check_makes(circle_case("AVERAGE_POOL_2D", {x}, attributes), {1, 2, 2, 1}, {3, 4.5, 7.5, 9});
    check_makes(circle_case("MAX_POOL_2D", {x}, attributes), {1, 2, 2, 1}, {5, 6, 8, 9});
    attributes["padding"] = std::string("VALID");
    check_makes(circle_case("L2_POOL_2D", {x}, attributes), {1, 1, 1, 1}, {std::sqrt(46.0 / 4)});
}

TEST_CASE("pictures are resized by each of the three rules for places") {
    const Tensor x = circle_tensor<float>({1, 1, 2, 1}, {0, 10});
    const Tensor size = ints({1, 4});
    const auto resized = [&](const char* op_type, std::int64_t corners, std::int64_t centres) {
        return circle_case(op_type, {x, size}, {{"align_corners", corners}, {"half_pixel_centers", centres}},
                           {false, true});
    };
    check_makes(resized("RESIZE_BILINEAR", 0, 0), {1, 1, 4, 1}, {0, 5, 10, 10});
    check_makes(resized("RESIZE_BILINEAR", 0, 1), {1, 1, 4, 1}, {0, 2.5, 7.5, 10});
    check_makes(resized("RESIZE_BILINEAR", 1, 0), {1, 1, 4, 1}, {0, 10.0 / 3, 20.0 / 3, 10});
    check_makes(resized("RESIZE_NEAREST_NEIGHBOR", 0, 0), {1, 1, 4, 1}, {0, 0, 10, 10});
    check_makes(resized("RESIZE_NEAREST_NEIGHBOR", 1, 0), {1, 1, 4, 1}, {0, 0, 10, 10});
}

TEST_CASE("STRIDED_SLICE takes its masks") {
    const Tensor x = circle_tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
    const auto sliced = [&](std::vector<std::int32_t> begins, std::vector<std::int32_t> ends,
                            std::vector<std::int32_t> strides, CircleAttributes masks) {
        return circle_case("STRIDED_SLICE", {x, ints(begins), ints(ends), ints(strides)}, std::move(masks),
                           {false, true, true, true});
    };
    check_makes(sliced({0, 1}, {2, 3}, {1, 1}, {}), {2, 2}, {2, 3, 5, 6});
    check_makes(sliced({1, 1}, {0, 0}, {1, 1},
                       {{"shrink_axis_mask", std::int64_t{1}}, {"end_mask", std::int64_t{2}}}),
                {2}, {5, 6});
    check_makes(
        sliced({0, 2}, {0, 0}, {1, -2}, {{"begin_mask", std::int64_t{1}}, {"end_mask", std::int64_t{3}}}),
        {2, 2}, {3, 1, 6, 4});
    check_makes(sliced({0, 0, 1}, {0, 0, 2}, {1, 1, 1},
                       {{"ellipsis_mask", std::int64_t{2}}, {"new_axis_mask", std::int64_t{1}}}),
                {1, 2, 1}, {2, 5});
    check_refused(sliced({5, 0}, {6, 1}, {1, 1}, {{"shrink_axis_mask", std::int64_t{1}}}),
                  "expected an index from -2 to 1");
}

TEST_CASE("borders are zeros, a number or mirrored elements") {
    const Tensor x = circle_tensor<float>({1, 3}, {1, 2, 3});
    const Tensor pads = circle_tensor<std::int32_t>({2, 2}, {0, 0, 2, 1});
    const std::vector<bool> constant{false, true, true};
    check_makes(circle_case("PAD", {x, pads}, {}, constant), {1, 6}, {0, 0, 1, 2, 3, 0});
    check_makes(circle_case("PADV2", {x, pads, circle_tensor<float>({}, {-7})}, {}, constant), {1, 6},
                {-7, -7, 1, 2, 3, -7});
    check_makes(circle_case("MIRROR_PAD", {x, pads}, {{"mode", std::string("REFLECT")}}, constant), {1, 6},
                {3, 2, 1, 2, 3, 2});
    check_makes(circle_case("MIRROR_PAD", {x, pads}, {{"mode", std::string("SYMMETRIC")}}, constant), {1, 6},
                {2, 1, 1, 2, 3, 3});
}

TEST_CASE("tensors are cut and put together along axes") {
    const Tensor x = circle_tensor<float>({2, 2}, {1, 2, 3, 4});
    check_makes(circle_case("PACK", {x, x}, {{"axis", std::int64_t{2}}}), {2, 2, 2},
                {1, 1, 2, 2, 3, 3, 4, 4});
    check_makes(circle_case("UNPACK", {x}, {{"axis", std::int64_t{1}}}, {}, 2), {2}, {2, 4}, 1);
    check_makes(circle_case("SPLIT", {circle_tensor<std::int32_t>({}, {1}), x}, {}, {true}, 2), {2, 1},
                {2, 4}, 1);
    check_makes(circle_case("SPLIT_V", {circle_tensor<float>({4}, {1, 2, 3, 4}), ints({1, -1}), ints({0})},
                            {}, {false, true, true}, 2),
                {3}, {2, 3, 4}, 1);
    check_makes(
        circle_case("CONCATENATION", {x, x},
                    {{"axis", std::int64_t{-1}}, {"fused_activation_function", std::string("RELU_N1_TO_1")}}),
        {2, 4}, {1, 1, 1, 1, 1, 1, 1, 1});
    check_makes(circle_case("GATHER",
                            {circle_tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                             circle_tensor<std::int32_t>({2, 1}, {2, 0})},
                            {{"axis", std::int64_t{1}}, {"batch_dims", std::int64_t{1}}}),
                {2, 1}, {3, 4});
    check_makes(circle_case("SPACE_TO_BATCH_ND",
                            {circle_tensor<float>({1, 2, 2, 1}, {1, 2, 3, 4}), ints({2, 2}),
                             circle_tensor<std::int32_t>({2, 2}, {0, 0, 0, 0})},
                            {}, {false, true, true}),
                {4, 1, 1, 1}, {1, 2, 3, 4});
    check_makes(circle_case("BATCH_TO_SPACE_ND",
                            {circle_tensor<float>({4, 1, 1, 1}, {1, 2, 3, 4}), ints({2, 2}),
                             circle_tensor<std::int32_t>({2, 2}, {0, 0, 0, 1})},
                            {}, {false, true, true}),
                {1, 2, 1, 1}, {1, 3});
    check_makes(circle_case("DEPTH_TO_SPACE", {circle_tensor<float>({1, 1, 1, 4}, {1, 2, 3, 4})},
                            {{"block_size", std::int64_t{2}}}),
                {1, 2, 2, 1}, {1, 2, 3, 4});
}

TEST_CASE("reductions, norms and what else works along axes") {
    const Tensor x = circle_tensor<float>({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    check_makes(circle_case("MEAN", {x, ints({1, 2})}, {{"keep_dims", std::int64_t{1}}}, {false, true}),
                {1, 1, 1, 2}, {4, 5});
    check_makes(circle_case("REDUCE_MAX", {x, ints({-1, 3})}, {}, {false, true}), {1, 2, 2}, {2, 4, 6, 8});
    check_makes(circle_case("SOFTMAX", {circle_tensor<float>({2}, {0, 1})}, {{"beta", 2.0F}}), {2},
                {1 / (1 + std::exp(2.0)), 1 / (1 + std::exp(-2.0))});
    check_makes(circle_case("L2_NORMALIZATION", {circle_tensor<float>({1, 2}, {3, 4})}), {1, 2}, {0.6, 0.8});
    check_makes(
        circle_case("RMS_NORM", {circle_tensor<float>({2}, {1, 7}), circle_tensor<float>({2}, {10, 1})},
                    {{"epsilon", 0.0F}}),
        {2}, {2, 1.4});
    check_makes(circle_case("LOCAL_RESPONSE_NORMALIZATION", {circle_tensor<float>({1, 3}, {1, 2, 3})},
                            {{"radius", std::int64_t{1}}, {"bias", 1.0F}, {"alpha", 1.0F}, {"beta", 1.0F}}),
                {1, 3}, {1.0 / 6, 2.0 / 15, 3.0 / 14});
    check_makes(circle_case("CUMSUM", {circle_tensor<float>({3}, {1, 2, 4}), ints({0})},
                            {{"exclusive", std::int64_t{1}}, {"reverse", std::int64_t{1}}}, {false, true}),
                {3}, {6, 4, 0});
    check_makes(circle_case("ARG_MAX", {circle_tensor<float>({2, 2}, {1, 2, 9, 4}), ints({1})},
                            {{"output_type", std::string("int32")}}, {false, true}),
                {2}, {1, 0});
    check_makes(
        circle_case("TOPK_V2", {circle_tensor<float>({4}, {3, 9, 3, 1}), ints({3})}, {}, {false, true}, 2),
        {3}, {9, 3, 3});
    check_makes(
        circle_case("TOPK_V2", {circle_tensor<float>({4}, {3, 9, 3, 1}), ints({3})}, {}, {false, true}, 2),
        {3}, {1, 0, 2}, 1);
    check_makes(circle_case("INSTANCE_NORM",
                            {circle_tensor<float>({1, 1, 2, 2}, {1, 10, 3, 30}),
                             circle_tensor<float>({2}, {1, 2}), circle_tensor<float>({2}, {0, 5})},
                            {{"epsilon", 0.0F}}),
                {1, 1, 2, 2}, {-1, 3, 1, 7});
}

TEST_CASE("elements are dequantized, compared and divided by Circle's rules") {
    check_makes(circle_case("DEQUANTIZE", {circle_tensor<std::int8_t>({2, 2}, {1, -3, 5, 7})},
                            {{"input_scale", std::vector<float>{0.5F, 2}},
                             {"input_zero_point", std::vector<std::int64_t>{1, -1}},
                             {"input_axis", std::int64_t{1}}}),
                {2, 2}, {0, -4, 2, 16});
    const Tensor a = circle_tensor<float>({2}, {-7, 7});
    const Tensor b = circle_tensor<float>({2}, {2, -2});
    check_makes(circle_case("FLOOR_DIV", {a, b}), {2}, {-4, -4});
    check_makes(circle_case("FLOOR_MOD", {a, b}), {2}, {1, -1});
    check_makes(circle_case("FLOOR_DIV", {ints({-7, 7}), ints({2, -2})}), {2}, {-4, -4});
    check_makes(circle_case("SQUARED_DIFFERENCE", {a, b}), {2}, {81, 81});
    check_makes(circle_case("NOT_EQUAL", {a, circle_tensor<float>({1}, {7})}), {2}, {1, 0});
    check_makes(circle_case("RSQRT", {circle_tensor<float>({1}, {4})}), {1}, {0.5});
    check_makes(circle_case("RELU6", {circle_tensor<float>({3}, {-1, 3, 9})}), {3}, {0, 3, 6});
    check_makes(
        circle_case("PRELU", {circle_tensor<float>({1, 2}, {-4, -4}), circle_tensor<float>({2}, {0.5, 2})}),
        {1, 2}, {-2, -8});
}

TEST_CASE("what a Circle operator cannot take is told with its own name") {
    check_refused(circle_case("CONV_2D", {random_tensor({1, 4, 4, 3}, 1), random_tensor({2, 1, 1, 2}, 2)},
                              window_attributes({})),
                  "CONV_2D 'node'");
    check_refused(circle_case("ADD", {random_tensor({2}, 1), random_tensor({3}, 2)}), "ADD 'node'");
    check_refused(circle_case("RESHAPE", {random_tensor({6}, 1), ints({4, -1})}, {}, {false, true}),
                  "cannot show [6] as [4,-1]");
    check_refused(
        circle_case("SPLIT", {circle_tensor<std::int32_t>({}, {0}), random_tensor({5}, 1)}, {}, {true}, 2),
        "cannot split a dimension of 5 into 2 equal parts");
}

namespace {

// A graph whose last node runs bodies; values are made by name, in order.
struct ControlGraph {
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();

    ValueId value(const std::string& name, DataType type = DataType::float32) {
        graph->values.emplace_back();
        graph->values.back().name = name;
        graph->values.back().declared_type = type;
        const auto id = static_cast<ValueId>(graph->values.size() - 1);
        graph->index[name] = id;
        return id;
    }
    ValueId constant(const std::string& name, Tensor tensor) {
        const ValueId id = value(name, tensor.type());
        graph->values[id].initializer = std::move(tensor);
        return id;
    }
    NodeIndex node(const std::string& op_type, std::vector<ValueId> inputs, ValueId output) {
        Node one;
        one.domain = "circle";
        one.op_type = op_type;
        one.opset = 1;
        one.inputs = std::move(inputs);
        one.outputs = {output};
        const auto index = static_cast<NodeIndex>(graph->nodes.size());
        graph->values[output].producer = index;
        graph->nodes.push_back(std::move(one));
        return index;
    }
    void own(NodeIndex owner, Body body) {
        for (const NodeIndex inner : body.nodes) graph->nodes[inner].owner = owner;
        graph->nodes[owner].bodies.push_back(std::move(body));
    }
};

}  // namespace

TEST_CASE("IF runs the branch its condition names, known or not") {
    ControlGraph scene;
    const ValueId c = scene.value("c", DataType::boolean);
    const ValueId x = scene.value("x");
    const ValueId y = scene.value("y");
    const ValueId a = scene.value("a");
    const ValueId twice = scene.value("twice");
    const ValueId b = scene.value("b");
    const ValueId minus = scene.value("minus");
    const NodeIndex add = scene.node("ADD", {a, a}, twice);
    const NodeIndex negate = scene.node("NEG", {b}, minus);
    const NodeIndex choose = scene.node("IF", {c, x}, y);
    scene.own(choose, {"then_branch", {a}, {twice}, {add}});
    scene.own(choose, {"else_branch", {b}, {minus}, {negate}});
    scene.graph->inputs = {c, x};
    scene.graph->outputs = {y};
    const Tensor numbers = circle_tensor<float>({2}, {1, -3});
    for (const bool taken : {true, false}) {
        Tensor condition(TensorDescriptor{DataType::boolean, {}, MemoryOrder::row_major});
        condition.mutable_view().as<std::uint8_t>()[0] = taken ? 1 : 0;
        for (const Kernels kernels : circle_kernels) {
            auto made = run_graph(scene.graph, {condition, numbers}, kernels);
            CHECK(numbers_of(made.at("y").view()) ==
                  (taken ? std::vector<double>{2, -6} : std::vector<double>{-1, 3}));
            CHECK(made.contains(taken ? "twice" : "minus"));
            CHECK(!made.contains(taken ? "minus" : "twice"));
        }
    }
}

TEST_CASE("WHILE runs its body as long as its condition says") {
    ControlGraph scene;
    const ValueId x = scene.value("x");
    const ValueId y = scene.value("y");
    const ValueId in_condition = scene.value("in_condition");
    const ValueId limit = scene.constant("limit", circle_tensor<float>({}, {100}));
    const ValueId goes_on = scene.value("goes_on", DataType::boolean);
    const ValueId in_body = scene.value("in_body");
    const ValueId tripled = scene.value("tripled");
    const ValueId three = scene.constant("three", circle_tensor<float>({}, {3}));
    const NodeIndex less = scene.node("LESS", {in_condition, limit}, goes_on);
    const NodeIndex times = scene.node("MUL", {in_body, three}, tripled);
    const NodeIndex loop = scene.node("WHILE", {x}, y);
    scene.own(loop, {"cond", {in_condition}, {goes_on}, {less}});
    scene.own(loop, {"body", {in_body}, {tripled}, {times}});
    scene.graph->inputs = {x};
    scene.graph->outputs = {y};
    for (const Kernels kernels : circle_kernels) {
        CHECK(numbers_of(run_graph(scene.graph, {circle_tensor<float>({}, {2})}, kernels).at("y").view()) ==
              std::vector<double>{162});
        CHECK(numbers_of(run_graph(scene.graph, {circle_tensor<float>({}, {200})}, kernels).at("y").view()) ==
              std::vector<double>{200});
    }
}

TEST_CASE("QUANTIZE rounds to codes of its output's steps, and DEQUANTIZE takes them back") {
    ControlGraph scene;
    const ValueId x = scene.value("x");
    const ValueId codes = scene.value("codes", DataType::uint8);
    const ValueId y = scene.value("y");
    const NodeIndex there = scene.node("QUANTIZE", {x}, codes);
    const NodeIndex back = scene.node("DEQUANTIZE", {codes}, y);
    const std::vector<float> scale{0.5F};
    const std::vector<std::int64_t> zero{10};
    scene.graph->nodes[there].attributes = {{"output_scale", scale}, {"output_zero_point", zero}};
    scene.graph->nodes[back].attributes = {{"input_scale", scale}, {"input_zero_point", zero}};
    scene.graph->inputs = {x};
    scene.graph->outputs = {y};
    for (const Kernels kernels : circle_kernels) {
        auto made =
            run_graph(scene.graph, {circle_tensor<float>({5}, {0, 0.25, -0.25, -100, 1000})}, kernels);
        CHECK(numbers_of(made.at("codes").view()) == std::vector<double>{10, 11, 9, 0, 255});
        CHECK(numbers_of(made.at("y").view()) == std::vector<double>{0, 0.5, -0.5, -5, 122.5});
    }
}

}  // namespace qcalib::test
