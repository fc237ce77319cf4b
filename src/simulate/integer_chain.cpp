#include "simulate/integer_chain.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/digest.h"
#include "base/text.h"
#include "simulate/chain_graph.h"
#include "simulate/chain_kernels.h"
#include "simulate/chain_layers.h"
#include "simulate/chain_scales.h"
#include "simulate/chain_weights.h"
#include "simulate/exact_sums.h"
#include "target/tidl_scales.h"

namespace qcalib {

namespace {

using LayerKind = ChainLayer::Kind;

// The greatest magnitude of a grid's range, as TIDL counts it: 2^bits steps, or 2^(bits - 1) to both sides.
double limit_of_grid(const Encoding& grid) {
    if (grid.offset == 0) return std::ldexp(grid.scale, grid.bits);
    if (grid.offset == -(std::int64_t{1} << (grid.bits - 1))) return std::ldexp(grid.scale, grid.bits - 1);
    return std::max(std::abs(grid.min), std::abs(grid.max));
}

double limit_of(const Range& range) {
    return std::max(std::abs(range.min), std::abs(range.max));
}

// Codes of one activation, and the value that holds them.
struct ChainCodes {
    ValueId value = no_value;
    ChainTensor grid;

    double limit() const { return (grid.is_signed ? -grid.least() : grid.greatest() + 1) / grid.scale; }
};

// The sums of a layer on their way to the output's codes.
struct ChainSums {
    std::vector<ValueId> inputs;
    std::vector<double> factors;  // of each input, or of each channel of the one input
    std::vector<double> bias;
    double scale = 1;  // of a unit of the sums
    std::int64_t axis = 1;
    bool product = false;
    bool whole = false;  // sums are rounded to whole numbers first
    double stretch = 1;  // of a range that no Clip gives
};

class ChainBuilder {
  public:
    ChainBuilder(const SimulatedModel& model, const SimulatedEncodings& encodings,
                 const SimulationSwitches& switches, ChainWeightCache* cache)
        : model_(model),
          source_(*model.graph()),
          switches_(switches),
          cache_(cache),
          layers_(chain_layers(model)),
          graph_(source_) {
        for (const SimulatedEncoding& one : encodings) {
            if (one.encoding.type == CodeType::integer && !one.encoding.encodings.empty())
                encoding_of_.emplace(one.value, &one.encoding);
        }
    }

    IntegerChain run() {
        for (const ValueId input : source_.inputs) add_input(input);
        for (const ChainLayer& layer : layers_) add_layer(layer);
        result_.graph = graph_.finish();
        write_notes();
        return std::move(result_);
    }

  private:
    const std::string& name_of(ValueId value) const { return source_.values[value].name; }

    const TensorEncoding* encoding_of(ValueId value) const {
        const auto found = encoding_of_.find(value);
        return found == encoding_of_.end() ? nullptr : found->second;
    }

    const ChainCodes* codes_of(ValueId value) const {
        const auto found = value == no_value ? codes_.end() : codes_.find(value);
        return found == codes_.end() ? nullptr : &found->second;
    }

    int activation_bits(ValueId value) const {
        const TensorEncoding* encoding = encoding_of(value);
        return encoding == nullptr ? model_.target().activations.bits : encoding->width();
    }

    // What the range of an activation reaches to, by its encoding.
    std::optional<double> encoded_limit(ValueId value) const {
        const TensorEncoding* encoding = encoding_of(value);
        if (encoding == nullptr) return std::nullopt;
        return limit_of_grid(encoding->encodings.front());
    }

    // The codes of an activation whose sign the graph says, or its encoding.
    bool has_sign(ValueId value, bool by_graph) const {
        const TensorEncoding* encoding = encoding_of(value);
        if (switches_.chain.element_signs == ElementSigns::graph || encoding == nullptr) return by_graph;
        return encoding->encodings.front().offset != 0;
    }

    // The model's value in real numbers, of its codes.
    void keep(ValueId value, const ChainCodes& codes) {
        codes_.insert_or_assign(value, codes);
        result_.tensors.insert_or_assign(value, codes.grid);
        graph_.add("FromCodes", value, {codes.value}, {{"grid", numbers_tensor({codes.grid.scale})}},
                   {value});
    }

    // Rounds a value in real numbers to codes.
    void round_to_codes(ValueId value, ValueId real, const ChainTensor& grid) {
        const ChainCodes codes{graph_.fresh(value, "codes"), grid};
        graph_.add("ToCodes", value, {real},
                   {{"grid", numbers_tensor({grid.scale, grid.least(), grid.greatest()})},
                    {"rounding", static_cast<std::int64_t>(switches_.rounding)}},
                   {codes.value});
        keep(value, codes);
    }

    void add_input(ValueId input) {
        if (!model_.is_activation(input)) return;
        std::optional<double> limit = encoded_limit(input);
        ChainTensor grid;
        grid.bits = activation_bits(input);
        if (limit) {
            grid.is_signed = encoding_of(input)->encodings.front().offset != 0;
        } else {
            const std::optional<Range> clip = leading_clip(input);
            if (!clip) {
                notes_.push_back(fmt::format("input '{}' has no encoding: it is not quantized",
                                             printable(name_of(input))));
                return;
            }
            limit = limit_of(*clip);
            grid.is_signed = clip->min < 0;
            notes_.push_back(
                fmt::format("input '{}' has no encoding: its range is taken from the Clip behind it",
                            printable(name_of(input))));
        }
        const bool by_rule = switches_.chain.network_input == NetworkInput::signed_power_of_two;
        grid.is_signed = grid.is_signed || by_rule;
        grid.scale =
            by_rule ? network_input_scale(grid.bits, *limit) : chain_scale(grid.bits, grid.is_signed, *limit);
        const ValueId real = graph_.fresh(input, "not quantized");
        graph_.replace_input(input, real);
        round_to_codes(input, real, grid);
    }

    // The range that all readers of an input clip it to.
    std::optional<Range> leading_clip(ValueId input) const {
        std::optional<Range> range;
        for (const ChainLayer& layer : layers_) {
            const Node& node = source_.nodes[layer.node()];
            if (std::ranges::find(node.inputs, input) == node.inputs.end()) continue;
            if (layer.kind != LayerKind::clip || !layer.bounds()) return std::nullopt;
            if (!range) range = layer.bounds();
            *range = {std::min(range->min, layer.bounds()->min), std::max(range->max, layer.bounds()->max)};
        }
        return range;
    }

    void add_layer(const ChainLayer& layer) {
        const bool in_integers = add_in_integers(layer);
        if (layer.kind == LayerKind::constant) {
            graph_.add(source_.nodes[layer.node()]);
        } else if (!in_integers) {
            add_in_float(layer);
        } else {
            ++integer_layers_;
        }
    }

    // Whether that could be done.
    bool add_in_integers(const ChainLayer& layer) {
        switch (layer.kind) {
            case LayerKind::convolution:
            case LayerKind::inner_product:
                return add_product(layer);
            case LayerKind::batch_norm:
            case LayerKind::clip:
                return add_batch_norm(layer);
            case LayerKind::sum:
            case LayerKind::product:
                return add_elementwise(layer);
            case LayerKind::average:
                return add_average(layer);
            case LayerKind::maximum:
                return add_maximum(layer);
            case LayerKind::concat:
                return add_concat(layer);
            case LayerKind::passed:
                return pass_codes(layer);
            case LayerKind::function:
            case LayerKind::constant:
                break;
        }
        return false;
    }

    // What a Clip reaches to; of a target of powers of two, the next one (8 for a Relu6).
    double clip_limit(const ChainLayer& layer) const {
        const double limit = limit_of(*layer.bounds());
        return model_.target().power_of_two && limit > 0 ? power_of_two_above(limit) : limit;
    }

    // What the layer's output reaches to.
    std::optional<double> output_limit(const ChainLayer& layer, double stretch) const {
        if (layer.bounds()) return clip_limit(layer);
        const std::optional<double> limit = encoded_limit(layer.output);
        return limit ? std::optional(*limit * stretch) : std::nullopt;
    }

    ChainTensor output_grid(const ChainLayer& layer, double limit, double sums) const {
        ChainTensor grid;
        grid.bits = activation_bits(layer.output);
        grid.is_signed = has_sign(layer.output, !layer.is_unsigned);
        grid.scale = switches_.chain.output_scale == OutputScale::given
                         ? chain_scale(grid.bits, grid.is_signed, limit)
                         : std::ldexp(sums, -tidl_shift(limit, sums, grid.bits, grid.is_signed));
        return grid;
    }

    // Adds the requantization of sums to the output of a layer, which has a limit.
    void requantize(const ChainLayer& layer, const ChainSums& sums) {
        const double limit = *output_limit(layer, sums.stretch);
        const ChainCodes codes{graph_.fresh(layer.output, "codes"), output_grid(layer, limit, sums.scale)};
        std::vector<std::pair<std::string, AttributeValue>> attributes{
            {"factors", numbers_tensor(sums.factors)},
            {"bias", numbers_tensor(sums.bias)},
            {"axis", sums.axis},
            {"combine", std::string(sums.product ? "product" : "sum")},
            {"whole", std::int64_t{sums.whole ? 1 : 0}},
            {"grid", requantization(layer, codes.grid, sums.scale)},
            {"rounding", static_cast<std::int64_t>(switches_.chain.shift_rounding)}};
        graph_.add("Requantize", layer.output, sums.inputs, std::move(attributes), {codes.value});
        keep(layer.output, codes);
    }

    // Factor and ends: of the codes, and of the Relu or Clip that the layer ends in.
    Tensor requantization(const ChainLayer& layer, const ChainTensor& grid, double sums) const {
        double least = grid.least();
        double greatest = grid.greatest();
        if (layer.activation.kind != TidlActivation::Kind::none) {
            least = std::max(least, std::floor(layer.activation.bounds.min * grid.scale + 0.5));
            greatest = std::min(greatest, std::floor(layer.activation.bounds.max * grid.scale + 0.5));
        }
        return numbers_tensor({grid.scale / sums, std::min(least, greatest), greatest});
    }

    // The scale of a layer's weights. A Clip that is symmetric or starts at zero lowers it, so that the
    // output's scale is that of the Clip.
    double weight_scale(const ChainLayer& layer, const LayerWeights& weights, int bits, double input) const {
        double limit = weights.greatest_weight();
        const TensorEncoding* encoding = weights.value == no_value ? nullptr : encoding_of(weights.value);
        const bool as_given = encoding != nullptr && encoding->encodings.size() == 1 && layer.norm == no_node;
        if (as_given) limit = limit_of_grid(encoding->encodings.front());
        if (model_.target().power_of_two && limit > 0) limit = power_of_two_above(limit);
        const double scale = chain_scale(bits, true, limit);
        if (!layer.bounds() || switches_.chain.output_scale == OutputScale::given) return scale;
        if (layer.bounds()->min != 0 && layer.bounds()->min != -layer.bounds()->max) return scale;
        const bool is_signed = has_sign(layer.output, !layer.is_unsigned);
        const double output = chain_scale(activation_bits(layer.output), is_signed, clip_limit(layer));
        return std::min(scale, aligned_weight_scale(scale, input, output));
    }

    int weight_bits(const LayerWeights& weights, const ChainCodes& input) const {
        const TensorEncoding* encoding = weights.value == no_value ? nullptr : encoding_of(weights.value);
        if (encoding != nullptr) return encoding->width();
        return weights.value == no_value ? input.grid.bits : model_.target().weights.bits;
    }

    void keep_constants(const LayerWeights& weights, const std::vector<std::int64_t>& codes, double scale,
                        const std::vector<double>& biases, double sums) {
        if (weights.value != no_value) {
            result_.constants.insert_or_assign(
                weights.value,
                quantized_constant(weights.weights, std::vector<double>(codes.begin(), codes.end()), scale));
        }
        if (weights.bias_value != no_value) {
            result_.constants.insert_or_assign(weights.bias_value,
                                               quantized_constant(weights.biases, biases, sums));
        }
    }

    // A convolution or inner product.
    bool add_product(const ChainLayer& layer) {
        const Node& node = source_.nodes[layer.node()];
        const ChainCodes* input = codes_of(node.inputs[0]);
        if (input == nullptr || !output_limit(layer, 1)) return false;
        const std::optional<LayerWeights> read = layer_weights(model_, layer);
        if (!read) return false;
        const LayerWeights& weights = *read;
        const int bits = weight_bits(weights, *input);
        const double scale = weight_scale(layer, weights, bits, input->grid.scale);
        const std::vector<std::int64_t> codes =
            weight_codes(weights.weights, scale, bits, switches_.chain.layer_weights);
        ChainSums sums;
        sums.scale = scale * input->grid.scale;
        sums.bias = bias_codes(weights.biases, sums.scale, bits, input->grid.is_signed, switches_.bias);
        sums.axis = weights.axis;
        sums.stretch = layer.kind == LayerKind::inner_product ? 1.25 : 1;
        add_exact_products(layer, weights, codes, *input, sums);
        keep_constants(weights, codes, scale, sums.bias, sums.scale);
        requantize(layer, sums);
        return true;
    }

    // The operator on digits of codes and weights, as many times as there are pairs.
    void add_exact_products(const ChainLayer& layer, const LayerWeights& weights,
                            const std::vector<std::int64_t>& codes, const ChainCodes& input,
                            ChainSums& sums) {
        std::vector<std::vector<std::int64_t>> rows(weights.channel_count);
        for (std::size_t i = 0; i < codes.size(); ++i) rows[weights.channels[i]].push_back(codes[i]);
        const DigitSplit split = split_for_exact_sums(rows, input.grid.bits, input.grid.is_signed);
        if (split.code_digits * split.weight_digits > 1) ++split_layers_;
        std::vector<ValueId> parts{input.value};
        if (split.code_digits > 1) {
            parts.clear();
            for (int i = 0; i < split.code_digits; ++i) parts.push_back(graph_.fresh(layer.output, "digit"));
            graph_.add("Digits", layer.output, {input.value}, {{"base", split.code_base}}, parts);
        }
        for (int k = 0; k < split.weight_digits; ++k) {
            const ValueId weight =
                graph_.constant(layer.output, "weight codes", cached_digit(layer, weights, codes, split, k));
            for (std::size_t i = 0; i < parts.size(); ++i) {
                const ValueId sum = graph_.fresh(layer.output, "sums");
                add_operator(layer, {parts[i], weight}, sum);
                sums.inputs.push_back(sum);
                sums.factors.push_back(std::pow(static_cast<double>(split.weight_base), k) *
                                       std::pow(static_cast<double>(split.code_base), i));
            }
        }
    }

    Tensor cached_digit(const ChainLayer& layer, const LayerWeights& weights,
                        const std::vector<std::int64_t>& codes, const DigitSplit& split, int place) const {
        Tensor made = digit(weights, codes, split, place);
        if (cache_ == nullptr) return made;
        Sha256 digest;
        digest.update(made.view().bytes());
        return cache_->try_emplace(fmt::format("{} {}", layer.output, to_hex(digest.finish())), made)
            .first->second;
    }

    static Tensor digit(const LayerWeights& weights, const std::vector<std::int64_t>& codes,
                        const DigitSplit& split, int place) {
        std::vector<float> digits;
        digits.reserve(codes.size());
        for (const std::int64_t code : codes) {
            const std::vector<std::int64_t> all = digits_of(code, split.weight_digits, split.weight_base);
            digits.push_back(static_cast<float>(all[static_cast<std::size_t>(place)]));
        }
        return Tensor::of<float>(weights.shape, std::span<const float>(digits));
    }

    // The layer's own operator on codes.
    void add_operator(const ChainLayer& layer, std::vector<ValueId> inputs, ValueId output) {
        Node node = source_.nodes[layer.node()];
        node.name = fmt::format("{} on codes", node.name.empty() ? name_of(layer.output) : node.name);
        node.inputs = std::move(inputs);
        node.outputs = {output};
        node.attributes.erase("alpha");
        node.attributes.erase("beta");
        graph_.add(std::move(node));
    }

    // One factor a channel, or 1 for a Clip alone.
    bool add_batch_norm(const ChainLayer& layer) {
        const std::vector<ValueId>& operands = source_.nodes[layer.node()].inputs;
        const auto activation = std::ranges::find_if(
            operands, [&](ValueId value) { return value != no_value && model_.is_activation(value); });
        const ChainCodes* input = activation == operands.end() ? nullptr : codes_of(*activation);
        if (input == nullptr) return false;
        if (layer.leading && switches_.chain.leading_clip == LeadingClip::dropped) {
            keep(layer.output, ChainCodes(*input));
            return true;
        }
        if (layer.leading) ++leading_clips_;
        const std::optional<double> limit = output_limit(layer, 1);
        if (!limit) return false;
        const std::optional<LayerWeights> read = layer_weights(model_, layer);
        if (!read) return false;
        const LayerWeights& weights = *read;
        const int bits = weight_bits(weights, *input);
        const double scale = weight_scale(layer, weights, bits, input->grid.scale);
        const std::vector<std::int64_t> codes =
            weight_codes(weights.weights, scale, bits, switches_.chain.batch_norm_weights);
        ChainSums sums;
        sums.inputs = {input->value};
        sums.scale = scale * input->grid.scale;
        sums.factors.assign(codes.begin(), codes.end());
        sums.axis = weights.axis;
        sums.bias = bias_codes(weights.biases, sums.scale, bits, input->grid.is_signed, switches_.bias);
        keep_constants(weights, codes, scale, sums.bias, sums.scale);
        requantize(layer, sums);
        return true;
    }

    // The codes of all inputs of the layer's first node, or none.
    std::vector<ChainCodes> all_codes(const ChainLayer& layer) const {
        std::vector<ChainCodes> all;
        for (const ValueId input : source_.nodes[layer.node()].inputs) {
            const ChainCodes* codes = codes_of(input);
            if (codes == nullptr) return {};
            all.push_back(*codes);
        }
        return all;
    }

    static double least_scale(const std::vector<ChainCodes>& inputs) {
        double least = inputs.front().grid.scale;
        for (const ChainCodes& input : inputs) least = std::min(least, input.grid.scale);
        return least;
    }

    // Factors of one or two more bits than that bring inputs to a common scale: 2^6 or 2^14 for a sum, 2^7 or
    // 2^15 for a concatenation, of the least scale.
    static double common_scale(const std::vector<ChainCodes>& inputs, int narrow, int wide) {
        const bool all_narrow =
            std::ranges::all_of(inputs, [](const ChainCodes& input) { return input.grid.bits <= 8; });
        return std::ldexp(least_scale(inputs), all_narrow ? narrow : wide);
    }

    bool add_elementwise(const ChainLayer& layer) {
        const std::vector<ChainCodes> inputs = all_codes(layer);
        if (inputs.empty() || !output_limit(layer, 1)) return false;
        ChainSums sums;
        sums.product = layer.kind == LayerKind::product;
        if (!sums.product) sums.scale = common_scale(inputs, 6, 14);
        for (const ChainCodes& input : inputs) {
            sums.inputs.push_back(input.value);
            if (sums.product) sums.scale *= input.grid.scale;
            sums.factors.push_back(sums.product ? 1 : std::round(sums.scale / input.grid.scale));
        }
        if (source_.nodes[layer.node()].op_type == "Sub") sums.factors.back() *= -1;
        requantize(layer, sums);
        return true;
    }

    bool add_average(const ChainLayer& layer) {
        const ChainCodes* input = codes_of(source_.nodes[layer.node()].inputs[0]);
        const double stretch = layer.whole ? 1.25 : 1;
        if (input == nullptr || !output_limit(layer, stretch)) return false;
        ChainSums sums;
        sums.stretch = stretch;
        sums.whole = true;
        const double unit = average_unit(layer, input->grid.bits);
        sums.scale = input->grid.scale * unit;
        if (!layer.whole) {
            sums.inputs = {graph_.fresh(layer.output, "mean")};
            sums.factors = {unit};
            add_operator(layer, {input->value}, sums.inputs.front());
            requantize(layer, sums);
            return true;
        }
        const double limit = *output_limit(layer, stretch);
        const ChainCodes codes{graph_.fresh(layer.output, "codes"), output_grid(layer, limit, sums.scale)};
        graph_.add("Average", layer.output, {input->value},
                   {{"unit", numbers_tensor({unit})},
                    {"grid", requantization(layer, codes.grid, sums.scale)},
                    {"rounding", static_cast<std::int64_t>(switches_.chain.shift_rounding)}},
                   {codes.value});
        keep(layer.output, codes);
        return true;
    }

    // The greatest of a window, clipped, at the input's scale or that divided by a power of two.
    bool add_maximum(const ChainLayer& layer) {
        const ChainCodes* input = codes_of(source_.nodes[layer.node()].inputs[0]);
        if (input == nullptr || !output_limit(layer, 1)) return false;
        ChainSums sums;
        sums.inputs = {graph_.fresh(layer.output, "greatest")};
        sums.factors = {1};
        sums.scale = input->grid.scale;
        add_operator(layer, {input->value}, sums.inputs.front());
        requantize(layer, sums);
        return true;
    }

    // 2^8 for windows of 2x2 and 3x3 with stride 2 on 8 bits, else 2^12.
    double average_unit(const ChainLayer& layer, int bits) const {
        const Node& node = source_.nodes[layer.node()];
        using Extents = std::vector<std::int64_t>;
        const Extents kernel = node.attribute("kernel_shape", Extents());
        const Extents strides = node.attribute("strides", Extents());
        const bool small = kernel == Extents{2, 2} || kernel == Extents{3, 3};
        return bits <= 8 && small && strides == Extents{2, 2} ? 256 : 4096;
    }

    bool add_concat(const ChainLayer& layer) {
        const std::vector<ChainCodes> inputs = all_codes(layer);
        if (inputs.empty()) return false;
        double limit = 0;
        for (const ChainCodes& input : inputs) limit = std::max(limit, input.limit());
        limit = encoded_limit(layer.output).value_or(limit);
        const double scale = common_scale(inputs, 7, 15);
        const ChainTensor grid = output_grid(layer, limit, scale);
        std::vector<ValueId> parts;
        for (const ChainCodes& input : inputs) {
            parts.push_back(graph_.fresh(layer.output, "part"));
            graph_.add("Requantize", layer.output, {input.value},
                       {{"factors", numbers_tensor({std::round(scale / input.grid.scale)})},
                        {"bias", numbers_tensor({})},
                        {"grid", numbers_tensor({grid.scale / scale, grid.least(), grid.greatest()})},
                        {"rounding", static_cast<std::int64_t>(switches_.chain.shift_rounding)}},
                       {parts.back()});
        }
        const ChainCodes codes{graph_.fresh(layer.output, "codes"), grid};
        add_operator(layer, parts, codes.value);
        keep(layer.output, codes);
        return true;
    }

    // The node on codes: all that it makes has the scale and the sign of what it reads.
    bool pass_codes(const ChainLayer& layer) {
        const Node& source = source_.nodes[layer.node()];
        const ChainCodes* input = codes_of(source.inputs[0]);
        if (input == nullptr) return false;
        Node node = source;
        node.inputs[0] = input->value;
        std::vector<std::pair<ValueId, ChainCodes>> made;
        for (ValueId& output : node.outputs) {
            if (output == no_value || !model_.is_activation(output)) continue;
            made.emplace_back(output, ChainCodes{graph_.fresh(output, "codes"), input->grid});
            output = made.back().second.value;
        }
        graph_.add(std::move(node));
        for (const auto& [value, codes] : made) keep(value, codes);
        return true;
    }

    // The nodes as they are; what has an encoding is rounded to codes.
    void add_in_float(const ChainLayer& layer) {
        for (const NodeIndex index : layer.nodes) {
            Node node = source_.nodes[index];
            floats_.push_back(label(source_, node));
            std::vector<std::pair<ValueId, ValueId>> rounded;
            for (ValueId& output : node.outputs) {
                const bool last = output == layer.output || layer.nodes.size() == 1;
                if (output == no_value || !last || layer.stays_float || !model_.is_activation(output) ||
                    !encoded_limit(output))
                    continue;
                rounded.emplace_back(output, graph_.fresh(output, "not quantized"));
                output = rounded.back().second;
            }
            graph_.add(std::move(node));
            for (const auto& [value, real] : rounded) {
                ChainTensor grid;
                grid.bits = activation_bits(value);
                grid.is_signed = has_sign(value, !layer.is_unsigned);
                grid.scale = chain_scale(grid.bits, grid.is_signed, *encoded_limit(value));
                round_to_codes(value, real, grid);
            }
        }
    }

    void write_notes() {
        constexpr std::size_t shown = 6;
        std::vector<std::string>& notes = result_.notes;
        notes.push_back(fmt::format(
            "{} layer{} computed in integers, sums exact{}", integer_layers_, integer_layers_ == 1 ? "" : "s",
            split_layers_ == 0 ? std::string() : fmt::format(" (in digits for {})", split_layers_)));
        if (leading_clips_ > 0) {
            notes.push_back(fmt::format("{} Clip{} of an input became a batch norm of weight 1",
                                        leading_clips_, leading_clips_ == 1 ? "" : "s"));
        }
        notes.insert(notes.end(), notes_.begin(), notes_.end());
        if (floats_.empty()) return;
        std::vector<std::string> first(
            floats_.begin(), floats_.begin() + static_cast<std::ptrdiff_t>(std::min(shown, floats_.size())));
        notes.push_back(fmt::format(
            "{} node{} computed in float, outputs with an encoding rounded to it: {}{}", floats_.size(),
            floats_.size() == 1 ? "" : "s", join(first, ", "), floats_.size() > shown ? ", ..." : ""));
    }

    const SimulatedModel& model_;
    const Graph& source_;
    const SimulationSwitches& switches_;
    ChainWeightCache* cache_;
    std::vector<ChainLayer> layers_;
    ChainGraph graph_;
    std::unordered_map<ValueId, const TensorEncoding*> encoding_of_;
    std::unordered_map<ValueId, ChainCodes> codes_;  // by the model's values
    IntegerChain result_;
    std::vector<std::string> notes_;
    std::vector<std::string> floats_;
    std::size_t integer_layers_ = 0;
    std::size_t split_layers_ = 0;
    std::size_t leading_clips_ = 0;
};

}  // namespace

double ChainTensor::least() const {
    return is_signed ? -std::ldexp(1.0, bits - 1) : 0;
}

double ChainTensor::greatest() const {
    return std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
}

IntegerChain make_integer_chain(const SimulatedModel& model, const SimulatedEncodings& encodings,
                                const SimulationSwitches& switches, ChainWeightCache* cache) {
    return ChainBuilder(model, encodings, switches, cache).run();
}

}  // namespace qcalib
