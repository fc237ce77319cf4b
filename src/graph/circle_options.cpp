#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/circle_operators.h"

namespace qcalib {

namespace {

// How a field of an options table is stored and what its attribute is.
enum class FieldKind : std::uint8_t {
    integer,       // int32: int64
    long_integer,  // int64
    flag,          // one byte: int64 0 or 1
    real,          // float32
    integers,      // a vector of int32
    reals,         // a vector of float32
    text,          // a string
    padding,       // the rest: one byte, a name
    activation,
    tensor_type,
    weights_format,
    mirror_mode,
    kernel_type,
    combiner,
    projection,
};

struct OptionField {
    std::uint8_t table;  // BuiltinOptions
    std::uint8_t slot;
    std::string_view name;
    FieldKind kind;
    std::int32_t otherwise = 0;
};

using Kind = FieldKind;

// The options tables by the numbers of TFLite schema 2.19 and Circle 0.10; those that are not here are empty.
constexpr std::array option_fields = {
    // Conv2D
    OptionField{1, 0, "padding", Kind::padding},
    OptionField{1, 1, "stride_w", Kind::integer},
    OptionField{1, 2, "stride_h", Kind::integer},
    OptionField{1, 3, "fused_activation_function", Kind::activation},
    OptionField{1, 4, "dilation_w_factor", Kind::integer, 1},
    OptionField{1, 5, "dilation_h_factor", Kind::integer, 1},
    OptionField{1, 6, "quantized_bias_type", Kind::tensor_type},
    // DepthwiseConv2D
    OptionField{2, 0, "padding", Kind::padding},
    OptionField{2, 1, "stride_w", Kind::integer},
    OptionField{2, 2, "stride_h", Kind::integer},
    OptionField{2, 3, "depth_multiplier", Kind::integer},
    OptionField{2, 4, "fused_activation_function", Kind::activation},
    OptionField{2, 5, "dilation_w_factor", Kind::integer, 1},
    OptionField{2, 6, "dilation_h_factor", Kind::integer, 1},
    // ConcatEmbeddings
    OptionField{3, 0, "num_channels", Kind::integer},
    OptionField{3, 1, "num_columns_per_channel", Kind::integers},
    OptionField{3, 2, "embedding_dim_per_channel", Kind::integers},
    // LSHProjection
    OptionField{4, 0, "type", Kind::projection},
    // Pool2D
    OptionField{5, 0, "padding", Kind::padding},
    OptionField{5, 1, "stride_w", Kind::integer},
    OptionField{5, 2, "stride_h", Kind::integer},
    OptionField{5, 3, "filter_width", Kind::integer},
    OptionField{5, 4, "filter_height", Kind::integer},
    OptionField{5, 5, "fused_activation_function", Kind::activation},
    // SVDF
    OptionField{6, 0, "rank", Kind::integer},
    OptionField{6, 1, "fused_activation_function", Kind::activation},
    OptionField{6, 2, "asymmetric_quantize_inputs", Kind::flag},
    // RNN
    OptionField{7, 0, "fused_activation_function", Kind::activation},
    OptionField{7, 1, "asymmetric_quantize_inputs", Kind::flag},
    // FullyConnected
    OptionField{8, 0, "fused_activation_function", Kind::activation},
    OptionField{8, 1, "weights_format", Kind::weights_format},
    OptionField{8, 2, "keep_num_dims", Kind::flag},
    OptionField{8, 3, "asymmetric_quantize_inputs", Kind::flag},
    OptionField{8, 4, "quantized_bias_type", Kind::tensor_type},
    // Softmax
    OptionField{9, 0, "beta", Kind::real},
    // Concatenation
    OptionField{10, 0, "axis", Kind::integer},
    OptionField{10, 1, "fused_activation_function", Kind::activation},
    // Add
    OptionField{11, 0, "fused_activation_function", Kind::activation},
    OptionField{11, 1, "pot_scale_int16", Kind::flag, 1},
    // L2Norm
    OptionField{12, 0, "fused_activation_function", Kind::activation},
    // LocalResponseNormalization
    OptionField{13, 0, "radius", Kind::integer},
    OptionField{13, 1, "bias", Kind::real},
    OptionField{13, 2, "alpha", Kind::real},
    OptionField{13, 3, "beta", Kind::real},
    // LSTM
    OptionField{14, 0, "fused_activation_function", Kind::activation},
    OptionField{14, 1, "cell_clip", Kind::real},
    OptionField{14, 2, "proj_clip", Kind::real},
    OptionField{14, 3, "kernel_type", Kind::kernel_type},
    OptionField{14, 4, "asymmetric_quantize_inputs", Kind::flag},
    // ResizeBilinear
    OptionField{15, 2, "align_corners", Kind::flag},
    OptionField{15, 3, "half_pixel_centers", Kind::flag},
    // Call
    OptionField{16, 0, "subgraph", Kind::integer},
    // Reshape
    OptionField{17, 0, "new_shape", Kind::integers},
    // SkipGram
    OptionField{18, 0, "ngram_size", Kind::integer},
    OptionField{18, 1, "max_skip_size", Kind::integer},
    OptionField{18, 2, "include_all_ngrams", Kind::flag},
    // SpaceToDepth
    OptionField{19, 0, "block_size", Kind::integer},
    // EmbeddingLookupSparse
    OptionField{20, 0, "combiner", Kind::combiner},
    // Mul
    OptionField{21, 0, "fused_activation_function", Kind::activation},
    // Gather
    OptionField{23, 0, "axis", Kind::integer},
    OptionField{23, 1, "batch_dims", Kind::integer},
    // Reducer
    OptionField{27, 0, "keep_dims", Kind::flag},
    // Sub
    OptionField{28, 0, "fused_activation_function", Kind::activation},
    OptionField{28, 1, "pot_scale_int16", Kind::flag, 1},
    // Div
    OptionField{29, 0, "fused_activation_function", Kind::activation},
    // Squeeze
    OptionField{30, 0, "squeeze_dims", Kind::integers},
    // SequenceRNN
    OptionField{31, 0, "time_major", Kind::flag},
    OptionField{31, 1, "fused_activation_function", Kind::activation},
    OptionField{31, 2, "asymmetric_quantize_inputs", Kind::flag},
    // StridedSlice
    OptionField{32, 0, "begin_mask", Kind::integer},
    OptionField{32, 1, "end_mask", Kind::integer},
    OptionField{32, 2, "ellipsis_mask", Kind::integer},
    OptionField{32, 3, "new_axis_mask", Kind::integer},
    OptionField{32, 4, "shrink_axis_mask", Kind::integer},
    OptionField{32, 5, "offset", Kind::flag},
    // Split
    OptionField{35, 0, "num_splits", Kind::integer},
    // Cast
    OptionField{37, 0, "in_data_type", Kind::tensor_type},
    OptionField{37, 1, "out_data_type", Kind::tensor_type},
    // ArgMax
    OptionField{40, 0, "output_type", Kind::tensor_type},
    // TransposeConv
    OptionField{49, 0, "padding", Kind::padding},
    OptionField{49, 1, "stride_w", Kind::integer},
    OptionField{49, 2, "stride_h", Kind::integer},
    OptionField{49, 3, "fused_activation_function", Kind::activation},
    OptionField{49, 4, "quantized_bias_type", Kind::tensor_type},
    // SparseToDense
    OptionField{50, 0, "validate_indices", Kind::flag},
    // Shape
    OptionField{55, 0, "out_type", Kind::tensor_type},
    // ArgMin
    OptionField{57, 0, "output_type", Kind::tensor_type},
    // FakeQuant
    OptionField{58, 0, "min", Kind::real},
    OptionField{58, 1, "max", Kind::real},
    OptionField{58, 2, "num_bits", Kind::integer},
    OptionField{58, 3, "narrow_range", Kind::flag},
    // Pack
    OptionField{59, 0, "values_count", Kind::integer},
    OptionField{59, 1, "axis", Kind::integer},
    // OneHot
    OptionField{61, 0, "axis", Kind::integer},
    // Unpack
    OptionField{64, 0, "num", Kind::integer},
    OptionField{64, 1, "axis", Kind::integer},
    // BidirectionalSequenceLSTM
    OptionField{69, 0, "fused_activation_function", Kind::activation},
    OptionField{69, 1, "cell_clip", Kind::real},
    OptionField{69, 2, "proj_clip", Kind::real},
    OptionField{69, 3, "merge_outputs", Kind::flag},
    OptionField{69, 4, "time_major", Kind::flag, 1},
    OptionField{69, 5, "asymmetric_quantize_inputs", Kind::flag},
    // BidirectionalSequenceRNN
    OptionField{70, 0, "time_major", Kind::flag},
    OptionField{70, 1, "fused_activation_function", Kind::activation},
    OptionField{70, 2, "merge_outputs", Kind::flag},
    OptionField{70, 3, "asymmetric_quantize_inputs", Kind::flag},
    // UnidirectionalSequenceLSTM
    OptionField{71, 0, "fused_activation_function", Kind::activation},
    OptionField{71, 1, "cell_clip", Kind::real},
    OptionField{71, 2, "proj_clip", Kind::real},
    OptionField{71, 3, "time_major", Kind::flag},
    OptionField{71, 4, "asymmetric_quantize_inputs", Kind::flag},
    OptionField{71, 5, "diagonal_recurrent_tensors", Kind::flag},
    // ResizeNearestNeighbor
    OptionField{74, 0, "align_corners", Kind::flag},
    OptionField{74, 1, "half_pixel_centers", Kind::flag},
    // LeakyRelu
    OptionField{75, 0, "alpha", Kind::real},
    // MirrorPad
    OptionField{77, 0, "mode", Kind::mirror_mode},
    // SplitV
    OptionField{79, 0, "num_splits", Kind::integer},
    // Unique
    OptionField{80, 0, "idx_out_type", Kind::tensor_type, 2},
    // ReverseSequence
    OptionField{87, 0, "seq_dim", Kind::integer},
    OptionField{87, 1, "batch_dim", Kind::integer},
    // If
    OptionField{92, 0, "then_subgraph_index", Kind::integer},
    OptionField{92, 1, "else_subgraph_index", Kind::integer},
    // While
    OptionField{93, 0, "cond_subgraph_index", Kind::integer},
    OptionField{93, 1, "body_subgraph_index", Kind::integer},
    // DepthToSpace
    OptionField{94, 0, "block_size", Kind::integer},
    // BatchMatMul
    OptionField{101, 0, "adj_x", Kind::flag},
    OptionField{101, 1, "adj_y", Kind::flag},
    OptionField{101, 2, "asymmetric_quantize_inputs", Kind::flag},
    // Cumsum
    OptionField{102, 0, "exclusive", Kind::flag},
    OptionField{102, 1, "reverse", Kind::flag},
    // CallOnce
    OptionField{103, 0, "init_subgraph_index", Kind::integer},
    // Conv3D
    OptionField{106, 0, "padding", Kind::padding},
    OptionField{106, 1, "stride_d", Kind::integer},
    OptionField{106, 2, "stride_w", Kind::integer},
    OptionField{106, 3, "stride_h", Kind::integer},
    OptionField{106, 4, "fused_activation_function", Kind::activation},
    OptionField{106, 5, "dilation_d_factor", Kind::integer, 1},
    OptionField{106, 6, "dilation_w_factor", Kind::integer, 1},
    OptionField{106, 7, "dilation_h_factor", Kind::integer, 1},
    // Hashtable
    OptionField{107, 0, "table_id", Kind::integer},
    OptionField{107, 1, "key_dtype", Kind::tensor_type},
    OptionField{107, 2, "value_dtype", Kind::tensor_type},
    // VarHandle
    OptionField{111, 0, "container", Kind::text},
    OptionField{111, 1, "shared_name", Kind::text},
    // Random
    OptionField{114, 0, "seed", Kind::long_integer},
    OptionField{114, 1, "seed2", Kind::long_integer},
    // Bucketize
    OptionField{115, 0, "boundaries", Kind::reals},
    // Gelu
    OptionField{116, 0, "approximate", Kind::flag},
    // Circle's own: RunModel, RoPE, RmsNorm, GRU, BCQGather, BCQFullyConnected, InstanceNorm
    OptionField{248, 0, "location", Kind::text},
    OptionField{248, 1, "signature", Kind::text},
    OptionField{249, 0, "mode", Kind::integer},
    OptionField{250, 0, "epsilon", Kind::real},
    OptionField{251, 0, "fused_activation_function", Kind::activation},
    OptionField{251, 1, "return_sequences", Kind::flag},
    OptionField{251, 2, "time_major", Kind::flag},
    OptionField{252, 0, "input_hidden_size", Kind::integer},
    OptionField{252, 1, "axis", Kind::integer},
    OptionField{253, 0, "weights_hidden_size", Kind::integer},
    OptionField{253, 1, "fused_activation_function", Kind::activation},
    OptionField{254, 0, "epsilon", Kind::real},
    OptionField{254, 1, "fused_activation_function", Kind::activation},
};

struct OperatorOptions {
    std::int32_t code;   // BuiltinOperator
    std::uint8_t table;  // BuiltinOptions
};

// The options of operators whose tables have fields.
constexpr std::array operator_options = {
    OperatorOptions{0, 11},    OperatorOptions{1, 5},     OperatorOptions{2, 10},
    OperatorOptions{3, 1},     OperatorOptions{4, 2},     OperatorOptions{5, 94},
    OperatorOptions{9, 8},     OperatorOptions{11, 12},   OperatorOptions{12, 5},
    OperatorOptions{13, 13},   OperatorOptions{15, 4},    OperatorOptions{16, 14},
    OperatorOptions{17, 5},    OperatorOptions{18, 21},   OperatorOptions{22, 17},
    OperatorOptions{23, 15},   OperatorOptions{24, 7},    OperatorOptions{25, 9},
    OperatorOptions{26, 19},   OperatorOptions{27, 6},    OperatorOptions{29, 3},
    OperatorOptions{30, 18},   OperatorOptions{31, 16},   OperatorOptions{33, 20},
    OperatorOptions{35, 31},   OperatorOptions{36, 23},   OperatorOptions{40, 27},
    OperatorOptions{41, 28},   OperatorOptions{42, 29},   OperatorOptions{43, 30},
    OperatorOptions{44, 71},   OperatorOptions{45, 32},   OperatorOptions{46, 70},
    OperatorOptions{49, 35},   OperatorOptions{52, 69},   OperatorOptions{53, 37},
    OperatorOptions{56, 40},   OperatorOptions{67, 49},   OperatorOptions{68, 50},
    OperatorOptions{74, 27},   OperatorOptions{77, 55},   OperatorOptions{79, 57},
    OperatorOptions{80, 58},   OperatorOptions{81, 27},   OperatorOptions{82, 27},
    OperatorOptions{83, 59},   OperatorOptions{85, 61},   OperatorOptions{88, 64},
    OperatorOptions{89, 27},   OperatorOptions{91, 27},   OperatorOptions{97, 74},
    OperatorOptions{98, 75},   OperatorOptions{100, 77},  OperatorOptions{102, 79},
    OperatorOptions{103, 80},  OperatorOptions{112, 87},  OperatorOptions{118, 92},
    OperatorOptions{119, 93},  OperatorOptions{126, 101}, OperatorOptions{128, 102},
    OperatorOptions{129, 103}, OperatorOptions{132, 106}, OperatorOptions{136, 107},
    OperatorOptions{140, 27},  OperatorOptions{141, 106}, OperatorOptions{142, 111},
    OperatorOptions{146, 114}, OperatorOptions{147, 115}, OperatorOptions{148, 114},
    OperatorOptions{149, 114}, OperatorOptions{150, 116}, OperatorOptions{-2, 254},
    OperatorOptions{-3, 253},  OperatorOptions{-4, 252},  OperatorOptions{-5, 251},
    OperatorOptions{-6, 250},  OperatorOptions{-7, 249},  OperatorOptions{-8, 248},
};

std::span<const std::string_view> names_of_kind(FieldKind kind) {
    static constexpr std::array<std::string_view, 2> paddings = {"SAME", "VALID"};
    static constexpr std::array<std::string_view, 6> activations = {"NONE",  "RELU", "RELU_N1_TO_1",
                                                                    "RELU6", "TANH", "SIGN_BIT"};
    static constexpr std::array<std::string_view, 2> weights_formats = {"DEFAULT", "SHUFFLED4x16INT8"};
    static constexpr std::array<std::string_view, 2> mirror_modes = {"REFLECT", "SYMMETRIC"};
    static constexpr std::array<std::string_view, 2> kernel_types = {"FULL", "BASIC"};
    static constexpr std::array<std::string_view, 3> combiners = {"SUM", "MEAN", "SQRTN"};
    static constexpr std::array<std::string_view, 3> projections = {"UNKNOWN", "SPARSE", "DENSE"};
    switch (kind) {
        case FieldKind::padding:
            return paddings;
        case FieldKind::activation:
            return activations;
        case FieldKind::weights_format:
            return weights_formats;
        case FieldKind::mirror_mode:
            return mirror_modes;
        case FieldKind::kernel_type:
            return kernel_types;
        case FieldKind::combiner:
            return combiners;
        case FieldKind::projection:
            return projections;
        default:
            return {};
    }
}

// Reads fields of one table by their places; every place is checked to lie in the buffer.
class OptionsTable {
  public:
    explicit OptionsTable(const CircleOptions& options) : buffer_(options.buffer) {
        if (options.table == nullptr) return;
        table_ = static_cast<std::size_t>(options.table - buffer_.data());
        const auto back = scalar<std::int32_t>(*table_);
        const std::int64_t vtable = static_cast<std::int64_t>(*table_) - back;
        if (vtable < 0) damaged();
        vtable_ = static_cast<std::size_t>(vtable);
        vtable_bytes_ = scalar<std::uint16_t>(vtable_);
    }

    // The field, or `otherwise` where the table does not have it.
    template <typename T>
    T get(std::uint8_t slot, T otherwise) const {
        const std::optional<std::size_t> place = place_of(slot);
        return place ? scalar<T>(*place) : otherwise;
    }

    template <typename T>
    std::vector<T> list(std::uint8_t slot) const {
        const std::optional<std::size_t> place = place_of(slot);
        if (!place) return {};
        const std::size_t start = *place + scalar<std::uint32_t>(*place);
        const std::size_t length = scalar<std::uint32_t>(start);
        if (start + sizeof(std::uint32_t) > buffer_.size() ||
            length > (buffer_.size() - start - sizeof(std::uint32_t)) / sizeof(T)) {
            damaged();
        }
        std::vector<T> elements(length);
        if (length > 0) {
            std::memcpy(elements.data(), buffer_.data() + start + sizeof(std::uint32_t), length * sizeof(T));
        }
        return elements;
    }

  private:
    [[noreturn]] static void damaged() { fail("expected a table of options, found a damaged one"); }

    std::optional<std::size_t> place_of(std::uint8_t slot) const {
        if (!table_) return std::nullopt;
        const std::size_t entry = 4 + 2 * std::size_t{slot};
        if (entry + 2 > vtable_bytes_) return std::nullopt;
        const auto offset = scalar<std::uint16_t>(vtable_ + entry);
        if (offset == 0) return std::nullopt;
        return *table_ + offset;
    }

    template <typename T>
    T scalar(std::size_t place) const {
        if (place > buffer_.size() || buffer_.size() - place < sizeof(T)) damaged();
        T value;
        std::memcpy(&value, buffer_.data() + place, sizeof(T));
        return value;
    }

    std::span<const std::uint8_t> buffer_;
    std::optional<std::size_t> table_;
    std::size_t vtable_ = 0;
    std::size_t vtable_bytes_ = 0;
};

std::string enumerated(const OptionField& field, std::int8_t code) {
    if (field.kind == FieldKind::tensor_type) return circle_type_name(code);
    if (field.kind == FieldKind::weights_format && code == 127) return "SHUFFLED16x1FLOAT32";
    const std::span<const std::string_view> names = names_of_kind(field.kind);
    if (code < 0 || std::cmp_greater_equal(code, names.size())) {
        fail("{}: expected a number from 0 to {}, found {}", field.name, names.size() - 1, code);
    }
    return std::string(names[static_cast<std::size_t>(code)]);
}

AttributeValue read_field(const OptionField& field, const OptionsTable& table) {
    switch (field.kind) {
        case FieldKind::integer:
            return std::int64_t{table.get<std::int32_t>(field.slot, field.otherwise)};
        case FieldKind::long_integer:
            return table.get<std::int64_t>(field.slot, field.otherwise);
        case FieldKind::flag:
            return std::int64_t{table.get<std::uint8_t>(field.slot, field.otherwise != 0) != 0 ? 1 : 0};
        case FieldKind::real:
            return table.get<float>(field.slot, 0.0F);
        case FieldKind::integers: {
            const std::vector<std::int32_t> elements = table.list<std::int32_t>(field.slot);
            return std::vector<std::int64_t>(elements.begin(), elements.end());
        }
        case FieldKind::reals:
            return table.list<float>(field.slot);
        case FieldKind::text: {
            const std::vector<char> characters = table.list<char>(field.slot);
            return std::string(characters.begin(), characters.end());
        }
        default:
            return enumerated(field,
                              table.get<std::int8_t>(field.slot, static_cast<std::int8_t>(field.otherwise)));
    }
}

}  // namespace

void read_circle_options(std::int32_t operator_code, const CircleOptions& options, Node& node) {
    const auto usual = std::find_if(operator_options.begin(), operator_options.end(),
                                    [&](const OperatorOptions& one) { return one.code == operator_code; });
    const bool given = options.type != 0 && options.table != nullptr;
    if (given && usual != operator_options.end() && usual->table != options.type) {
        fail("expected options of kind {}, found those of kind {}", usual->table, options.type);
    }
    const std::uint8_t type = given                             ? options.type
                              : usual != operator_options.end() ? usual->table
                                                                : std::uint8_t{0};
    const OptionsTable table(given ? options : CircleOptions{});
    for (const OptionField& field : option_fields) {
        if (field.table == type)
            node.attributes.insert_or_assign(std::string(field.name), read_field(field, table));
    }
}

}  // namespace qcalib
