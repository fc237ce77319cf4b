#include "target/tidl_tensors.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "target/tidl_rules.h"

namespace qcalib {

namespace {

std::string in_quotes(const std::string& name) {
    return fmt::format("'{}'", printable(name));
}

// gamma / sqrt(variance + epsilon) of each channel; empty where they are not constant.
std::vector<double> norm_factors(const Node& norm, const ConstantLookup& constant) {
    if (norm.inputs.size() < 5 || norm.inputs[1] == no_value || norm.inputs[4] == no_value) return {};
    const Tensor* gamma = constant(norm.inputs[1]);
    const Tensor* variance = constant(norm.inputs[4]);
    if (gamma == nullptr || variance == nullptr) return {};
    const std::vector<double> gammas = numbers_of(gamma->view());
    const std::vector<double> variances = numbers_of(variance->view());
    if (gammas.size() != variances.size()) return {};
    const double epsilon = norm.attribute("epsilon", 1e-5F);
    std::vector<double> factors(gammas.size());
    for (std::size_t i = 0; i < factors.size(); ++i)
        factors[i] = gammas[i] / std::sqrt(variances[i] + epsilon);
    return factors;
}

// The output channel of an element of a convolution's weight.
std::size_t channel_of(std::size_t element, const Shape& shape, const Node& node, std::size_t channels) {
    std::size_t inner = 1;
    for (std::size_t axis = 2; axis < shape.size(); ++axis) inner *= static_cast<std::size_t>(shape[axis]);
    const auto second = static_cast<std::size_t>(shape[1]);
    if (node.op_type != "ConvTranspose") return element / (second * inner);
    // [in, out / group, ...]: the inputs of a group make the outputs of that group.
    const auto inputs = static_cast<std::size_t>(shape[0]);
    const std::size_t groups = std::max<std::size_t>(1, channels / std::max<std::size_t>(1, second));
    const std::size_t input = element / (second * inner);
    const std::size_t group = input / std::max<std::size_t>(1, inputs / groups);
    return group * second + element / inner % second;
}

}  // namespace

TidlTensors::TidlTensors(const Graph& graph, const ConstantLookup& constant, const Target& target)
    : graph_(graph), constant_(constant), target_(target), layers_(graph, constant) {}

ValueId TidlTensors::swallowed_by(ValueId value) const {
    const std::optional<std::size_t> around = layers_.around(value);
    return around && !layers_.making(value) ? layers_.at(*around).output() : no_value;
}

std::string TidlTensors::describe(std::size_t layer) const {
    const TidlLayer& one = layers_.at(layer);
    std::vector<std::string> nodes;
    for (const NodeIndex node : one.nodes) nodes.push_back(label(graph_, graph_.nodes[node]));
    const std::string type =
        one.type.empty() ? "an operator that TIDL leaves to the ARM" : std::string(one.type);
    return nodes.empty() ? type : fmt::format("{} of {}", type, join(nodes, ", "));
}

GridRules TidlTensors::grid(ValueId value, GridRules run) const {
    const std::optional<std::size_t> made = layers_.making(value);
    if (!made) return run;
    const TidlLayer& layer = layers_.at(layers_.scale_of(*made));
    if (layer.is_data() && !layer.inputs.empty()) return run;
    if (is_input(layer.output())) {
        run.scheme = Scheme::symmetric;
        run.power_of_two = true;
    } else if (target_.tidl->symmetric()) {
        run.scheme = layer.is_unsigned ? Scheme::from_zero : Scheme::symmetric;
    }
    return run;
}

std::optional<Range> TidlTensors::carried(ValueId value) const {
    const std::optional<std::size_t> made = layers_.making(value);
    if (!made || !layers_.at(*made).activation.has_range()) return std::nullopt;
    return layers_.at(*made).activation.bounds;
}

bool TidlTensors::is_input(ValueId value) const {
    return std::find(graph_.inputs.begin(), graph_.inputs.end(), value) != graph_.inputs.end();
}

std::optional<Tensor> TidlTensors::folded(ValueId weight) const {
    for (const TidlLayer& layer : layers_.all()) {
        if (layer.weight != weight || layer.norm == no_node) continue;
        const Tensor* tensor = constant_(weight);
        const std::vector<double> factors = norm_factors(graph_.nodes[layer.norm], constant_);
        if (tensor == nullptr || factors.empty() || tensor->shape().size() < 3) return std::nullopt;
        const Node& node = graph_.nodes[layer.nodes.front()];
        const std::vector<double> weights = numbers_of(tensor->view());
        std::vector<float> result(weights.size());
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const std::size_t channel = channel_of(i, tensor->shape(), node, factors.size());
            if (channel >= factors.size()) return std::nullopt;
            result[i] = static_cast<float>(weights[i] * factors[channel]);
        }
        return Tensor::of<float>(tensor->shape(), result);
    }
    return std::nullopt;
}

std::string tidl_scale_text(const Encoding& encoding) {
    const double scale = 1 / encoding.scale;
    const bool symmetric = encoding.symmetric;
    const bool is_signed = symmetric && encoding.offset != 0;
    const std::string zero =
        symmetric || encoding.offset == 0 ? "" : fmt::format(" + {}", encoding.zero_point());
    return fmt::format("TIDL's scale {:.9g} (code = round(value * {:.9g}){}), {} {} bit ({}{})", scale, scale,
                       zero, is_signed ? "signed" : "unsigned", encoding.bits, is_signed ? "s" : "u",
                       encoding.bits);
}

namespace {

class OverrideMover {
  public:
    OverrideMover(const Graph& graph, const TidlTensors& tensors, const Target& target, Remarks& remarks)
        : graph_(graph), tensors_(tensors), target_(target), remarks_(remarks) {}

    std::vector<Override> run(std::span<const Override> overrides, int run_bits) {
        std::vector<Override> moved(overrides.begin(), overrides.end());
        for (Override& one : moved) {
            if (one.target && *one.target != target_.name) continue;
            check(one);
            move(one);
        }
        return with_groups(std::move(moved), run_bits);
    }

  private:
    static std::string name_of(const Override& one) {
        return fmt::format("{} {}", one.place, in_quotes(one.pattern));
    }

    void check(const Override& one) const {
        if (one.symmetric != false || !target_.tidl->symmetric()) return;
        fail(
            "{}: symmetric: expected true, since target '{}' has symmetric codes alone (tidl-asym has "
            "others), "
            "found false",
            name_of(one), target_.name);
    }

    // To the output of the layer it lies in; a width alone to the layer whose codes it has.
    void move(Override& one) {
        const ValueId value = graph_.find(one.pattern);
        if (value == no_value) return;
        const ValueId output = tensors_.swallowed_by(value);
        if (output != no_value) {
            const std::string& name = graph_.values[output].name;
            remarks_.add(fmt::format("{}: taken for {}, under which TIDL knows the output of {}",
                                     name_of(one), in_quotes(name),
                                     tensors_.describe(*tensors_.layers().around(value))));
            one.pattern = name;
        }
        const std::optional<std::size_t> made = tensors_.layers().making(graph_.find(one.pattern));
        const bool width_alone =
            one.bits && !one.range && !one.step && !one.scale && !one.symmetric && !one.copy && !one.skip;
        if (!made || !width_alone) return;
        const std::size_t root = tensors_.layers().scale_of(*made);
        if (root == *made) return;
        const std::string& name = graph_.values[tensors_.layers().at(root).output()].name;
        remarks_.add(fmt::format("{}: taken for {}, whose codes {} hands on", name_of(one), in_quotes(name),
                                 tensors_.describe(*made)));
        one.pattern = name;
    }

    // Adds the width to all that meets in a Concat.
    std::vector<Override> with_groups(std::vector<Override> overrides, int run_bits) {
        const TidlLayers& layers = tensors_.layers();
        const OverrideTable table(overrides, target_.name, target_.scale_is_multiplier);
        std::vector<int> bits(layers.all().size(), run_bits);
        std::vector<bool> asked(bits.size());
        for (std::size_t i = 0; i < bits.size(); ++i) {
            const std::optional<int> given = table.of(graph_.values[layers.at(i).output()].name).bits;
            asked[i] = given.has_value();
            bits[i] = given.value_or(run_bits);
        }
        bool changed = true;
        while (changed) {
            changed = false;
            for (std::size_t i = 0; i < bits.size(); ++i) {
                if (layers.at(i).type != "TIDL_ConcatLayer") continue;
                changed = widen(i, bits, asked, overrides) || changed;
            }
        }
        return overrides;
    }

    bool widen(std::size_t concat, std::vector<int>& bits, const std::vector<bool>& asked,
               std::vector<Override>& overrides) {
        const TidlLayers& layers = tensors_.layers();
        std::vector<std::size_t> group{concat};
        for (const std::size_t input : layers.at(concat).inputs) group.push_back(layers.scale_of(input));
        int widest = 0;
        for (const std::size_t one : group) widest = std::max(widest, bits[one]);
        std::vector<std::string> names;
        for (const std::size_t one : group) {
            if (bits[one] == widest) continue;
            const std::string& name = graph_.values[layers.at(one).output()].name;
            if (asked[one]) {
                remarks_.add(
                    fmt::format("{}: {} bits were asked for, but it meets tensors of {} bits in {}: TIDL "
                                "makes them alike",
                                in_quotes(name), bits[one], widest, tensors_.describe(concat)));
            }
            bits[one] = widest;
            names.push_back(in_quotes(name));
            Override added;
            added.pattern = name;
            added.target = target_.name;
            added.bits = widest;
            added.place = fmt::format("{} bits of a Concat,", widest);
            overrides.push_back(std::move(added));
        }
        if (names.empty()) return false;
        remarks_.add(fmt::format("{}: {} bits, as all that meets in {}", join(names, ", "), widest,
                                 tensors_.describe(concat)));
        return true;
    }

    const Graph& graph_;
    const TidlTensors& tensors_;
    const Target& target_;
    Remarks& remarks_;
};

}  // namespace

std::vector<Override> tidl_overrides(std::span<const Override> overrides, const Graph& graph,
                                     const TidlTensors& tensors, const Target& target, int run_bits,
                                     Remarks& remarks) {
    return OverrideMover(graph, tensors, target, remarks).run(overrides, run_bits);
}

}  // namespace qcalib
