#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "runtime/onednn.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using Attributes = std::map<std::string, AttributeValue, std::less<>>;
using Numbers = std::vector<std::int64_t>;

Tensor floats(Shape shape, const std::vector<float>& values) {
    return Tensor::of<float>(std::move(shape), std::span(values));
}

Tensor ones(Shape shape) {
    const auto count = static_cast<std::size_t>(element_count(shape));
    return floats(std::move(shape), std::vector<float>(count, 1.0F));
}

// 1, 2, 3, ...
Tensor counting(Shape shape) {
    std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
    std::iota(values.begin(), values.end(), 1.0F);
    return floats(std::move(shape), values);
}

struct Case {
    std::string name;
    Shape input;
    Shape weights;
    Attributes attributes;
};

OperatorCase operator_case(const std::string& op_type, const Case& c, bool bias, bool constant) {
    OperatorCase test;
    test.op_type = op_type;
    test.opset = 11;
    test.attributes = c.attributes;
    test.inputs = {random_tensor(c.input, 1), random_tensor(c.weights, 2)};
    test.constant = {false, constant};
    if (bias) {
        const auto group = c.attributes.find("group");
        const std::int64_t groups = group == c.attributes.end() ? 1 : std::get<std::int64_t>(group->second);
        const std::int64_t channels = op_type == "Conv" ? c.weights[0] : c.weights[1] * groups;
        test.inputs.emplace_back(random_tensor({channels}, 3));
        test.constant.push_back(constant);
    }
    return test;
}

void check_with_and_without_bias(const std::string& op_type, const std::vector<Case>& cases) {
    for (const Case& c : cases) {
        INFO(c.name);
        check_all_kernels_agree(operator_case(op_type, c, false, true));
        check_all_kernels_agree(operator_case(op_type, c, true, true));
        check_all_kernels_agree(operator_case(op_type, c, true, false));
    }
}

std::vector<double> output_of(const OperatorCase& test, Kernels kernels) {
    return numbers_of(run_operator(test, kernels)[0].view());
}

// All four kernels give exactly these numbers.
void check_output(const OperatorCase& test, const Shape& shape, const std::vector<double>& expected) {
    for (const Kernels kernels :
         {Kernels::fast, Kernels::fast_row_major, Kernels::reference, Kernels::reference_float64}) {
        CHECK(run_operator(test, kernels)[0].shape() == shape);
        CHECK(output_of(test, kernels) == expected);
    }
}

}  // namespace

TEST_CASE("convolution agrees with float64 in every form") {
    check_with_and_without_bias(
        "Conv",
        {
            {"3x3, padded", {2, 16, 9, 11}, {32, 16, 3, 3}, {{"pads", Numbers{1, 1, 1, 1}}}},
            {"3 channels, stride 2", {1, 3, 17, 20}, {8, 3, 3, 3}, {{"strides", Numbers{2, 2}}}},
            {"1x1", {1, 24, 7, 5}, {40, 24, 1, 1}, {}},
            {"1x1, stride 2", {1, 24, 8, 8}, {40, 24, 1, 1}, {{"strides", Numbers{2, 2}}}},
            {"1x1 on one pixel", {3, 24, 1, 1}, {40, 24, 1, 1}, {}},
            {"asymmetric pads and strides",
             {1, 5, 13, 10},
             {7, 5, 3, 2},
             {{"pads", Numbers{0, 1, 2, 0}}, {"strides", Numbers{2, 1}}}},
            {"dilated",
             {1, 8, 20, 21},
             {16, 8, 3, 3},
             {{"dilations", Numbers{2, 3}}, {"pads", Numbers{2, 3, 2, 3}}}},
            {"pads as large as the kernel", {1, 4, 5, 5}, {4, 4, 3, 3}, {{"pads", Numbers{3, 3, 3, 3}}}},
            {"depthwise",
             {2, 20, 12, 12},
             {20, 1, 3, 3},
             {{"group", std::int64_t{20}}, {"pads", Numbers{1, 1, 1, 1}}}},
            {"depthwise, stride 2, 5x5",
             {1, 48, 13, 13},
             {48, 1, 5, 5},
             {{"group", std::int64_t{48}}, {"pads", Numbers{2, 2, 2, 2}}, {"strides", Numbers{2, 2}}}},
            {"depthwise with a multiplier", {1, 6, 8, 8}, {18, 1, 3, 3}, {{"group", std::int64_t{6}}}},
            {"depthwise, dilated",
             {1, 32, 15, 15},
             {32, 1, 3, 3},
             {{"group", std::int64_t{32}}, {"dilations", Numbers{2, 2}}, {"pads", Numbers{2, 2, 2, 2}}}},
            {"groups",
             {1, 12, 9, 9},
             {18, 4, 3, 3},
             {{"group", std::int64_t{3}}, {"pads", Numbers{1, 1, 1, 1}}}},
            {"groups of 16", {1, 64, 9, 9}, {64, 16, 3, 3}, {{"group", std::int64_t{4}}}},
            {"one channel in and out", {1, 1, 9, 9}, {1, 1, 3, 3}, {{"pads", Numbers{1, 1, 1, 1}}}},
            {"SAME_UPPER",
             {1, 3, 10, 11},
             {4, 3, 4, 3},
             {{"auto_pad", "SAME_UPPER"}, {"strides", Numbers{2, 3}}}},
            {"SAME_LOWER",
             {1, 3, 10, 11},
             {4, 3, 4, 3},
             {{"auto_pad", "SAME_LOWER"}, {"strides", Numbers{2, 3}}}},
            {"VALID", {1, 3, 10, 11}, {4, 3, 4, 3}, {{"auto_pad", "VALID"}}},
            {"1-D", {2, 16, 33}, {24, 16, 5}, {{"pads", Numbers{2, 2}}, {"strides", Numbers{2}}}},
            {"1-D, stride longer than the kernel", {1, 1, 400}, {8, 1, 25}, {{"strides", Numbers{40}}}},
            {"1-D, depthwise, dilated",
             {1, 16, 40},
             {16, 1, 3},
             {{"group", std::int64_t{16}}, {"dilations", Numbers{4}}, {"pads", Numbers{8, 0}}}},
            {"3-D", {1, 4, 6, 7, 8}, {8, 4, 3, 3, 2}, {{"pads", Numbers{1, 1, 0, 1, 1, 1}}}},
            {"3-D, groups, strides",
             {2, 8, 6, 7, 8},
             {8, 4, 2, 3, 3},
             {{"group", std::int64_t{2}}, {"strides", Numbers{2, 1, 2}}}},
            {"kernel of the input's size", {1, 32, 7, 7}, {64, 32, 7, 7}, {{"kernel_shape", Numbers{7, 7}}}},
        });
}

TEST_CASE("transposed convolution agrees with float64 in every form") {
    check_with_and_without_bias(
        "ConvTranspose",
        {
            {"stride 2", {1, 16, 9, 7}, {16, 8, 2, 2}, {{"strides", Numbers{2, 2}}}},
            {"to one channel", {1, 24, 8, 8}, {24, 1, 2, 2}, {{"strides", Numbers{2, 2}}}},
            {"3x3, padded, output padding",
             {2, 6, 5, 6},
             {6, 10, 3, 3},
             {{"strides", Numbers{2, 2}}, {"pads", Numbers{1, 1, 1, 1}}, {"output_padding", Numbers{1, 1}}}},
            {"asymmetric pads", {1, 5, 6, 6}, {5, 4, 3, 4}, {{"pads", Numbers{0, 1, 2, 1}}}},
            {"dilated", {1, 4, 5, 5}, {4, 6, 3, 3}, {{"dilations", Numbers{2, 2}}}},
            {"groups",
             {1, 12, 5, 6},
             {12, 3, 3, 3},
             {{"group", std::int64_t{4}}, {"strides", Numbers{2, 2}}}},
            {"depthwise",
             {1, 16, 5, 6},
             {16, 1, 4, 4},
             {{"group", std::int64_t{16}}, {"strides", Numbers{2, 2}}}},
            {"output shape",
             {1, 4, 5, 5},
             {4, 4, 3, 3},
             {{"strides", Numbers{3, 2}}, {"output_shape", Numbers{14, 10}}}},
            {"SAME_UPPER",
             {1, 4, 5, 5},
             {4, 4, 3, 3},
             {{"strides", Numbers{2, 2}}, {"auto_pad", "SAME_UPPER"}}},
            {"SAME_LOWER",
             {1, 4, 5, 5},
             {4, 4, 4, 4},
             {{"strides", Numbers{2, 1}}, {"auto_pad", "SAME_LOWER"}}},
            {"stride longer than the kernel", {1, 4, 5, 5}, {4, 4, 2, 2}, {{"strides", Numbers{3, 3}}}},
            {"1-D", {1, 8, 20}, {8, 6, 4}, {{"strides", Numbers{2}}, {"pads", Numbers{1, 1}}}},
            {"3-D", {1, 4, 3, 4, 5}, {4, 6, 2, 3, 2}, {{"strides", Numbers{2, 1, 2}}}},
        });
}

TEST_CASE("convolution pads as ONNX says") {
    OperatorCase test{.op_type = "Conv", .opset = 11};
    test.inputs = {ones({1, 1, 4}), counting({1, 1, 2})};
    SUBCASE("SAME_UPPER puts the odd one at the end") {
        test.attributes = {{"auto_pad", "SAME_UPPER"}};
        check_output(test, {1, 1, 4}, {3, 3, 3, 1});
    }
    SUBCASE("SAME_LOWER puts the odd one at the beginning") {
        test.attributes = {{"auto_pad", "SAME_LOWER"}};
        check_output(test, {1, 1, 4}, {2, 3, 3, 3});
    }
    SUBCASE("pads are those before all dimensions, then those behind") {
        test.attributes = {{"pads", Numbers{2, 0}}};
        check_output(test, {1, 1, 5}, {0, 2, 3, 3, 3});
    }
}

// Compared with what onnxruntime 1.32 answers for these.
TEST_CASE("transposed convolution pads as ONNX says") {
    OperatorCase test{.op_type = "ConvTranspose", .opset = 11};
    test.inputs = {ones({1, 1, 3}), counting({1, 1, 3})};
    test.attributes = {{"strides", Numbers{2}}};
    SUBCASE("without padding") {
        check_output(test, {1, 1, 7}, {1, 2, 4, 2, 4, 2, 3});
    }
    SUBCASE("SAME_UPPER drops the end") {
        test.attributes["auto_pad"] = "SAME_UPPER";
        check_output(test, {1, 1, 6}, {1, 2, 4, 2, 4, 2});
    }
    SUBCASE("SAME_LOWER drops the beginning") {
        test.attributes["auto_pad"] = "SAME_LOWER";
        check_output(test, {1, 1, 6}, {2, 4, 2, 4, 2, 3});
    }
    SUBCASE("an output shape drops the beginning first") {
        test.attributes["output_shape"] = Numbers{6};
        check_output(test, {1, 1, 6}, {2, 4, 2, 4, 2, 3});
    }
    SUBCASE("an output shape of one more gets a zero") {
        test.attributes["output_shape"] = Numbers{8};
        check_output(test, {1, 1, 8}, {1, 2, 4, 2, 4, 2, 3, 0});
    }
    SUBCASE("output padding") {
        test.attributes["output_padding"] = Numbers{1};
        check_output(test, {1, 1, 8}, {1, 2, 4, 2, 4, 2, 3, 0});
    }
}

TEST_CASE("an empty batch gives an empty convolution") {
    OperatorCase test{.op_type = "Conv", .opset = 11};
    test.inputs = {ones({0, 2, 4, 4}), ones({3, 2, 3, 3})};
    check_output(test, {0, 3, 2, 2}, {});
}

TEST_CASE("convolutions that cannot be are refused with a reason") {
    OperatorCase test{.op_type = "Conv", .opset = 11};
    test.inputs = {ones({1, 4, 5, 5}), ones({6, 4, 3, 3})};
    SUBCASE("channels") {
        test.inputs[1] = ones({6, 3, 3, 3});
        check_refused(test, "4 input channels in 1 groups do not fit weights of shape [6,3,3,3]");
    }
    SUBCASE("groups") {
        test.attributes = {{"group", std::int64_t{0}}};
        check_refused(test, "in 0 groups");
    }
    SUBCASE("rank of the weights") {
        test.inputs[1] = ones({6, 4, 3});
        check_refused(test, "weights of shape [6,4,3] should have the rank of the input");
    }
    SUBCASE("rank of the input") {
        test.inputs[0] = ones({4, 5});
        check_refused(test, "rank 3 to 5");
    }
    SUBCASE("number of pads") {
        test.attributes = {{"pads", Numbers{1, 1}}};
        check_refused(test, "attribute 'pads' should have 4 numbers, found 2");
    }
    SUBCASE("stride of zero") {
        test.attributes = {{"strides", Numbers{0, 1}}};
        check_refused(test, "attribute 'strides' should have numbers from 1");
    }
    SUBCASE("kernel_shape") {
        test.attributes = {{"kernel_shape", Numbers{2, 2}}};
        check_refused(test, "attribute 'kernel_shape' is [2,2]");
    }
    SUBCASE("window larger than the input") {
        test.attributes = {{"dilations", Numbers{4, 1}}};
        check_refused(test, "a window of 9 does not fit into an input of 5");
    }
    SUBCASE("bias") {
        test.inputs.emplace_back(ones({5}));
        check_refused(test, "the bias should have shape [6]");
    }
    SUBCASE("auto_pad") {
        test.attributes = {{"auto_pad", "SAME_UPER"}};
        check_refused(test, "did you mean 'SAME_UPPER'?");
    }
    SUBCASE("output_padding") {
        test.op_type = "ConvTranspose";
        test.inputs[1] = ones({4, 6, 3, 3});
        test.attributes = {{"output_padding", Numbers{1, 1}}};
        check_refused(test, "attribute 'output_padding' should be less than the stride of 1");
    }
    SUBCASE("output_shape") {
        test.op_type = "ConvTranspose";
        test.inputs[1] = ones({4, 6, 3, 3});
        test.attributes = {{"output_shape", Numbers{7, 9}}};
        check_refused(test, "an output of 9 (spatial dimension 1) cannot be made");
    }
}

TEST_CASE("the convolutions of image networks have fast code") {
    for (const Case& c :
         {Case{"first", {1, 3, 64, 64}, {16, 3, 3, 3}, {}}, Case{"3x3", {1, 64, 16, 16}, {64, 64, 3, 3}, {}},
          Case{"1x1", {1, 96, 16, 16}, {24, 96, 1, 1}, {}},
          Case{"odd channels", {1, 42, 16, 16}, {18, 42, 1, 1}, {}}}) {
        INFO(c.name);
        onednn::ConvolutionShape shape;
        shape.input = {DataType::float32, c.input, MemoryOrder::channels_last};
        shape.weights = c.weights;
        shape.window.rank = 2;
        shape.window.kernel = {1, c.weights[2], c.weights[3]};
        shape.output = {DataType::float32,
                        {1, c.weights[0], c.input[2] - c.weights[2] + 1, c.input[3] - c.weights[3] + 1},
                        MemoryOrder::channels_last};
        InputInfo weights;
        weights.constant = random_tensor(c.weights, 1);
        weights.descriptor = weights.constant->descriptor();
        weights.weight = true;
        WeightCache cache;
        const auto primitive = onednn::make_convolution(shape, {weights, cache});
        REQUIRE(primitive != nullptr);
        CHECK(primitive->has_packed_weights());
        CHECK_FALSE(primitive->implementation().starts_with("ref"));
        CHECK(cache.bytes() >= weights.descriptor.bytes());
        const std::size_t bytes = cache.bytes();
        const auto again = onednn::make_convolution(shape, {weights, cache});
        CHECK(cache.bytes() == bytes);
    }
    CHECK_FALSE(onednn::inside_library());
}
