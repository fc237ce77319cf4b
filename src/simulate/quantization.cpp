#include "simulate/quantization.h"

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "simulate/chain_weights.h"
#include "simulate/grid_walk.h"
#include "target/bias_encoding.h"

namespace qcalib {

namespace {

Encoding product_grid(double scale) {
    Encoding encoding;
    encoding.bits = 32;
    encoding.scale = scale;
    encoding.offset = -(std::int64_t{1} << 31);
    encoding.min = static_cast<double>(encoding.offset) * scale;
    encoding.max = static_cast<double>(-encoding.offset - 1) * scale;
    encoding.symmetric = true;
    return encoding;
}

class Maker {
  public:
    Maker(const SimulatedModel& model, const SimulatedEncodings& encodings, ValueRounding rounding,
          Remarks& remarks)
        : model_(model),
          rounding_(rounding),
          constant_rounding_(model.target().simulation.has_chain ? ValueRounding::half_away : rounding),
          remarks_(remarks) {
        for (const SimulatedEncoding& one : encodings) encoding_of_.emplace(one.value, &one);
        result_.activations.resize(model.graph()->values.size());
    }

    void add(const SimulatedEncoding& one) {
        try {
            const bool activation = one.kind == SimulatedEncoding::Kind::activation;
            auto quantizer = std::make_shared<const TensorQuantizer>(
                one.encoding, activation ? rounding_ : constant_rounding_);
            if (activation)
                result_.activations[one.value] = std::move(quantizer);
            else
                replace(one.value, *quantizer, one.clip);
        } catch (const Error& error) {
            remarks_.add(fmt::format("{}; it stays in float", error.what()));
        }
    }

    void add_biases(BiasForm form) {
        if (form == BiasForm::floating) return;
        const auto constant = [this](ValueId value) { return model_.constant(value); };
        for (const Parameter& parameter : model_.parameters()) {
            const ParameterUse& use = parameter.uses.front();
            const auto operands = bias_operands(use, *model_.graph(), constant, model_.target());
            if (!operands || encoding_of_.contains(parameter.value)) continue;
            if (form == BiasForm::split) {
                split(parameter.value, *operands);
                continue;
            }
            std::optional<TensorEncoding> encoding = bias_encoding(parameter.value, *operands, form);
            if (!encoding) continue;
            encoding->tensor = model_.graph()->values[parameter.value].name;
            replace(parameter.value, TensorQuantizer(*encoding, constant_rounding_), {});
        }
    }

    Quantization finish() {
        Sha256 digest;
        for (const auto& [value, tensor] : result_.replaced) {
            digest.update(std::as_bytes(std::span(&value, 1)));
            digest.update(tensor.view().bytes());
        }
        result_.digest = to_hex(digest.finish());
        return std::move(result_);
    }

  private:
    void replace(ValueId value, const TensorQuantizer& quantizer, const std::optional<TensorEncoding>& clip) {
        const Tensor& before = *model_.constant(value);
        if (before.type() != DataType::float32) return;
        Tensor after = clip ? clipped_to(before, *clip) : copy_of(before);
        QuantizedConstant constant;
        constant.sums = quantizer.apply(after.mutable_view());
        constant.step = quantizer.step();
        constant.error = compare(before.view(), after.view());
        before.release_pages();
        result_.constants.emplace(value, constant);
        result_.replaced.emplace(value, std::move(after));
    }

    // The bias as a product of two integers at the scale of input times weight.
    void split(ValueId value, const BiasOperands& operands) {
        const auto data = encoding_of_.find(operands.data);
        const auto weight = encoding_of_.find(operands.weight);
        if (data == encoding_of_.end() || weight == encoding_of_.end()) return;
        const TensorEncoding& input = data->second->encoding;
        const TensorEncoding& factors = weight->second->encoding;
        if (input.encodings.size() != 1 || factors.encodings.size() != 1) return;
        const double sums = 1 / (input.encodings.front().scale * factors.encodings.front().scale);
        const std::vector<double> before = numbers_of(model_.constant(value)->view());
        const bool is_signed = input.encodings.front().offset != 0;
        const std::vector<double> codes =
            bias_codes(before, sums, factors.width(), is_signed, BiasForm::split);
        std::vector<float> after;
        for (const double code : codes) after.push_back(static_cast<float>(code / sums));
        const Shape& shape = model_.constant(value)->shape();
        result_.replaced.emplace(value, Tensor::of<float>(shape, std::span<const float>(after)));
        result_.constants.emplace(value, quantized_constant(before, codes, sums));
    }

    std::optional<TensorEncoding> bias_encoding(ValueId value, const BiasOperands& operands,
                                                BiasForm form) const {
        const auto data = encoding_of_.find(operands.data);
        const auto weight = encoding_of_.find(operands.weight);
        if (data == encoding_of_.end() || weight == encoding_of_.end()) return std::nullopt;
        const TensorEncoding& input = data->second->encoding;
        const TensorEncoding& factors = weight->second->encoding;
        if (input.encodings.size() != 1 || factors.encodings.empty()) return std::nullopt;
        const Tensor& bias = *model_.constant(value);
        TensorEncoding encoding;
        if (form == BiasForm::int8) {
            const std::string& name = model_.graph()->values[value].name;
            const std::vector<Range> ranges = weight_ranges(bias.view(), {}, name);
            encoding.encodings = {encode_asymmetric(ranges.front(), 8, model_.target().least_range)};
            return encoding;
        }
        const double step = input.encodings.front().scale;
        const std::size_t elements = bias.view().elements();
        const bool channels = factors.per_channel() && factors.encodings.size() == elements && elements > 1;
        if (factors.encodings.size() > 1 && !channels) return std::nullopt;
        for (const Encoding& one : factors.encodings)
            encoding.encodings.push_back(product_grid(step * one.scale));
        if (channels) encoding.axis = -1;
        return encoding;
    }

    const SimulatedModel& model_;
    ValueRounding rounding_;
    ValueRounding constant_rounding_;  // TIDL's weights: half away from zero
    Remarks& remarks_;
    std::unordered_map<ValueId, const SimulatedEncoding*> encoding_of_;
    Quantization result_;
};

}  // namespace

Quantization make_quantization(const SimulatedModel& model, const SimulatedEncodings& encodings,
                               ValueRounding rounding, BiasForm bias, Remarks& remarks) {
    Maker maker(model, encodings, rounding, remarks);
    for (const SimulatedEncoding& one : encodings) maker.add(one);
    maker.add_biases(bias);
    return maker.finish();
}

Quantization make_quantization(const SimulatedModel& model, const SimulatedEncodings& encodings,
                               const SimulationSwitches& switches, Remarks& remarks,
                               ChainWeightCache* cache) {
    if (switches.arithmetic == Arithmetic::fake)
        return make_quantization(model, encodings, switches.rounding, switches.bias, remarks);
    Quantization result;
    result.activations.resize(model.graph()->values.size());
    result.chain =
        std::make_shared<const IntegerChain>(make_integer_chain(model, encodings, switches, cache));
    result.constants = result.chain->constants;
    return result;
}

}  // namespace qcalib
