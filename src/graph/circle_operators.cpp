#include "graph/circle_operators.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace qcalib {

namespace {

// BuiltinOperator of TFLite schema 2.19 and Circle 0.10, from 0 on.
constexpr std::array<std::string_view, 210> operator_names = {"ADD",
                                                              "AVERAGE_POOL_2D",
                                                              "CONCATENATION",
                                                              "CONV_2D",
                                                              "DEPTHWISE_CONV_2D",
                                                              "DEPTH_TO_SPACE",
                                                              "DEQUANTIZE",
                                                              "EMBEDDING_LOOKUP",
                                                              "FLOOR",
                                                              "FULLY_CONNECTED",
                                                              "HASHTABLE_LOOKUP",
                                                              "L2_NORMALIZATION",
                                                              "L2_POOL_2D",
                                                              "LOCAL_RESPONSE_NORMALIZATION",
                                                              "LOGISTIC",
                                                              "LSH_PROJECTION",
                                                              "LSTM",
                                                              "MAX_POOL_2D",
                                                              "MUL",
                                                              "RELU",
                                                              "RELU_N1_TO_1",
                                                              "RELU6",
                                                              "RESHAPE",
                                                              "RESIZE_BILINEAR",
                                                              "RNN",
                                                              "SOFTMAX",
                                                              "SPACE_TO_DEPTH",
                                                              "SVDF",
                                                              "TANH",
                                                              "CONCAT_EMBEDDINGS",
                                                              "SKIP_GRAM",
                                                              "CALL",
                                                              "CUSTOM",
                                                              "EMBEDDING_LOOKUP_SPARSE",
                                                              "PAD",
                                                              "UNIDIRECTIONAL_SEQUENCE_RNN",
                                                              "GATHER",
                                                              "BATCH_TO_SPACE_ND",
                                                              "SPACE_TO_BATCH_ND",
                                                              "TRANSPOSE",
                                                              "MEAN",
                                                              "SUB",
                                                              "DIV",
                                                              "SQUEEZE",
                                                              "UNIDIRECTIONAL_SEQUENCE_LSTM",
                                                              "STRIDED_SLICE",
                                                              "BIDIRECTIONAL_SEQUENCE_RNN",
                                                              "EXP",
                                                              "TOPK_V2",
                                                              "SPLIT",
                                                              "LOG_SOFTMAX",
                                                              "DELEGATE",
                                                              "BIDIRECTIONAL_SEQUENCE_LSTM",
                                                              "CAST",
                                                              "PRELU",
                                                              "MAXIMUM",
                                                              "ARG_MAX",
                                                              "MINIMUM",
                                                              "LESS",
                                                              "NEG",
                                                              "PADV2",
                                                              "GREATER",
                                                              "GREATER_EQUAL",
                                                              "LESS_EQUAL",
                                                              "SELECT",
                                                              "SLICE",
                                                              "SIN",
                                                              "TRANSPOSE_CONV",
                                                              "SPARSE_TO_DENSE",
                                                              "TILE",
                                                              "EXPAND_DIMS",
                                                              "EQUAL",
                                                              "NOT_EQUAL",
                                                              "LOG",
                                                              "SUM",
                                                              "SQRT",
                                                              "RSQRT",
                                                              "SHAPE",
                                                              "POW",
                                                              "ARG_MIN",
                                                              "FAKE_QUANT",
                                                              "REDUCE_PROD",
                                                              "REDUCE_MAX",
                                                              "PACK",
                                                              "LOGICAL_OR",
                                                              "ONE_HOT",
                                                              "LOGICAL_AND",
                                                              "LOGICAL_NOT",
                                                              "UNPACK",
                                                              "REDUCE_MIN",
                                                              "FLOOR_DIV",
                                                              "REDUCE_ANY",
                                                              "SQUARE",
                                                              "ZEROS_LIKE",
                                                              "FILL",
                                                              "FLOOR_MOD",
                                                              "RANGE",
                                                              "RESIZE_NEAREST_NEIGHBOR",
                                                              "LEAKY_RELU",
                                                              "SQUARED_DIFFERENCE",
                                                              "MIRROR_PAD",
                                                              "ABS",
                                                              "SPLIT_V",
                                                              "UNIQUE",
                                                              "CEIL",
                                                              "REVERSE_V2",
                                                              "ADD_N",
                                                              "GATHER_ND",
                                                              "COS",
                                                              "WHERE",
                                                              "RANK",
                                                              "ELU",
                                                              "REVERSE_SEQUENCE",
                                                              "MATRIX_DIAG",
                                                              "QUANTIZE",
                                                              "MATRIX_SET_DIAG",
                                                              "ROUND",
                                                              "HARD_SWISH",
                                                              "IF",
                                                              "WHILE",
                                                              "NON_MAX_SUPPRESSION_V4",
                                                              "NON_MAX_SUPPRESSION_V5",
                                                              "SCATTER_ND",
                                                              "SELECT_V2",
                                                              "DENSIFY",
                                                              "SEGMENT_SUM",
                                                              "BATCH_MATMUL",
                                                              "PLACEHOLDER_FOR_GREATER_OP_CODES",
                                                              "CUMSUM",
                                                              "CALL_ONCE",
                                                              "BROADCAST_TO",
                                                              "RFFT2D",
                                                              "CONV_3D",
                                                              "IMAG",
                                                              "REAL",
                                                              "COMPLEX_ABS",
                                                              "HASHTABLE",
                                                              "HASHTABLE_FIND",
                                                              "HASHTABLE_IMPORT",
                                                              "HASHTABLE_SIZE",
                                                              "REDUCE_ALL",
                                                              "CONV_3D_TRANSPOSE",
                                                              "VAR_HANDLE",
                                                              "READ_VARIABLE",
                                                              "ASSIGN_VARIABLE",
                                                              "BROADCAST_ARGS",
                                                              "RANDOM_STANDARD_NORMAL",
                                                              "BUCKETIZE",
                                                              "RANDOM_UNIFORM",
                                                              "MULTINOMIAL",
                                                              "GELU",
                                                              "DYNAMIC_UPDATE_SLICE",
                                                              "RELU_0_TO_1",
                                                              "UNSORTED_SEGMENT_PROD",
                                                              "UNSORTED_SEGMENT_MAX",
                                                              "UNSORTED_SEGMENT_SUM",
                                                              "ATAN2",
                                                              "UNSORTED_SEGMENT_MIN",
                                                              "SIGN",
                                                              "BITCAST",
                                                              "BITWISE_XOR",
                                                              "RIGHT_SHIFT",
                                                              "STABLEHLO_LOGISTIC",
                                                              "STABLEHLO_ADD",
                                                              "STABLEHLO_DIVIDE",
                                                              "STABLEHLO_MULTIPLY",
                                                              "STABLEHLO_MAXIMUM",
                                                              "STABLEHLO_RESHAPE",
                                                              "STABLEHLO_CLAMP",
                                                              "STABLEHLO_CONCATENATE",
                                                              "STABLEHLO_BROADCAST_IN_DIM",
                                                              "STABLEHLO_CONVOLUTION",
                                                              "STABLEHLO_SLICE",
                                                              "STABLEHLO_CUSTOM_CALL",
                                                              "STABLEHLO_REDUCE",
                                                              "STABLEHLO_ABS",
                                                              "STABLEHLO_AND",
                                                              "STABLEHLO_COSINE",
                                                              "STABLEHLO_EXPONENTIAL",
                                                              "STABLEHLO_FLOOR",
                                                              "STABLEHLO_LOG",
                                                              "STABLEHLO_MINIMUM",
                                                              "STABLEHLO_NEGATE",
                                                              "STABLEHLO_OR",
                                                              "STABLEHLO_POWER",
                                                              "STABLEHLO_REMAINDER",
                                                              "STABLEHLO_RSQRT",
                                                              "STABLEHLO_SELECT",
                                                              "STABLEHLO_SUBTRACT",
                                                              "STABLEHLO_TANH",
                                                              "STABLEHLO_SCATTER",
                                                              "STABLEHLO_COMPARE",
                                                              "STABLEHLO_CONVERT",
                                                              "STABLEHLO_DYNAMIC_SLICE",
                                                              "STABLEHLO_DYNAMIC_UPDATE_SLICE",
                                                              "STABLEHLO_PAD",
                                                              "STABLEHLO_IOTA",
                                                              "STABLEHLO_DOT_GENERAL",
                                                              "STABLEHLO_REDUCE_WINDOW",
                                                              "STABLEHLO_SORT",
                                                              "STABLEHLO_WHILE",
                                                              "STABLEHLO_GATHER",
                                                              "STABLEHLO_TRANSPOSE",
                                                              "DILATE",
                                                              "STABLEHLO_RNG_BIT_GENERATOR",
                                                              "REDUCE_WINDOW",
                                                              "STABLEHLO_COMPOSITE",
                                                              "STABLEHLO_SHIFT_LEFT",
                                                              "STABLEHLO_CBRT",
                                                              "STABLEHLO_CASE"};

// From -1 down.
constexpr std::array<std::string_view, 9> circle_operator_names = {
    "",         "INSTANCE_NORM", "BCQ_FULLY_CONNECTED", "BCQ_GATHER", "GRU",
    "RMS_NORM", "ROPE",          "RUN_MODEL",           "ATTENTION"};

struct CircleType {
    std::string_view name;
    DataType type = DataType::undefined;
};

// TensorType from 0 on.
constexpr std::array circle_types = {
    CircleType{"float32", DataType::float32},
    CircleType{"float16", DataType::float16},
    CircleType{"int32", DataType::int32},
    CircleType{"uint8", DataType::uint8},
    CircleType{"int64", DataType::int64},
    CircleType{"string", DataType::string},
    CircleType{"bool", DataType::boolean},
    CircleType{"int16", DataType::int16},
    CircleType{"complex64"},
    CircleType{"int8", DataType::int8},
    CircleType{"float64", DataType::float64},
    CircleType{"complex128"},
    CircleType{"uint64", DataType::uint64},
    CircleType{"resource"},
    CircleType{"variant"},
    CircleType{"uint32", DataType::uint32},
    CircleType{"uint16", DataType::uint16},
    CircleType{"int4"},
    CircleType{"bfloat16", DataType::bfloat16},
};

// Circle's own, from -1 down.
constexpr std::array<std::string_view, 7> circle_block_types = {
    "uint4", "GGML_Q4_0", "GGML_Q4_1", "GGML_Q8_0", "GGML_Q8_1", "MXFP4", "MXINT8"};

}  // namespace

std::string circle_operator_name(std::int32_t code) {
    const std::int64_t index = code < 0 ? -std::int64_t{code} - 1 : code;
    const std::span<const std::string_view> names =
        code < 0 ? std::span<const std::string_view>(circle_operator_names) : operator_names;
    if (std::cmp_less(index, names.size()) && !names[static_cast<std::size_t>(index)].empty()) {
        return std::string(names[static_cast<std::size_t>(index)]);
    }
    return fmt::format("OPERATOR_{}", code);
}

std::string circle_type_name(std::int32_t code) {
    if (code >= 0 && std::cmp_less(code, circle_types.size())) {
        return std::string(circle_types[static_cast<std::size_t>(code)].name);
    }
    const std::int64_t block = -std::int64_t{code} - 1;
    if (block >= 0 && std::cmp_less(block, circle_block_types.size())) {
        return std::string(circle_block_types[static_cast<std::size_t>(block)]);
    }
    return fmt::format("type {}", code);
}

DataType data_type_of_circle(std::int32_t code) {
    if (code < 0 || std::cmp_greater_equal(code, circle_types.size())) return DataType::undefined;
    return circle_types[static_cast<std::size_t>(code)].type;
}

}  // namespace qcalib
