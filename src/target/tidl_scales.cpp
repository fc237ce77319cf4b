#include "target/tidl_scales.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/text.h"
#include "target/tidl_rules.h"

namespace qcalib {

namespace {

// The least n with 2^n >= value, but for the noise of a quotient.
int ceil_log2(double value) {
    constexpr double noise = 1e-12;
    return static_cast<int>(std::ceil(std::log2(value) - noise));
}

bool is_whole_power(double value) {
    if (!(value > 0)) return false;
    const double power = std::log2(value);
    return std::abs(power - std::round(power)) < 1e-12;
}

double greatest_magnitude(const std::vector<double>& numbers) {
    double greatest = 0;
    for (const double number : numbers) greatest = std::max(greatest, std::abs(number));
    return greatest;
}

// What a weight does to its input, and what is added.
struct LayerFactors {
    double weights = 1;  // greatest magnitude
    double bias = 0;     // greatest magnitude
    int bits = 8;        // of the weights
};

class ScaleFinder {
  public:
    ScaleFinder(const Graph& graph, const ConstantLookup& constant, const TidlTensors& tensors,
                const EncodingSet& set, const Target& target)
        : graph_(graph),
          constant_(constant),
          tensors_(tensors),
          target_(target),
          used_(tensors.layers().all().size()) {
        for (const auto* section : {&set.activations, &set.parameters}) {
            for (const TensorEncoding& one : *section) entries_.emplace(one.tensor, &one);
        }
    }

    std::vector<TidlScale> run() {
        for (std::size_t i = 0; i < used_.size(); ++i) look_at(i);
        for (TidlScale& scale : scales_) guard(scale);
        return std::move(scales_);
    }

  private:
    const TidlLayer& layer(std::size_t index) const { return tensors_.layers().at(index); }
    const std::string& name(ValueId value) const { return graph_.values[value].name; }
    const Node& node(const TidlLayer& one) const { return graph_.nodes[one.nodes.front()]; }

    const Encoding* encoding_of(ValueId value) const {
        const auto found = value == no_value ? entries_.end() : entries_.find(name(value));
        const bool one = found != entries_.end() && found->second->encodings.size() == 1;
        return one ? &found->second->encodings.front() : nullptr;
    }

    std::vector<double> numbers(ValueId value) const {
        const Tensor* tensor = value == no_value ? nullptr : constant_(value);
        return tensor == nullptr ? std::vector<double>{} : numbers_of(tensor->view());
    }

    void look_at(std::size_t index) {
        const TidlLayer& one = layer(index);
        const Encoding* encoding = encoding_of(one.output());
        if (one.passes_scale) used_[index] = used_[one.inputs.front()];
        if (encoding == nullptr || one.passes_scale) return;
        TidlScale scale;
        scale.layer = index;
        scale.given = scale.used = 1 / encoding->scale;
        find_used(one, *encoding, scale);
        used_[index] = scale.used;
        scales_.push_back(std::move(scale));
    }

    void find_used(const TidlLayer& one, const Encoding& encoding, TidlScale& scale) const {
        const std::optional<double> sums = scale_of_sums(one, encoding.bits, scale);
        if (!sums) return;
        const Range& bounds = one.activation.bounds;
        const bool aligned =
            scale.weights && one.activation.has_range() && (bounds.min == 0 || bounds.min == -bounds.max);
        if (aligned) return;
        const bool is_signed = encoding.offset != 0;
        const double steps = std::ldexp(1.0, is_signed ? encoding.bits - 1 : encoding.bits);
        double end = steps * encoding.scale;
        const bool margin = widens(one);
        if (margin) end *= target_.tidl->unclipped_margin;
        scale.used = std::ldexp(*sums, -tidl_shift(end, *sums, encoding.bits, is_signed));
        if (scale.bits_lost() <= 0) return;
        if (margin) {
            scale.why = fmt::format("TIDL widens the greatest value by {} where no Clip follows",
                                    target_.tidl->unclipped_margin);
        } else if (scale.used == *sums) {
            scale.why = fmt::format("its sums have no finer scale than {:.6g}", *sums);
        } else {
            scale.why = fmt::format("it is that of its sums, {:.9g}, divided by a power of two", *sums);
        }
    }

    // An inner product or an average over all pixels that ends in no Clip.
    bool widens(const TidlLayer& one) const {
        if (one.activation.has_range() || one.is_data()) return false;
        return one.type == "TIDL_InnerProductLayer" || node(one).op_type == "GlobalAveragePool";
    }

    std::optional<double> scale_of_sums(const TidlLayer& one, int bits, TidlScale& scale) const {
        if (one.is_data() || one.inputs.empty()) return std::nullopt;
        const bool wide = bits > 8;
        const std::optional<double> least = least_input(one);
        if (!least) return std::nullopt;
        const std::string& op_type = node(one).op_type;
        if (one.type == "TIDL_EltWiseLayer") {
            if (op_type == "Mul") return product_of_inputs(one);
            const bool adds = op_type == "Add" || op_type == "Sub" || op_type == "Sum";
            return adds ? std::optional(std::ldexp(*least, wide ? 14 : 6)) : std::nullopt;
        }
        if (one.type == "TIDL_ConcatLayer") return std::ldexp(*least, wide ? 15 : 7);
        if (one.type == "TIDL_PoolingLayer")
            return std::ldexp(*least, !wide && is_small_average(node(one)) ? 8 : 12);
        const std::optional<LayerFactors> factors = factors_of(one);
        if (!factors) return one.type == "TIDL_InnerProductLayer" ? product_of_inputs(one) : std::nullopt;
        scale.weights = weight_scale(one, *factors);
        return *scale.weights * *least;
    }

    std::optional<double> least_input(const TidlLayer& one) const {
        std::optional<double> least;
        for (const std::size_t input : one.inputs) {
            if (!used_[input]) return std::nullopt;
            least = std::min(least.value_or(*used_[input]), *used_[input]);
        }
        return least;
    }

    std::optional<double> product_of_inputs(const TidlLayer& one) const {
        double product = 1;
        for (const std::size_t input : one.inputs) product *= used_[input].value_or(0);
        return product > 0 ? std::optional(product) : std::nullopt;
    }

    // 2 x 2 or 3 x 3 pixels with a stride of 2.
    static bool is_small_average(const Node& pool) {
        const auto of = [&](const char* attribute) {
            return pool.attribute<std::vector<std::int64_t>>(attribute, {});
        };
        const std::vector<std::int64_t> kernel = of("kernel_shape");
        if (of("strides") != std::vector<std::int64_t>{2, 2}) return false;
        return kernel == std::vector<std::int64_t>{2, 2} || kernel == std::vector<std::int64_t>{3, 3};
    }

    // The scale of the weights' encoding, or of their greatest magnitude.
    double weight_scale(const TidlLayer& one, const LayerFactors& factors) const {
        if (const Encoding* encoding = encoding_of(one.weight)) return 1 / encoding->scale;
        constexpr double least = 1e-15;
        if (factors.weights < least) return 1;
        const double limit = target_.power_of_two ? power_of_two_above(factors.weights) : factors.weights;
        return std::ldexp(1 / limit, factors.bits - 1);
    }

    std::optional<LayerFactors> factors_of(const TidlLayer& one) const {
        LayerFactors factors;
        factors.bits = target_.weights.bits;
        if (one.stands_alone) return factors;
        const Node& first = node(one);
        if (one.type == "TIDL_BatchNormLayer") return factors_of_norm(one, first);
        if (one.weight == no_value) return std::nullopt;
        const Encoding* encoding = encoding_of(one.weight);
        if (encoding == nullptr) return std::nullopt;
        factors.bits = encoding->bits;
        const std::vector<double> biases = numbers(one.bias);
        factors.bias = greatest_magnitude(one.norm == no_node ? biases : folded_biases(one, biases));
        return factors;
    }

    std::optional<LayerFactors> factors_of_norm(const TidlLayer& one, const Node& first) const {
        LayerFactors factors;
        factors.bits = target_.weights.bits;
        if (first.op_type == "BatchNormalization") {
            const NormNumbers norm = norm_of(first);
            if (norm.factors.empty()) return std::nullopt;
            factors.weights = greatest_magnitude(norm.factors);
            factors.bias = greatest_magnitude(norm.added);
            return factors;
        }
        if (one.weight == no_value) return std::nullopt;
        const double greatest = greatest_magnitude(numbers(one.weight));
        if (first.op_type == "Mul") {
            factors.weights = greatest;
        } else if (first.op_type == "Add" || first.op_type == "Sub") {
            factors.bias = greatest;
        } else {
            return std::nullopt;
        }
        return factors;
    }

    struct NormNumbers {
        std::vector<double> factors;
        std::vector<double> added;
    };
    // gamma / sqrt(variance + epsilon), and what is added after it.
    NormNumbers norm_of(const Node& norm) const {
        if (norm.inputs.size() < 5) return {};
        const std::vector<double> gammas = numbers(norm.inputs[1]);
        const std::vector<double> betas = numbers(norm.inputs[2]);
        const std::vector<double> means = numbers(norm.inputs[3]);
        const std::vector<double> variances = numbers(norm.inputs[4]);
        const std::size_t count = gammas.size();
        if (betas.size() != count || means.size() != count || variances.size() != count) return {};
        const double epsilon = norm.attribute("epsilon", 1e-5F);
        NormNumbers result;
        for (std::size_t i = 0; i < count; ++i) {
            result.factors.push_back(gammas[i] / std::sqrt(variances[i] + epsilon));
            result.added.push_back(betas[i] - means[i] * result.factors.back());
        }
        return result;
    }

    std::vector<double> folded_biases(const TidlLayer& one, const std::vector<double>& biases) const {
        NormNumbers norm = norm_of(graph_.nodes[one.norm]);
        for (std::size_t i = 0; i < norm.added.size() && i < biases.size(); ++i)
            norm.added[i] += biases[i] * norm.factors[i];
        return norm.added;
    }

    // Biases that would not fit: of the layer itself, and of those that read it.
    void guard(TidlScale& scale) const {
        const TidlLayer& one = layer(scale.layer);
        cap_weights(one, scale);
        const Range& bounds = one.activation.bounds;
        if (one.activation.has_range() && (bounds.min == 0 || bounds.min == -bounds.max)) return;
        if (one.is_data()) return;
        const Encoding& own = *encoding_of(one.output());
        for (const std::size_t reader : weighted_readers(scale.layer)) {
            const std::optional<LayerFactors> factors = factors_of(layer(reader));
            const Encoding* made = encoding_of(layer(reader).output());
            if (!factors || factors->bias < 1e-15 || made == nullptr) continue;
            const double ratio = scale.used * weight_scale(layer(reader), *factors) * factors->bias /
                                 std::ldexp(1.0, factors->bits - 1);
            const double most = std::ldexp(1.0, (made->bits > 8 ? 15 : 8) - (own.offset != 0 ? 1 : 0));
            if (ratio <= most) continue;
            const int bits = ceil_log2(ratio / most);
            if (bits <= scale.guard_bits) continue;
            scale.guard_bits = bits;
            scale.guarded = tensors_.describe(reader);
        }
    }

    void cap_weights(const TidlLayer& one, TidlScale& scale) const {
        if (!scale.weights || one.inputs.empty() || !used_[one.inputs.front()]) return;
        const std::optional<LayerFactors> factors = factors_of(one);
        if (!factors || factors->bias < 1e-15) return;
        const int sign = layer(one.inputs.front()).is_unsigned ? 0 : 1;
        const double cap =
            std::ldexp(1.0, 2 * factors->bits - sign - 1) / factors->bias / *used_[one.inputs.front()];
        if (*scale.weights > cap) scale.weight_cap = cap;
    }

    // Also those behind layers that hand its codes on.
    std::vector<std::size_t> weighted_readers(std::size_t index) const {
        std::vector<std::size_t> found;
        std::vector<std::size_t> open = tensors_.layers().readers(index);
        while (!open.empty()) {
            const std::size_t one = open.back();
            open.pop_back();
            if (layer(one).passes_scale) {
                const std::vector<std::size_t> behind = tensors_.layers().readers(one);
                open.insert(open.end(), behind.begin(), behind.end());
            } else {
                found.push_back(one);
            }
        }
        return found;
    }

    const Graph& graph_;
    const ConstantLookup& constant_;
    const TidlTensors& tensors_;
    const Target& target_;
    std::unordered_map<std::string, const TensorEncoding*> entries_;
    std::vector<std::optional<double>> used_;  // by layer
    std::vector<TidlScale> scales_;
};

}  // namespace

double TidlScale::bits_lost() const {
    constexpr double noise = 1e-9;
    const double bits = std::log2(given / used);
    return bits > noise ? bits : 0;
}

std::vector<TidlScale> tidl_scales(const Graph& graph, const ConstantLookup& constant,
                                   const TidlTensors& tensors, const EncodingSet& set, const Target& target) {
    if (!target.tidl->symmetric()) return {};
    return ScaleFinder(graph, constant, tensors, set, target).run();
}

int tidl_shift(double end, double sums, int bits, bool is_signed) {
    double most = end * sums;
    if (is_signed && is_whole_power(most)) most -= 1;
    const double codes = std::ldexp(1.0, is_signed ? bits - 1 : bits);
    if (most <= codes) return 0;
    return std::max(0, ceil_log2(most / codes));
}

std::optional<double> tidl_clipped_weights(std::vector<double> magnitudes, int bits) {
    if (magnitudes.empty()) return std::nullopt;
    constexpr double medians = 16;
    const double greatest = *std::max_element(magnitudes.begin(), magnitudes.end());
    const auto middle = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 2);
    std::nth_element(magnitudes.begin(), middle, magnitudes.end());
    if (greatest <= std::ldexp(1.0, bits - 1) / 8 - 1 || greatest <= medians * *middle || *middle <= 0)
        return std::nullopt;
    return std::ldexp(1.0, ceil_log2(std::min(greatest, medians * *middle))) - 1;
}

}  // namespace qcalib
