#include "simulate/chain_kernels.h"

#include <algorithm>
#include <cmath>

#include "target/simulation_rule.h"

namespace qcalib {

namespace {

// Numbers of a node's attribute.
std::vector<double> attribute_numbers(const Node& node, std::string_view name) {
    if (!node.has_attribute(name)) return {};
    return numbers_of(node.attribute(name, Tensor()).view());
}

double rounded_code(double value, ValueRounding rounding) {
    switch (rounding) {
        case ValueRounding::half_up:
            return std::floor(value + 0.5);
        case ValueRounding::half_away:
            return std::round(value);
        case ValueRounding::half_even:
            return std::nearbyint(value);
    }
    return value;
}

// What lies behind the accumulator: a factor (of a shift: 2^-n), rounding and saturation. NaN stays.
struct Requantization {
    double factor = 1;
    double least = 0;
    double greatest = 0;
    ShiftRounding rounding = ShiftRounding::half_up;

    double operator()(double sum) const {
        const double value = round(sum * factor);
        return value < least ? least : value > greatest ? greatest : value;
    }
    double round(double value) const {
        switch (rounding) {
            case ShiftRounding::half_up:
                return std::floor(value + 0.5);
            case ShiftRounding::floor:
                return std::floor(value);
            case ShiftRounding::half_even:
                return std::nearbyint(value);
        }
        return value;
    }
};

Requantization read_requantization(const Node& node) {
    const std::vector<double> grid = attribute_numbers(node, "grid");
    return {grid.at(0), grid.at(1), grid.at(2),
            static_cast<ShiftRounding>(node.attribute<std::int64_t>("rounding", 0))};
}

class ToCodesKernel : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return follow_inputs(context);
    }
    Prepared prepare(const NodeContext& context) override {
        const std::vector<double> grid = attribute_numbers(context.node, "grid");
        scale_ = grid.at(0);
        least_ = grid.at(1);
        greatest_ = grid.at(2);
        rounding_ = static_cast<ValueRounding>(context.node.attribute<std::int64_t>("rounding", 0));
        Prepared prepared;
        prepared.outputs = {context.input(0)};
        return prepared;
    }
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const std::span<const float> x = inputs[0].as<float>();
        const std::span<float> codes = outputs[0].as<float>();
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double code = rounded_code(static_cast<double>(x[i]) * scale_, rounding_);
            codes[i] = static_cast<float>(code < least_ ? least_ : code > greatest_ ? greatest_ : code);
        }
    }

  private:
    double scale_ = 1;
    double least_ = 0;
    double greatest_ = 0;
    ValueRounding rounding_ = ValueRounding::half_up;
};

class FromCodesKernel : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return follow_inputs(context);
    }
    Prepared prepare(const NodeContext& context) override {
        scale_ = attribute_numbers(context.node, "grid").at(0);
        Prepared prepared;
        prepared.outputs = {context.input(0)};
        return prepared;
    }
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const std::span<const float> codes = inputs[0].as<float>();
        const std::span<float> x = outputs[0].as<float>();
        for (std::size_t i = 0; i < x.size(); ++i)
            x[i] = static_cast<float>(static_cast<double>(codes[i]) / scale_);
    }

  private:
    double scale_ = 1;
};

// Which elements of each input an element of the output is made of, by ONNX's broadcasting.
std::vector<std::vector<std::size_t>> broadcast_strides(const NodeContext& context, const Shape& output) {
    std::vector<std::vector<std::size_t>> all;
    for (std::size_t i = 0; i < context.input_count(); ++i) {
        const Shape& shape = context.input(i).shape;
        std::vector<std::size_t> strides(output.size());
        std::size_t stride = 1;
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            const auto extent = static_cast<std::size_t>(shape[axis]);
            strides[output.size() - shape.size() + axis] = extent == 1 ? 0 : stride;
            stride *= extent;
        }
        all.push_back(std::move(strides));
    }
    return all;
}

class RequantizeKernel : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        for (std::size_t i = 1; i < context.input_count(); ++i) {
            if (context.input(i).shape != context.input(0).shape) return all_row_major(context);
        }
        return follow_inputs(context);
    }

    Prepared prepare(const NodeContext& context) override {
        const Node& node = context.node;
        after_ = read_requantization(node);
        factors_ = attribute_numbers(node, "factors");
        factors_each_ = factors_.size() / context.input_count();
        bias_ = attribute_numbers(node, "bias");
        product_ = node.attribute<std::string>("combine", "sum") == "product";
        whole_ = node.attribute<std::int64_t>("whole", 0) != 0;
        TensorDescriptor output = context.input(0);
        output.shape = broadcast_shape(context);
        same_shape_ = true;
        for (std::size_t i = 0; i < context.input_count(); ++i)
            same_shape_ = same_shape_ && context.input(i).shape == output.shape;
        if (same_shape_) {
            find_channels(context, output);
        } else {
            strides_ = broadcast_strides(context, output.shape);
        }
        Prepared prepared;
        prepared.outputs = {output};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        if (!same_shape_) {
            run_broadcast(inputs, outputs[0]);
        } else if (inputs.size() == 1) {
            run_one(inputs[0], outputs[0]);
        } else {
            run_same(inputs, outputs[0]);
        }
    }

  private:
    static Shape broadcast_shape(const NodeContext& context) {
        Shape shape = context.input(0).shape;
        for (std::size_t i = 1; i < context.input_count(); ++i) {
            const Shape& other = context.input(i).shape;
            if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
            for (std::size_t axis = 0; axis < other.size(); ++axis) {
                std::int64_t& extent = shape[shape.size() - other.size() + axis];
                if (extent != other[axis] && extent != 1 && other[axis] != 1) {
                    context.refuse(fmt::format("shapes {} and {} do not fit together",
                                               to_string(context.input(0).shape), to_string(other)));
                }
                if (extent == 1) extent = other[axis];
            }
        }
        return shape;
    }

    // Elements with the same channel lie in runs of run_length_.
    void find_channels(const NodeContext& context, const TensorDescriptor& output) {
        const std::size_t wanted = std::max(factors_each_, bias_.size());
        channels_ = 1;
        run_length_ = std::max<std::size_t>(output.elements(), 1);
        if (wanted <= 1) return;
        const auto given = context.node.attribute<std::int64_t>("axis", 1);
        const auto axis =
            static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(output.rank()) : given);
        if (axis >= output.rank() || static_cast<std::size_t>(output.shape[axis]) != wanted)
            context.refuse(fmt::format("{} channels do not fit shape {}", wanted, to_string(output.shape)));
        channels_ = wanted;
        run_length_ = 1;
        if (output.order == MemoryOrder::channels_last && axis == 1) return;
        for (std::size_t i = axis + 1; i < output.rank(); ++i)
            run_length_ *= static_cast<std::size_t>(output.shape[i]);
    }

    double factor_of(std::size_t input, std::size_t channel) const {
        return factors_[input * factors_each_ + (factors_each_ == 1 ? 0 : channel)];
    }
    double bias_of(std::size_t channel) const {
        return bias_.empty() ? 0 : bias_[bias_.size() == 1 ? 0 : channel];
    }

    double finish(double sum) const { return after_(whole_ ? std::floor(sum + 0.5) : sum); }

    void run_one(TensorView input, MutableTensorView output) const {
        const std::span<const float> sums = input.as<float>();
        const std::span<float> codes = output.as<float>();
        std::size_t channel = 0;
        for (std::size_t begin = 0; begin < sums.size(); begin += run_length_) {
            const double factor = factor_of(0, channel);
            const double bias = bias_of(channel);
            const std::size_t end = std::min(begin + run_length_, sums.size());
            for (std::size_t i = begin; i < end; ++i)
                codes[i] = static_cast<float>(finish(static_cast<double>(sums[i]) * factor + bias));
            channel = channel + 1 == channels_ ? 0 : channel + 1;
        }
    }

    void run_same(std::span<const TensorView> inputs, MutableTensorView output) const {
        const std::span<float> codes = output.as<float>();
        std::size_t channel = 0;
        for (std::size_t begin = 0; begin < codes.size(); begin += run_length_) {
            const double bias = bias_of(channel);
            const std::size_t end = std::min(begin + run_length_, codes.size());
            for (std::size_t i = begin; i < end; ++i) {
                double sum = product_ ? 1 : 0;
                for (std::size_t k = 0; k < inputs.size(); ++k) {
                    const double term = static_cast<double>(inputs[k].as<float>()[i]) * factor_of(k, channel);
                    sum = product_ ? sum * term : sum + term;
                }
                codes[i] = static_cast<float>(finish(sum + bias));
            }
            channel = channel + 1 == channels_ ? 0 : channel + 1;
        }
    }

    void run_broadcast(std::span<const TensorView> inputs, MutableTensorView output) const {
        const std::span<float> codes = output.as<float>();
        const Shape& shape = output.descriptor->shape;
        for (std::size_t i = 0; i < codes.size(); ++i) {
            double sum = product_ ? 1 : 0;
            for (std::size_t k = 0; k < inputs.size(); ++k) {
                std::size_t place = 0;
                std::size_t rest = i;
                for (std::size_t axis = shape.size(); axis-- > 0;) {
                    const auto extent = static_cast<std::size_t>(shape[axis]);
                    place += rest % extent * strides_[k][axis];
                    rest /= extent;
                }
                const double term = static_cast<double>(inputs[k].as<float>()[place]) * factor_of(k, 0);
                sum = product_ ? sum * term : sum + term;
            }
            codes[i] = static_cast<float>(finish(sum + bias_of(0)));
        }
    }

    Requantization after_;
    std::vector<double> factors_;  // input by input: one, or one a channel
    std::vector<double> bias_;
    std::size_t factors_each_ = 1;  // of one input
    bool product_ = false;
    bool whole_ = false;
    bool same_shape_ = true;
    std::size_t channels_ = 1;
    std::size_t run_length_ = 1;
    std::vector<std::vector<std::size_t>> strides_;
};

// The mean over the pixels of each channel of [batch, channels, ...].
class AverageKernel : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        if (input.rank() < 3) context.refuse("expected a tensor of rank 3 or more");
        after_ = read_requantization(context.node);
        unit_ = attribute_numbers(context.node, "unit").at(0);
        Prepared prepared;
        TensorDescriptor output = input;
        output.order = MemoryOrder::row_major;
        std::fill(output.shape.begin() + 2, output.shape.end(), 1);
        prepared.outputs = {output};
        return prepared;
    }
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const std::span<const float> codes = inputs[0].as<float>();
        const std::span<float> means = outputs[0].as<float>();
        if (means.empty()) return;
        const std::size_t pixels = codes.size() / means.size();
        for (std::size_t i = 0; i < means.size(); ++i) {
            double sum = 0;
            for (std::size_t p = 0; p < pixels; ++p) sum += static_cast<double>(codes[i * pixels + p]);
            const double mean = std::floor(sum * unit_ / static_cast<double>(pixels) + 0.5);
            means[i] = static_cast<float>(after_(mean));
        }
    }

  private:
    Requantization after_;
    double unit_ = 1;
};

class DigitsKernel : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return follow_inputs(context);
    }
    Prepared prepare(const NodeContext& context) override {
        base_ = static_cast<double>(context.node.attribute<std::int64_t>("base", 2));
        Prepared prepared;
        prepared.outputs.assign(context.node.outputs.size(), context.input(0));
        return prepared;
    }
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const std::span<const float> codes = inputs[0].as<float>();
        for (std::size_t i = 0; i < codes.size(); ++i) {
            auto rest = static_cast<double>(codes[i]);
            for (std::size_t digit = 0; digit + 1 < outputs.size(); ++digit) {
                const double higher = std::floor(rest / base_);
                outputs[digit].as<float>()[i] = static_cast<float>(rest - higher * base_);
                rest = higher;
            }
            outputs.back().as<float>()[i] = static_cast<float>(rest);
        }
    }

  private:
    double base_ = 2;
};

OperatorEntry chain_entry(std::string op_type, std::string summary, std::unique_ptr<Kernel> (*make)()) {
    OperatorEntry entry;
    entry.domain = chain_domain;
    entry.op_type = std::move(op_type);
    entry.summary = std::move(summary);
    entry.make = make;
    entry.make_reference = make;
    return entry;
}

KernelRegistry with_chain() {
    KernelRegistry registry = builtin_kernels();
    registry.add(chain_entry("ToCodes", "Real numbers to codes", &make_kernel<ToCodesKernel>));
    registry.add(chain_entry("FromCodes", "Codes to real numbers", &make_kernel<FromCodesKernel>));
    registry.add(chain_entry("Requantize", "Accumulators to codes", &make_kernel<RequantizeKernel>));
    registry.add(chain_entry("Average", "The mean of each channel as a code", &make_kernel<AverageKernel>));
    registry.add(chain_entry("Digits", "Codes in parts", &make_kernel<DigitsKernel>));
    return registry;
}

}  // namespace

const KernelRegistry& chain_kernels() {
    static const KernelRegistry registry = with_chain();
    return registry;
}

}  // namespace qcalib
