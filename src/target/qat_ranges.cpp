#include "target/qat_ranges.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "target/constant_lookup.h"
#include "target/tidl_layers.h"

namespace qcalib {

namespace {

constexpr std::size_t most_channels = 1 << 24;

// The integers a tensor's codes are.
struct Codes {
    int bits = 8;
    std::int64_t least = 0;
    bool is_signed() const { return least < 0; }
};

std::optional<Codes> codes_of(DataType type) {
    switch (type) {
        case DataType::uint8:
            return Codes{8, 0};
        case DataType::int8:
            return Codes{8, -128};
        case DataType::uint16:
            return Codes{16, 0};
        case DataType::int16:
            return Codes{16, -32768};
        case DataType::int32:
            return Codes{32, -(std::int64_t{1} << 31)};
        default:
            return std::nullopt;
    }
}

std::string quoted(const std::string& name) {
    return fmt::format("'{}'", printable(name));
}

std::vector<double> numbers(const Tensor& tensor) {
    if (tensor.type() == DataType::int32 || tensor.type() == DataType::int64) {
        const std::vector<std::int64_t> whole = integers_of(tensor.view());
        return {whole.begin(), whole.end()};
    }
    return numbers_of(tensor.view());
}

bool quantizes_by_name(const Node& node) {
    std::string name = node.op_type;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return name.find("quantize") != std::string::npos || name.find("fakequant") != std::string::npos ||
           name.find("learnable") != std::string::npos;
}

class QatReader {
  public:
    QatReader(const Graph& quantized, const Graph& model, std::string file, Remarks& remarks)
        : graph_(quantized),
          model_(model),
          file_(std::move(file)),
          remarks_(remarks),
          constant_(constants_of(quantized)),
          readers_(quantized.values.size()) {
        for (const Node& node : graph_.nodes) {
            for (std::size_t i = 0; i < node.inputs.size(); ++i) {
                if (node.inputs[i] != no_value) readers_[node.inputs[i]].emplace_back(&node, i);
            }
        }
        for (const Node& node : model_.nodes) {
            if (!node.name.empty()) model_nodes_.emplace(node.name, &node);
        }
    }

    BaseEncodings read() {
        base_.label = file_;
        for (const Node& node : graph_.nodes) look_at(node);
        remark_others();
        if (base_.set.activations.empty() && base_.set.parameters.empty()) {
            fail(
                "{}: expected Clip, QuantizeLinear or DequantizeLinear nodes with constant ranges, found "
                "none",
                printable(file_));
        }
        return std::move(base_);
    }

  private:
    void look_at(const Node& node) {
        if (node.inputs.empty() || node.outputs.empty() || node.inputs[0] == no_value ||
            node.outputs[0] == no_value)
            return;
        if (node.op_type == "HardTanh" || node.op_type == "Hardtanh") return take_hard_tanh(node);
        if (!node.domain.empty() && node.domain != "com.microsoft") {
            if (node.inputs.size() < 3 || !quantizes_by_name(node)) return;
            others_.push_back(label(graph_, node));
            take_quantize(node, true);
        } else if (node.op_type == "Clip" || node.op_type == "Min" || node.op_type == "Max") {
            take_clip(node);
        } else if (node.op_type == "QuantizeLinear") {
            take_quantize(node, false);
        } else if (node.op_type == "DequantizeLinear" && constant_(node.inputs[0]) != nullptr) {
            take_weight(node);
        }
    }

    // A Clip, or the last of a pair of Min and Max, or of Relu and Min.
    void take_clip(const Node& node) {
        const ValueId operand = clipped_operand(node);
        if (operand == no_value) return;
        std::optional<Range> bounds = clip_bounds(node, constant_);
        ValueId source = operand;
        while (bounds && (!std::isfinite(bounds->min) || !std::isfinite(bounds->max))) {
            const NodeIndex before = graph_.values[source].producer;
            if (before == no_node || readers_[source].size() != 1) return;
            const std::optional<Range> other = clip_bounds(graph_.nodes[before], constant_);
            if (!other) return;
            bounds = Range{std::max(bounds->min, other->min), std::min(bounds->max, other->max)};
            source = clipped_operand(graph_.nodes[before]);
            if (source == no_value) return;
        }
        if (bounds) take_bounds(node, source, *bounds);
    }

    // HardTanh, which exporters write into domains of their own.
    void take_hard_tanh(const Node& node) {
        const auto bound = [&](const char* name, const char* other, double otherwise) {
            const std::optional<double> given = number_attribute(node, name);
            return given ? *given : number_attribute(node, other).value_or(otherwise);
        };
        take_bounds(node, node.inputs[0], {bound("min_val", "min", -1), bound("max_val", "max", 1)});
    }

    // The one operand that is no constant, or no_value.
    ValueId clipped_operand(const Node& node) const {
        ValueId found = no_value;
        for (const ValueId input : node.inputs) {
            if (input == no_value || constant_(input) != nullptr) continue;
            if (found != no_value) return no_value;
            found = input;
        }
        return found;
    }

    // `source` is what goes into the bounds, through however many nodes.
    void take_bounds(const Node& node, ValueId source, Range bounds) {
        const bool usable = std::isfinite(bounds.min) && std::isfinite(bounds.max) &&
                            bounds.min < bounds.max &&
                            std::max(std::abs(bounds.min), std::abs(bounds.max)) < 1e30;
        if (!usable) return;  // bounds on one side alone are no range
        // What reads it first: the Clip may stand in the place of a Relu, or behind it.
        std::string name = known_name({node.outputs[0]});
        if (name.empty()) name = name_by_reader({node.outputs[0]});
        if (name.empty()) name = name_by_producer(source);
        if (name.empty()) return remark_unknown(node.outputs[0]);
        Encoding encoding;
        encoding.min = bounds.min;
        encoding.max = bounds.max;
        encoding.scale = (bounds.max - bounds.min) / 255;
        encoding.offset = static_cast<std::int64_t>(std::round(bounds.min / encoding.scale));
        base_.ranges_alone.insert(name);
        add({name, {encoding}, {}, label(graph_, node)}, false);
    }

    // Also for nodes of other domains, which quantize and dequantize at once.
    void take_quantize(const Node& node, bool other_domain) {
        std::vector<ValueId> names{node.inputs[0]};
        if (other_domain) {
            names.push_back(node.outputs[0]);
        } else {
            for (const auto& [reader, input] : readers_[node.outputs[0]]) {
                if (reader->op_type == "DequantizeLinear" && input == 0 && !reader->outputs.empty())
                    names.push_back(reader->outputs[0]);
            }
        }
        take(node, names, constant_(node.inputs[0]) != nullptr);
    }

    void take_weight(const Node& node) { take(node, {node.outputs[0], node.inputs[0]}, true); }

    void take(const Node& node, const std::vector<ValueId>& names, bool parameter) {
        std::optional<TensorEncoding> entry = encoding_of(node);
        if (!entry) return;
        entry->origin = label(graph_, node);
        bool found = false;
        for (const ValueId value : names) {
            // Of a model that still has its nodes every name is a tensor of its own.
            if (model_.find(graph_.values[value].name) == no_value) continue;
            entry->tensor = graph_.values[value].name;
            add(*entry, parameter);
            found = true;
        }
        if (found) return;
        entry->tensor = name_by_producer(names.front());
        if (entry->tensor.empty()) entry->tensor = name_by_reader(names);
        if (entry->tensor.empty()) return remark_unknown(names.front());
        add(*entry, parameter);
    }

    std::optional<TensorEncoding> encoding_of(const Node& node) {
        const Tensor* scale =
            node.inputs.size() > 1 && node.inputs[1] != no_value ? constant_(node.inputs[1]) : nullptr;
        const bool has_zero = node.inputs.size() > 2 && node.inputs[2] != no_value;
        const Tensor* zero = has_zero ? constant_(node.inputs[2]) : nullptr;
        const std::optional<Codes> codes = codes_of_node(node, zero);
        if (scale == nullptr || (has_zero && zero == nullptr) || !codes || !is_floating(scale->type())) {
            remarks_.add(
                fmt::format("{}: {}: its range is not taken: expected a constant scale and zero point of "
                            "8, 16 or 32 bits",
                            printable(file_), label(graph_, node)));
            return std::nullopt;
        }
        const std::size_t channels = scale->descriptor().elements();
        if (channels == 0 || channels > most_channels || scale->shape().size() > 1 ||
            (zero != nullptr && zero->descriptor().elements() != channels &&
             zero->descriptor().elements() != 1)) {
            fail("{}: {}: expected as many zero points as scales, in one dimension, found {} and {}",
                 printable(file_), label(graph_, node), to_string(scale->shape()),
                 zero == nullptr ? "none" : to_string(zero->shape()));
        }
        TensorEncoding entry;
        const std::vector<double> scales = numbers(*scale);
        const std::vector<double> zeros = zero == nullptr ? std::vector<double>{0} : numbers(*zero);
        for (std::size_t i = 0; i < channels; ++i) {
            entry.encodings.push_back(encoding(node, scales[i], zeros[zeros.size() == 1 ? 0 : i], *codes));
        }
        if (channels > 1) entry.axis = static_cast<int>(node.attribute<std::int64_t>("axis", 1));
        if (channels > 1 && !node.domain.empty() && !node.has_attribute("axis")) entry.axis = 0;
        if (entry.axis && *entry.axis < 0) {
            const auto& shape = graph_.values[node.inputs[0]].declared_shape;
            const Tensor* value = constant_(node.inputs[0]);
            const std::size_t rank = value != nullptr ? value->shape().size() : shape ? shape->size() : 0;
            entry.axis = *entry.axis + static_cast<int>(rank);
            if (*entry.axis < 0) entry.axis.reset();
        }
        return entry;
    }

    Encoding encoding(const Node& node, double scale, double zero, const Codes& codes) const {
        const double most = std::exp2(codes.bits);
        if (!std::isfinite(scale) || scale <= 0 || scale > 1e30 || !std::isfinite(zero) ||
            std::abs(zero) > most) {
            fail("{}: {}: expected a scale above 0 and a zero point of {} bits, found {} and {}",
                 printable(file_), label(graph_, node), codes.bits, scale, zero);
        }
        Encoding result;
        result.bits = codes.bits;
        result.scale = scale;
        result.offset = codes.least - static_cast<std::int64_t>(std::llround(zero));
        result.min = static_cast<double>(result.offset) * scale;
        result.max = result.min + scale * (most - 1);
        result.symmetric = codes.is_signed() && result.offset == codes.least;
        return result;
    }

    // By the type of the zero point, of the quantized data, or by quant_min and quant_max.
    std::optional<Codes> codes_of_node(const Node& node, const Tensor* zero) const {
        if (!node.domain.empty() && node.domain != "com.microsoft") {
            const auto least = number_attribute(node, "quant_min");
            const auto greatest = number_attribute(node, "quant_max");
            if (!least || !greatest) return Codes{8, zero != nullptr && any_negative(*zero) ? -128 : 0};
            const double width = std::log2(*greatest - *least + 1);
            if (!(width > 1.5 && width < 32.5)) return std::nullopt;
            // 254 steps are the strict symmetric form of 255.
            return Codes{static_cast<int>(std::ceil(width - 1e-9)), std::llround(*least)};
        }
        if (zero != nullptr) return codes_of(zero->type());
        if (node.op_type == "DequantizeLinear") {
            const Tensor* data = constant_(node.inputs[0]);
            return data == nullptr ? std::nullopt : codes_of(data->type());
        }
        return Codes{8, 0};
    }

    static bool any_negative(const Tensor& tensor) {
        const std::vector<double> values = numbers(tensor);
        return std::any_of(values.begin(), values.end(), [](double value) { return value < 0; });
    }

    static std::optional<double> number_attribute(const Node& node, const std::string& name) {
        const auto found = node.attributes.find(name);
        if (found == node.attributes.end()) return std::nullopt;
        if (const auto* whole = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*whole);
        if (const auto* real = std::get_if<float>(&found->second)) return *real;
        return std::nullopt;
    }

    // The name that the first of these values that `model_` knows has there; "" where it knows none.
    std::string known_name(const std::vector<ValueId>& values) const {
        for (const ValueId value : values) {
            if (model_.find(graph_.values[value].name) != no_value) return graph_.values[value].name;
        }
        return "";
    }

    // What the node of the same name and operator as that which makes `made` makes in `model_`, or "".
    std::string name_by_producer(ValueId made) const {
        const NodeIndex producer = graph_.values[made].producer;
        const Node* same = producer == no_node ? nullptr : same_node(graph_.nodes[producer]);
        if (same == nullptr) return "";
        const std::vector<ValueId>& outputs = graph_.nodes[producer].outputs;
        for (std::size_t i = 0; i < std::min(outputs.size(), same->outputs.size()); ++i) {
            if (outputs[i] == made && same->outputs[i] != no_value)
                return model_.values[same->outputs[i]].name;
        }
        return "";
    }

    // What the nodes that read one of these values read there in `model_`, or "".
    std::string name_by_reader(const std::vector<ValueId>& values) const {
        for (const ValueId value : values) {
            for (const auto& [reader, input] : readers_[value]) {
                const Node* same = same_node(*reader);
                if (same != nullptr && input < same->inputs.size() && same->inputs[input] != no_value)
                    return model_.values[same->inputs[input]].name;
            }
        }
        return "";
    }

    const Node* same_node(const Node& node) const {
        const auto found = model_nodes_.find(node.name);
        return found != model_nodes_.end() && found->second->op_type == node.op_type ? found->second
                                                                                     : nullptr;
    }

    void add(const TensorEncoding& entry, bool parameter) {
        const auto [known, added] = entries_.emplace(entry.tensor, entry.encodings);
        if (!added) {
            if (known->second == entry.encodings) return;
            remarks_.add(fmt::format("{}: {} has several ranges: that of {} is not taken", printable(file_),
                                     quoted(entry.tensor), entry.origin));
            return;
        }
        (parameter ? base_.set.parameters : base_.set.activations).push_back(entry);
    }

    void remark_unknown(ValueId value) {
        remarks_.add(
            fmt::format("{}: the range of {} is left out: the model has no such tensor, and no node of that "
                        "name makes or reads it",
                        printable(file_), quoted(graph_.values[value].name)));
    }

    void remark_others() {
        constexpr std::size_t most = 5;
        if (others_.empty()) return;
        const std::size_t shown = std::min(most, others_.size());
        remarks_.add(
            fmt::format("{}: taken for nodes that quantize: {}{}", printable(file_),
                        join(std::span(others_).first(shown), ", "),
                        others_.size() > shown ? fmt::format(" and {} more", others_.size() - shown) : ""));
    }

    const Graph& graph_;
    const Graph& model_;
    std::string file_;
    Remarks& remarks_;
    ConstantLookup constant_;
    std::vector<std::vector<std::pair<const Node*, std::size_t>>> readers_;
    std::map<std::string, const Node*> model_nodes_;
    std::map<std::string, std::vector<Encoding>> entries_;
    std::vector<std::string> others_;
    BaseEncodings base_;
};

}  // namespace

BaseEncodings read_qat_ranges(const Graph& quantized, const Graph& model, const std::string& file,
                              Remarks& remarks) {
    return QatReader(quantized, model, file, remarks).read();
}

}  // namespace qcalib
