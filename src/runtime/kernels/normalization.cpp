#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/broadcast.h"
#include "runtime/kernels/normalization_rows.h"
#include "runtime/kernels/reduce_rows.h"

namespace qcalib {

namespace {

void check_float_types(const NodeContext& context) {
    for (std::size_t i = 0; i < context.input_count(); ++i) {
        if (!context.has_input(i)) continue;
        const DataType type = context.input(i).type;
        if ((type != DataType::float32 && type != DataType::float64) || type != context.input(0).type) {
            context.refuse(
                fmt::format("expected inputs of one float type, found {} as input {}", name_of(type), i));
        }
    }
}

double epsilon_of(const NodeContext& context) {
    return static_cast<double>(context.node.attribute<float>("epsilon", 1e-5F));
}

// In double: mean and 1 / sqrt(variance + epsilon) of elements that lie one after the other.
template <typename T>
std::pair<double, double> plain_moments(const T* in, std::size_t count, double epsilon) {
    double mean = 0;
    for (std::size_t i = 0; i < count; ++i) mean += in[i];
    mean /= static_cast<double>(count);
    double variance = 0;
    for (std::size_t i = 0; i < count; ++i) variance += (in[i] - mean) * (in[i] - mean);
    return {mean, 1 / std::sqrt(variance / static_cast<double>(count) + epsilon)};
}

class LayerNormalizationKernel : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        if (!context.has_input(0) || !context.has_input(1)) {
            context.refuse("expected an input and its scale, found fewer inputs");
        }
        check_float_types(context);
        const TensorDescriptor& input = context.input(0);
        const std::size_t axis =
            resolve_axis(context, context.node.attribute<std::int64_t>("axis", -1), input.rank());
        const Shape normalized(input.shape.begin() + static_cast<std::ptrdiff_t>(axis), input.shape.end());
        epsilon_ = epsilon_of(context);
        columns_ = static_cast<std::size_t>(element_count(normalized));
        rows_ = static_cast<std::size_t>(element_count(std::span(input.shape).first(axis)));
        Prepared prepared;
        prepared.outputs = {input};
        prepared.in_place = {0};
        TensorDescriptor statistics = input;
        std::fill(statistics.shape.begin() + static_cast<std::ptrdiff_t>(axis), statistics.shape.end(), 1);
        while (prepared.outputs.size() < context.node.outputs.size()) prepared.outputs.push_back(statistics);
        scale_ = spread_of(context, 1, normalized, prepared.scratch_bytes);
        if (context.has_input(2)) bias_ = spread_of(context, 2, normalized, prepared.scratch_bytes);
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (inputs[0].descriptor->type == DataType::float32) {
            run_as<float>(inputs, outputs, workspace);
        } else {
            run_as<double>(inputs, outputs, workspace);
        }
    }

  protected:
    // How scale or bias come to one element per column: as they are, or repeated into scratch memory.
    struct Spread {
        std::optional<Broadcast> repeated;
        std::size_t scratch_offset = 0;
    };

    template <typename T>
    const T* spread(const Spread& how, TensorView view, Workspace& workspace) const {
        const T* from = view.as<T>().data();
        if (!how.repeated) return from;
        auto* to = reinterpret_cast<T*>(workspace.scratch.data() + how.scratch_offset);
        const Broadcast::Loop& rows = how.repeated->rows();
        const Broadcast::Loop& columns = how.repeated->columns();
        how.repeated->for_each_block([&](std::size_t element, const Broadcast::Steps& at) {
            for (std::size_t row = 0; row < rows.extent; ++row) {
                for (std::size_t column = 0; column < columns.extent; ++column) {
                    to[element++] = from[at[0] + static_cast<std::ptrdiff_t>(row) * rows.steps[0] +
                                         static_cast<std::ptrdiff_t>(column) * columns.steps[0]];
                }
            }
        });
        return to;
    }

    virtual void normalize(const float* in, float* out, const float* scale, const float* bias,
                           Moments& moments) const {
        normalize_plain(in, out, scale, bias, moments.mean, moments.inverse_deviation);
    }

    double epsilon_ = 0;
    std::size_t rows_ = 0;
    std::size_t columns_ = 0;

  private:
    static Spread spread_of(const NodeContext& context, std::size_t input, const Shape& normalized,
                            std::size_t& scratch_bytes) {
        const TensorDescriptor& given = context.input(input);
        if (broadcast_shapes(given.shape, normalized) != normalized) {
            context.refuse(fmt::format("expected an input {} that broadcasts to {}, found {}", input,
                                       to_string(normalized), to_string(given.shape)));
        }
        Spread result;
        const TensorDescriptor columns{given.type, normalized, MemoryOrder::row_major};
        if (given.elements() == columns.elements()) return result;
        result.repeated = Broadcast::over(columns, std::span(&given, 1));
        result.scratch_offset = scratch_bytes;
        scratch_bytes += (columns.bytes() + 63) / 64 * 64;
        return result;
    }

    template <typename T>
    void normalize_plain(const T* in, T* out, const T* scale, const T* bias, T& mean_out,
                         T& inverse_out) const {
        const auto [mean, inverse] = plain_moments(in, columns_, epsilon_);
        for (std::size_t i = 0; i < columns_; ++i) {
            const double normal = (in[i] - mean) * inverse * scale[i];
            out[i] = static_cast<T>(bias == nullptr ? normal : normal + bias[i]);
        }
        mean_out = static_cast<T>(mean);
        inverse_out = static_cast<T>(inverse);
    }

    template <typename T>
    void run_as(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
                Workspace& workspace) const {
        const T* in = inputs[0].as<T>().data();
        T* out = outputs[0].as<T>().data();
        const T* scale = spread<T>(scale_, inputs[1], workspace);
        const T* bias = bias_ ? spread<T>(*bias_, inputs[2], workspace) : nullptr;
        const auto statistic = [&](std::size_t i) -> T* {
            return i < outputs.size() && outputs[i].data != nullptr ? outputs[i].as<T>().data() : nullptr;
        };
        T* const means = statistic(1);
        T* const inverses = statistic(2);
        for (std::size_t row = 0; row < rows_; ++row) {
            T mean = 0;
            T inverse = 0;
            if constexpr (std::is_same_v<T, float>) {
                Moments moments;
                normalize(in + row * columns_, out + row * columns_, scale, bias, moments);
                mean = moments.mean + moments.correction;
                inverse = moments.inverse_deviation;
            } else {
                normalize_plain(in + row * columns_, out + row * columns_, scale, bias, mean, inverse);
            }
            if (means != nullptr) means[row] = mean;
            if (inverses != nullptr) inverses[row] = inverse;
        }
    }

    Spread scale_;
    std::optional<Spread> bias_;
};

class FastLayerNormalizationKernel : public LayerNormalizationKernel {
  protected:
    void normalize(const float* in, float* out, const float* scale, const float* bias,
                   Moments& moments) const override {
        moments = functions_.moments(in, columns_, epsilon_);
        functions_.apply_along_row(in, out, columns_, moments, scale, bias);
    }

  private:
    NormalizationFunctions functions_ = fast_normalization();
};

class InstanceNormalizationKernel : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        if (!context.has_input(0) || !context.has_input(1) || !context.has_input(2)) {
            context.refuse("expected an input, scales and biases, found fewer inputs");
        }
        check_float_types(context);
        const TensorDescriptor& input = context.input(0);
        if (input.rank() < 2) {
            context.refuse(
                fmt::format("expected an input with channels, found shape {}", to_string(input.shape)));
        }
        for (std::size_t i = 1; i < 3; ++i) {
            if (context.input(i).elements() != static_cast<std::size_t>(input.shape[1])) {
                context.refuse(
                    fmt::format("expected input {} with one element for each of {} channels, found {}", i,
                                input.shape[1], to_string(context.input(i).shape)));
            }
        }
        epsilon_ = epsilon_of(context);
        batch_ = static_cast<std::size_t>(input.shape[0]);
        channels_ = static_cast<std::size_t>(input.shape[1]);
        pixels_ = static_cast<std::size_t>(element_count(std::span(input.shape).subspan(2)));
        Prepared prepared;
        prepared.outputs = {input};
        prepared.in_place = {0};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        if (inputs[0].descriptor->type == DataType::float32) {
            run_plain<float>(inputs, outputs);
        } else {
            run_plain<double>(inputs, outputs);
        }
    }

  protected:
    double epsilon_ = 0;
    std::size_t batch_ = 0;
    std::size_t channels_ = 0;
    std::size_t pixels_ = 0;

  private:
    template <typename T>
    void run_plain(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) const {
        const T* in = inputs[0].as<T>().data();
        T* out = outputs[0].as<T>().data();
        for (std::size_t plane = 0; plane < batch_ * channels_; ++plane) {
            const double scale = inputs[1].as<T>()[plane % channels_];
            const double bias = inputs[2].as<T>()[plane % channels_];
            const auto [mean, inverse] = plain_moments(in, pixels_, epsilon_);
            for (std::size_t i = 0; i < pixels_; ++i)
                out[i] = static_cast<T>((in[i] - mean) * inverse * scale + bias);
            in += pixels_;
            out += pixels_;
        }
    }
};

class FastInstanceNormalizationKernel : public InstanceNormalizationKernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return keep_first_order(context);
    }

    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = InstanceNormalizationKernel::prepare(context);
        const TensorDescriptor& input = context.input(0);
        channels_last_ = input.order == MemoryOrder::channels_last && !same_in_both_orders(input.shape);
        if (channels_last_) prepared.scratch_bytes = 3 * channels_ * sizeof(float);
        if (input.type != DataType::float32) context.refuse("expected float32 inputs");
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        const float* in = inputs[0].as<float>().data();
        float* out = outputs[0].as<float>().data();
        const std::span<const float> scales = inputs[1].as<float>();
        const std::span<const float> biases = inputs[2].as<float>();
        const std::size_t image = channels_ * pixels_;
        for (std::size_t n = 0; n < batch_; ++n) {
            if (channels_last_) {
                run_columns(in + n * image, out + n * image, scales, biases, workspace);
            } else {
                run_planes(in + n * image, out + n * image, scales, biases);
            }
        }
    }

  private:
    void run_planes(const float* in, float* out, std::span<const float> scales,
                    std::span<const float> biases) const {
        for (std::size_t c = 0; c < channels_; ++c) {
            const Moments moments = functions_.moments(in + c * pixels_, pixels_, epsilon_);
            functions_.apply(in + c * pixels_, out + c * pixels_, pixels_, moments, scales[c], biases[c]);
        }
    }

    void run_columns(const float* in, float* out, std::span<const float> scales,
                     std::span<const float> biases, Workspace& workspace) const {
        auto* scratch = reinterpret_cast<float*>(workspace.scratch.data());
        const std::span<float> means(scratch, channels_);
        const std::span<float> factors(scratch + channels_, channels_);     // first the sums of squares
        const std::span<float> shifts(scratch + 2 * channels_, channels_);  // first the sums of distances
        std::fill(scratch, scratch + 3 * channels_, 0.0F);
        sum_.along_columns(in, means.data(), pixels_, channels_);
        for (float& mean : means) mean /= static_cast<float>(pixels_);
        functions_.column_distances(in, pixels_, channels_, means.data(), shifts.data(), factors.data());
        for (std::size_t c = 0; c < channels_; ++c) {
            const double correction = shifts[c] / static_cast<double>(pixels_);
            const double variance =
                std::max(0.0, factors[c] / static_cast<double>(pixels_) - correction * correction);
            const double factor = scales[c] / std::sqrt(variance + epsilon_);
            factors[c] = static_cast<float>(factor);
            shifts[c] = static_cast<float>(biases[c] - correction * factor);
        }
        functions_.apply_to_columns(in, out, pixels_, channels_, means.data(), factors.data(), shifts.data());
    }

    bool channels_last_ = false;
    NormalizationFunctions functions_ = fast_normalization();
    ReduceFunctions sum_ = fast_reduction(Reduction::sum);
};

void add(KernelRegistry& registry, const char* name, std::int64_t since, const char* summary,
         std::unique_ptr<Kernel> (*make)(), std::unique_ptr<Kernel> (*make_reference)()) {
    OperatorEntry entry;
    entry.op_type = name;
    entry.since = since;
    entry.summary = summary;
    entry.make = make;
    entry.make_reference = make_reference;
    registry.add(std::move(entry));
}

}  // namespace

void register_normalization(KernelRegistry& registry) {
    add(registry, "LayerNormalization", 17,
        "mean 0 and variance 1 over the axes from `axis` on, scaled and shifted",
        make_kernel<FastLayerNormalizationKernel>, make_kernel<LayerNormalizationKernel>);
    add(registry, "InstanceNormalization", 6,
        "mean 0 and variance 1 over each channel's pixels, scaled and shifted",
        make_kernel<FastInstanceNormalizationKernel>, make_kernel<InstanceNormalizationKernel>);
}

}  // namespace qcalib
