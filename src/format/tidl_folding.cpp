#include "format/tidl_folding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace qcalib {

namespace {

// What a normalization does to a channel: x * scale + shift.
struct ChannelMap {
    std::vector<double> scale;
    std::vector<double> shift;
};

class TidlFolding {
  public:
    TidlFolding(const TidlLayer& layer, const Graph& graph, const ConstantLookup& constant)
        : layer_(layer), graph_(graph), constant_(constant) {}

    TidlParameters run() {
        if (layer_.nodes.empty()) return {};
        const Node& node = graph_.nodes[layer_.nodes.front()];
        if (layer_.stands_alone) {
            set_map(ChannelMap{std::vector<double>(channels(), 1), std::vector<double>(channels(), 0)});
        } else if (layer_.type == "TIDL_BatchNormLayer") {
            if (const auto map = map_of(node)) set_map(*map);
        } else if (layer_.weight != no_value) {
            fold(node);
        }
        return std::move(result_);
    }

  private:
    void fault(std::string_view text) { result_.faults.emplace_back(text); }

    std::optional<std::vector<double>> numbers(ValueId value, const char* what) {
        const Tensor* tensor = value == no_value ? nullptr : constant_(value);
        if (tensor != nullptr && tensor->type() == DataType::float32) return numbers_of(tensor->view());
        fault(fmt::format("its {} is no float constant", what));
        return std::nullopt;
    }

    ValueId input(const Node& node, std::size_t index) const {
        return index < node.inputs.size() ? node.inputs[index] : no_value;
    }

    // As many as the second dimension of the output says.
    std::size_t channels() {
        const auto& shape = graph_.values[layer_.output()].declared_shape;
        constexpr std::int64_t most = 1 << 20;
        if (shape && shape->size() > 1 && (*shape)[1].size && *(*shape)[1].size > 0 &&
            *(*shape)[1].size < most)
            return static_cast<std::size_t>(*(*shape)[1].size);
        fault("its number of channels is not known, one is taken");
        return 1;
    }

    void set_map(const ChannelMap& map) {
        const auto [least, greatest] = std::minmax_element(map.scale.begin(), map.scale.end());
        if (map.scale.empty()) return;
        result_.weights = Range{*least, *greatest};
        for (const double one : map.shift) result_.bias.push_back(static_cast<float>(one));
    }

    std::optional<ChannelMap> map_of(const Node& node) {
        if (node.op_type == "BatchNormalization") return normalization(node);
        const bool second = input(node, 1) != no_value && constant_(input(node, 1)) != nullptr;
        const auto values = numbers(input(node, second ? 1 : 0), "constant");
        if (!values) return std::nullopt;
        ChannelMap map{std::vector<double>(values->size(), 1), std::vector<double>(values->size(), 0)};
        for (std::size_t i = 0; i < values->size(); ++i) {
            const double one = (*values)[i];
            if (node.op_type == "Mul") map.scale[i] = one;
            if (node.op_type == "Div") map.scale[i] = 1 / one;
            if (node.op_type == "Add") map.shift[i] = one;
            if (node.op_type != "Sub") continue;
            map.shift[i] = second ? -one : one;
            map.scale[i] = second ? 1 : -1;
        }
        return map;
    }

    std::optional<ChannelMap> normalization(const Node& node) {
        const auto scale = numbers(input(node, 1), "scale");
        const auto shift = numbers(input(node, 2), "B");
        const auto mean = numbers(input(node, 3), "mean");
        const auto variance = numbers(input(node, 4), "variance");
        if (!scale || !shift || !mean || !variance) return std::nullopt;
        if (shift->size() != scale->size() || mean->size() != scale->size() ||
            variance->size() != scale->size()) {
            fault("its normalization has lists of different lengths");
            return std::nullopt;
        }
        const double epsilon = node.attribute("epsilon", 1e-5F);
        ChannelMap map;
        for (std::size_t i = 0; i < scale->size(); ++i) {
            const double factor = (*scale)[i] / std::sqrt((*variance)[i] + epsilon);
            map.scale.push_back(factor);
            map.shift.push_back((*shift)[i] - (*mean)[i] * factor);
        }
        return map;
    }

    // The output channel of an element of the weights.
    static std::size_t channel_of(const Node& node, const Shape& shape, std::size_t element) {
        const auto extent = [&](std::size_t axis) { return static_cast<std::size_t>(shape[axis]); };
        std::size_t inner = 1;
        for (std::size_t axis = 2; axis < shape.size(); ++axis) inner *= extent(axis);
        if (node.op_type == "ConvTranspose" && shape.size() > 1) {
            const auto groups =
                static_cast<std::size_t>(std::max<std::int64_t>(1, node.attribute<std::int64_t>("group", 1)));
            const std::size_t in_group = std::max<std::size_t>(1, extent(0) / groups);
            return (element / inner / extent(1)) / in_group * extent(1) + element / inner % extent(1);
        }
        const bool last = node.op_type == "MatMul" ||
                          (node.op_type == "Gemm" && node.attribute<std::int64_t>("transB", 0) == 0);
        if (last) return element % extent(shape.size() - 1);
        std::size_t per_channel = inner;
        if (shape.size() > 1) per_channel *= extent(1);
        return element / per_channel;
    }

    void fold(const Node& node) {
        const Tensor* weight = constant_(layer_.weight);
        if (weight == nullptr || weight->type() != DataType::float32 || weight->shape().empty())
            return fault("its weight is no float constant");
        std::optional<ChannelMap> map;
        if (layer_.norm != no_node) map = normalization(graph_.nodes[layer_.norm]);
        if (layer_.norm != no_node && !map) return;
        const double alpha = node.op_type == "Gemm" ? node.attribute("alpha", 1.0F) : 1.0F;
        const std::vector<double> values = numbers_of(weight->view());
        if (values.empty()) return;
        Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
        std::size_t channel_count = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t channel = channel_of(node, weight->shape(), i);
            channel_count = std::max(channel_count, channel + 1);
            if (map && channel >= map->scale.size())
                return fault("its normalization has fewer channels than its weight");
            const double folded = values[i] * alpha * (map ? map->scale[channel] : 1);
            range.min = std::min(range.min, folded);
            range.max = std::max(range.max, folded);
        }
        result_.weights = range;
        fold_bias(node, map, channel_count);
    }

    void fold_bias(const Node& node, const std::optional<ChannelMap>& map, std::size_t channel_count) {
        std::vector<double> bias;
        if (layer_.bias != no_value) {
            const auto values = numbers(layer_.bias, "bias");
            if (!values) return;
            bias = *values;
        }
        if (bias.empty() && !map) return;
        if (bias.size() == 1) bias.assign(channel_count, bias.front());
        bias.resize(channel_count);
        const double beta = node.op_type == "Gemm" ? node.attribute("beta", 1.0F) : 1.0F;
        for (std::size_t i = 0; i < channel_count; ++i) {
            const double one = bias[i] * beta;
            result_.bias.push_back(static_cast<float>(map ? one * map->scale[i] + map->shift[i] : one));
        }
    }

    const TidlLayer& layer_;
    const Graph& graph_;
    const ConstantLookup& constant_;
    TidlParameters result_;
};

}  // namespace

TidlParameters tidl_parameters(const TidlLayer& layer, const Graph& graph, const ConstantLookup& constant) {
    return TidlFolding(layer, graph, constant).run();
}

}  // namespace qcalib
