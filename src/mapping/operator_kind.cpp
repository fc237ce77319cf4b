#include "mapping/operator_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>

namespace qcalib {

namespace {

const std::unordered_map<std::string_view, std::string_view>& kinds() {
    static const std::unordered_map<std::string_view, std::string_view> table = {
        {"Conv", "convolution"},
        {"CONV_2D", "convolution"},
        {"DEPTHWISE_CONV_2D", "convolution"},
        {"ConvTranspose", "deconvolution"},
        {"TRANSPOSE_CONV", "deconvolution"},
        {"Gemm", "matmul"},
        {"MatMul", "matmul"},
        {"FULLY_CONNECTED", "matmul"},
        {"BATCH_MATMUL", "matmul"},
        {"GlobalAveragePool", "mean"},
        {"ReduceMean", "mean"},
        {"MEAN", "mean"},
        {"AveragePool", "averagepool"},
        {"AVERAGE_POOL_2D", "averagepool"},
        {"MaxPool", "maxpool"},
        {"MAX_POOL_2D", "maxpool"},
        {"Relu", "relu"},
        {"Clip", "clip"},
        {"RELU6", "clip"},
        {"Sigmoid", "sigmoid"},
        {"LOGISTIC", "sigmoid"},
        {"HardSwish", "hardswish"},
        {"Concat", "concat"},
        {"CONCATENATION", "concat"},
        {"Max", "maximum"},
        {"Min", "minimum"},
        {"Flatten", "reshape"},
        {"Squeeze", "reshape"},
        {"Unsqueeze", "reshape"},
        {"EXPAND_DIMS", "reshape"},
        {"ReduceMax", "reducemax"},
        {"ReduceMin", "reducemin"},
        {"ReduceSum", "sum"},
        {"PADV2", "pad"},
        {"MIRROR_PAD", "pad"},
        {"Resize", "resize"},
        {"RESIZE_BILINEAR", "resize"},
        {"RESIZE_NEAREST_NEIGHBOR", "resize"},
        {"SplitV", "split"},
        {"SPLIT_V", "split"},
        {"UNPACK", "split"},
        {"PACK", "concat"},
        {"STRIDED_SLICE", "slice"},
    };
    return table;
}

}  // namespace

std::string operator_kind(const Node& node) {
    const auto found = kinds().find(node.op_type);
    if (found != kinds().end()) return std::string(found->second);
    std::string kind;
    for (const char letter : node.op_type) {
        if (letter != '_') kind += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    return kind;
}

bool keeps_values(const Node& node) {
    constexpr std::array kept = {"transpose", "reshape", "identity", "dropout", "dequantize", "quantize"};
    const std::string kind = operator_kind(node);
    return std::any_of(kept.begin(), kept.end(), [&](std::string_view one) { return kind == one; });
}

std::string_view fused_activation(const Node& node) {
    const auto found = node.attributes.find("fused_activation_function");
    const auto* name = found == node.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
    return name == nullptr || *name == "NONE" ? std::string_view() : std::string_view(*name);
}

}  // namespace qcalib
