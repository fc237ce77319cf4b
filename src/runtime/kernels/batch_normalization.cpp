#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/channel_loops.h"
#include "runtime/kernels/window.h"

namespace qcalib {

namespace {

// The input seen as [batch, channels, pixels] or, channels-last, [batch, pixels, channels]. A vector is one
// channel.
struct ChannelShape {
    explicit ChannelShape(const TensorDescriptor& descriptor = {DataType::float32, {1, 1}, {}}) {
        const Shape& shape = descriptor.shape;
        batch = shape[0];
        channels = shape.size() > 1 ? shape[1] : 1;
        if (shape.size() > 2) pixels = element_count(std::span(shape).subspan(2));
        const bool last = descriptor.order == MemoryOrder::channels_last || pixels == 1;
        channel_step = last ? 1 : pixels;
        pixel_step = last ? channels : 1;
    }

    std::int64_t batch = 1;
    std::int64_t channels = 1;
    std::int64_t pixels = 1;
    std::int64_t channel_step = 1;
    std::int64_t pixel_step = 1;

    // Calls `visit(index of an element)` for each element of a channel.
    template <typename Visit>
    void for_each(std::int64_t channel, const Visit& visit) const {
        for (std::int64_t n = 0; n < batch; ++n) {
            const std::int64_t begin = n * channels * pixels + channel * channel_step;
            for (std::int64_t p = 0; p < pixels; ++p) visit(begin + p * pixel_step);
        }
    }
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias, with scale, bias, mean, variance one per channel.
class BatchNormalizationReference : public Kernel {
  public:
    // Each element goes where it came from, so any order will do.
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        std::vector<MemoryOrder> orders = all_row_major(context);
        if (!orders.empty() && context.has_input(0)) orders[0] = context.input(0).order;
        return orders;
    }

    Prepared prepare(const NodeContext& context) override {
        read(context);
        Prepared prepared;
        prepared.outputs = {context.input(0)};
        for (std::size_t i = 1; i < context.node.outputs.size(); ++i) {
            prepared.outputs.push_back({context.input(0).type, {shape_.channels}, MemoryOrder::row_major});
        }
        if (!training_) prepared.in_place = {0};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        if (inputs[0].descriptor->type == DataType::float64) {
            training_ ? train<double>(inputs, outputs) : normalize<double>(inputs, outputs[0]);
        } else {
            training_ ? train<float>(inputs, outputs) : normalize<float>(inputs, outputs[0]);
        }
    }

  protected:
    void read(const NodeContext& context) {
        for (std::size_t i = 0; i < 5; ++i) {
            if (!context.has_input(i)) context.refuse(fmt::format("input {} should be there", i));
        }
        require_one_float_type(context);
        if (context.input(0).rank() < 1)
            context.refuse("input 0 should have a batch dimension, found a scalar");
        shape_ = ChannelShape(context.input(0));
        for (std::size_t i = 1; i < 5; ++i) {
            const Shape& found = context.input(i).shape;
            if (found == Shape{shape_.channels}) continue;
            context.refuse(fmt::format("input {} should have shape [{}], one number per channel, found {}", i,
                                       shape_.channels, to_string(found)));
        }
        const Node& node = context.node;
        epsilon_ = node.attribute("epsilon", 1e-5F);
        momentum_ = node.attribute("momentum", 0.9F);
        if (node.attribute<std::int64_t>("spatial", 1) != 1) {
            context.refuse("attribute 'spatial' is 0: statistics per element are not supported");
        }
        training_ = node.attribute<std::int64_t>("training_mode", 0) != 0;
        const auto wanted = [](ValueId output) { return output != no_value; };
        if (!training_ && std::any_of(node.outputs.begin() + 1, node.outputs.end(), wanted)) {
            context.refuse(
                "outputs beyond the first exist in training only; export the model in inference mode");
        }
        if (training_ && node.outputs.size() > 3) {
            context.refuse(fmt::format("at most 3 outputs are known, found {}", node.outputs.size()));
        }
    }

    bool training() const { return training_; }
    const ChannelShape& shape() const { return shape_; }

    // The factor and the term of channel c, in double.
    template <typename T>
    std::pair<double, double> factor_and_term(T scale, T bias, T mean, T variance) const {
        const double factor = scale / std::sqrt(static_cast<double>(variance) + epsilon_);
        return {factor, bias - mean * factor};
    }

  private:
    template <typename T>
    void normalize(std::span<const TensorView> inputs, MutableTensorView output) const {
        const T* x = inputs[0].as<T>().data();
        T* y = output.as<T>().data();
        for (std::int64_t c = 0; c < shape_.channels; ++c) {
            const auto of = [&](std::size_t input) {
                return inputs[input].as<T>()[static_cast<std::size_t>(c)];
            };
            const T root = std::sqrt(of(4) + static_cast<T>(epsilon_));
            shape_.for_each(c, [&](std::int64_t i) { y[i] = (x[i] - of(3)) / root * of(1) + of(2); });
        }
    }

    // Mean and variance are the batch's own; outputs 1 and 2 are the running ones after it.
    template <typename T>
    void train(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) const {
        const T* x = inputs[0].as<T>().data();
        T* y = outputs[0].as<T>().data();
        const auto count = static_cast<double>(shape_.batch * shape_.pixels);
        for (std::int64_t channel = 0; channel < shape_.channels; ++channel) {
            const auto c = static_cast<std::size_t>(channel);
            double mean = 0;
            shape_.for_each(channel, [&](std::int64_t i) { mean += x[i]; });
            mean /= count;
            double variance = 0;
            shape_.for_each(channel, [&](std::int64_t i) { variance += (x[i] - mean) * (x[i] - mean); });
            variance /= count;
            const double factor = inputs[1].as<T>()[c] / std::sqrt(variance + epsilon_);
            const double bias = inputs[2].as<T>()[c];
            shape_.for_each(channel,
                            [&](std::int64_t i) { y[i] = static_cast<T>((x[i] - mean) * factor + bias); });
            const auto update = [&](std::size_t output, double current) {
                if (output >= outputs.size() || outputs[output].data == nullptr) return;
                const double before = inputs[2 + output].as<T>()[c];
                outputs[output].as<T>()[c] = static_cast<T>(before * momentum_ + current * (1.0 - momentum_));
            };
            update(1, mean);
            update(2, variance);
        }
    }

    ChannelShape shape_;
    float epsilon_ = 0;
    float momentum_ = 0;
    bool training_ = false;
};

// One multiplication and addition per element. Channels-last, factors and terms are repeated up to a period
// that fills vectors whatever the number of channels.
class BatchNormalization : public BatchNormalizationReference {
  public:
    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = BatchNormalizationReference::prepare(context);
        plain_ = training() || context.input(0).type != DataType::float32;
        if (plain_) return prepared;
        const auto channels = static_cast<std::size_t>(shape().channels);
        repeats_ = shape().channel_step == 1 && channels > 0 ? (least_period + channels - 1) / channels : 1;
        const bool known = std::all_of(context.inputs.begin() + 1, context.inputs.begin() + 5,
                                       [](const InputInfo& info) { return info.constant.has_value(); });
        if (!known) {
            prepared.scratch_bytes = 2 * repeats_ * channels * sizeof(float);
            return prepared;
        }
        factors_.resize(repeats_ * channels);
        terms_.resize(repeats_ * channels);
        const std::vector<float> scale = context.floats(1);
        const std::vector<float> bias = context.floats(2);
        const std::vector<float> mean = context.floats(3);
        const std::vector<float> variance = context.floats(4);
        fill(scale.data(), bias.data(), mean.data(), variance.data(), factors_.data(), terms_.data());
        prepared.packed = {1, 2, 3, 4};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (plain_) return BatchNormalizationReference::run(inputs, outputs, workspace);
        const float* factors = factors_.data();
        const float* terms = terms_.data();
        const std::size_t period = repeats_ * static_cast<std::size_t>(shape().channels);
        if (factors_.empty() && period > 0) {
            auto* scratch = reinterpret_cast<float*>(workspace.scratch.data());
            fill(inputs[1].as<float>().data(), inputs[2].as<float>().data(), inputs[3].as<float>().data(),
                 inputs[4].as<float>().data(), scratch, scratch + period);
            factors = scratch;
            terms = scratch + period;
        }
        apply(inputs[0].as<float>(), factors, terms, period, outputs[0].as<float>().data());
    }

  private:
    static constexpr std::size_t least_period = 256;

    void fill(const float* scale, const float* bias, const float* mean, const float* variance, float* factors,
              float* terms) const {
        const auto channels = static_cast<std::size_t>(shape().channels);
        for (std::size_t c = 0; c < channels; ++c) {
            const auto [factor, term] = factor_and_term<float>(scale[c], bias[c], mean[c], variance[c]);
            for (std::size_t r = 0; r < repeats_; ++r) {
                factors[r * channels + c] = static_cast<float>(factor);
                terms[r * channels + c] = static_cast<float>(term);
            }
        }
    }

    void apply(std::span<const float> x, const float* factors, const float* terms, std::size_t period,
               float* y) const {
        if (shape().channel_step == 1) {
            if (period > 0) scale_and_shift(x.data(), factors, terms, period, y, x.size());
            return;
        }
        const auto channels = static_cast<std::size_t>(shape().channels);
        const auto pixels = static_cast<std::size_t>(shape().pixels);
        for (std::size_t row = 0; row * pixels < x.size(); ++row) {
            const std::size_t c = row % channels;
            scale_and_shift(x.data() + row * pixels, factors[c], terms[c], y + row * pixels, pixels);
        }
    }

    bool plain_ = false;
    std::size_t repeats_ = 1;
    std::vector<float> factors_;  // empty: made from the inputs in each run
    std::vector<float> terms_;
};

}  // namespace

void register_batch_normalization(KernelRegistry& registry) {
    registry.add(
        {.domain = "",
         .op_type = "BatchNormalization",
         .since = 7,
         .summary = "normalization per channel with given (or, training, the batch's) mean and variance",
         .make = make_kernel<BatchNormalization>,
         .make_reference = make_kernel<BatchNormalizationReference>});
}

}  // namespace qcalib
