#include "target/bias_encoding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr int product_bits = 32;

Encoding product_encoding(double scale) {
    Encoding encoding;
    encoding.bits = product_bits;
    encoding.scale = scale;
    encoding.offset = -(std::int64_t{1} << (product_bits - 1));
    encoding.min = static_cast<double>(encoding.offset) * scale;
    encoding.max = static_cast<double>(-encoding.offset - 1) * scale;
    encoding.symmetric = true;
    return encoding;
}

}  // namespace

std::optional<BiasOperands> bias_operands(const ParameterUse& use, const Graph& graph,
                                          const ConstantLookup& constant, const Target& target) {
    if (!target.biases) return std::nullopt;
    if (use.lost != nullptr) {
        const Node& product = graph.nodes[use.lost->nodes.front()];
        if (product.op_type != "MatMul" || &graph.nodes[use.lost->nodes.back()] != use.node)
            return std::nullopt;
        const bool left = constant(product.inputs[0]) != nullptr;
        return BiasOperands{product.inputs[left ? 1 : 0], product.inputs[left ? 0 : 1]};
    }
    const std::vector<std::string>& types = target.biases->op_types;
    const Node& node = *use.node;
    const bool is_bias = use.input == 2 && node.domain.empty() &&
                         std::find(types.begin(), types.end(), node.op_type) != types.end() &&
                         node.inputs[0] != no_value && node.inputs[1] != no_value;
    if (!is_bias) return std::nullopt;
    return BiasOperands{node.inputs[0], node.inputs[1]};
}

TensorEncoding encode_bias(const std::string& name, const Tensor& value, const Encoding& data,
                           const TensorEncoding& weight, const ResolvedOptions& options, Remarks& remarks) {
    const Tensor floats = to_float32(value, fmt::format("'{}'", printable(name)));
    const std::vector<Range> ranges = weight_ranges(floats.view(), {}, name);
    TensorEncoding entry{name, {}, {}, "bias"};
    if (*options.bias_bits != product_bits) {
        GridRules grid = options.weights;
        grid.bits = *options.bias_bits;
        entry.encodings = {encode(ranges.front(), grid)};
        return entry;
    }
    const bool channels = weight.encodings.size() > 1 && weight.encodings.size() == floats.view().elements();
    if (channels) entry.axis = 0;
    double least = 0;
    for (const Encoding& one : weight.encodings) {
        if (entry.encodings.empty() || channels)
            entry.encodings.push_back(product_encoding(data.scale * one.scale));
        least = least == 0 ? one.scale : std::min(least, one.scale);
    }
    const double most = std::max(std::abs(ranges.front().min), std::abs(ranges.front().max));
    if (most > product_encoding(data.scale * least).max) {
        remarks.add(
            fmt::format("'{}': the bias reaches {:.4g}, beyond 32 bits at the scale of input times weight, "
                        "{:.4g}",
                        printable(name), most, data.scale * least));
    }
    return entry;
}

}  // namespace qcalib
