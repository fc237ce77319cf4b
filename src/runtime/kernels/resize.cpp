// Resize and Upsample: nearest elements are copied by an index map; linear and cubic ones are blended.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/index_map.h"
#include "runtime/kernels/resize_geometry.h"

namespace qcalib {

namespace {

// A blended number as an element. Integers are cut towards zero and held to their range; what misses a whole
// number by no more than rounding does is that number.
template <typename T, typename Number>
T to_element(Number value) {
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(value);
    } else {
        constexpr auto lowest = static_cast<Number>(std::numeric_limits<T>::lowest());
        constexpr auto highest = static_cast<Number>(std::numeric_limits<T>::max());
        const Number whole = std::round(value);
        if (std::abs(value - whole) <= Number(1e-5) * std::max(Number(1), std::abs(whole))) value = whole;
        if (value >= highest) return std::numeric_limits<T>::max();
        return value > lowest ? static_cast<T>(value) : std::numeric_limits<T>::lowest();
    }
}

// What a Resize does once its geometry is known; made in prepare().
class Resampler {
  public:
    virtual ~Resampler() = default;
    virtual std::size_t scratch_bytes() const { return 0; }
    virtual void run(const std::byte* source, std::byte* target, std::byte* scratch) const = 0;
};

template <typename T>
void put_element(float value, std::byte* target) {
    const T element = to_element<T>(value);
    std::memcpy(target, &element, sizeof(T));
}

void extrapolation_element(DataType type, float value, std::byte* target) {
    switch (type) {
        case DataType::float32:
            return put_element<float>(value, target);
        case DataType::float64:
            return put_element<double>(value, target);
        case DataType::int8:
            return put_element<std::int8_t>(value, target);
        case DataType::boolean:
        case DataType::uint8:
            return put_element<std::uint8_t>(value, target);
        case DataType::int16:
            return put_element<std::int16_t>(value, target);
        case DataType::uint16:
            return put_element<std::uint16_t>(value, target);
        case DataType::int32:
            return put_element<std::int32_t>(value, target);
        case DataType::uint32:
            return put_element<std::uint32_t>(value, target);
        case DataType::uint64:
            return put_element<std::uint64_t>(value, target);
        default:
            return put_element<std::int64_t>(value, target);
    }
}

template <typename Copy>
class NearestResampler : public Resampler {
  public:
    NearestResampler(const TensorDescriptor& input, const ResizeGeometry& geometry) {
        std::vector<std::vector<std::int64_t>> indices;
        for (const ResizeAxis& axis : geometry.axes) {
            indices.push_back(axis.identity ? identity_indices(axis.source_size) : axis.indices);
            for (std::size_t i = 0; i < axis.outside.size(); ++i) {
                if (axis.outside[i] != 0) indices.back()[i] = IndexMap::outside;
            }
        }
        copy_ = Copy(map_axes(input, indices), size_of(input.type));
        extrapolation_element(input.type, geometry.extrapolation_value, fill_);
    }

    void run(const std::byte* source, std::byte* target, std::byte* /*scratch*/) const override {
        copy_.run(source, target, fill_);
    }

  private:
    Copy copy_;
    std::byte fill_[8] = {};
};

// Rows along the last resized axis in memory: the rows of the source that a row of the target lies between
// are first blended into scratch memory, then the target's row is blended from that. What lies inside that
// axis, the channels of a channels-last tensor, is blended as a vector.
template <typename T>
class RowBlender : public Resampler {
  public:
    using Number = std::conditional_t<std::is_same_v<T, double>, double, float>;

    RowBlender(const TensorDescriptor& input, const ResizeGeometry& geometry)
        : extrapolation_(to_element<T>(geometry.extrapolation_value)) {
        const std::vector<std::int64_t> strides = element_strides(input);
        for (const std::size_t axis : memory_axes(input)) {
            axes_.push_back(geometry.axes[axis]);
            source_strides_.push_back(static_cast<std::size_t>(strides[axis]));
        }
        while (axes_.size() > 1 && axes_.back().identity) {
            inner_ *= static_cast<std::size_t>(axes_.back().source_size);
            axes_.pop_back();
            source_strides_.pop_back();
        }
        row_elements_ = static_cast<std::size_t>(axes_.back().source_size) * inner_;
        std::size_t block = inner_;
        target_strides_.resize(axes_.size());
        for (std::size_t axis = axes_.size(); axis-- > 0;) {
            target_strides_[axis] = block;
            block *= static_cast<std::size_t>(axes_[axis].target_size);
        }
        empty_ = block == 0 || input.elements() == 0;
    }

    std::size_t scratch_bytes() const override { return row_elements_ * sizeof(Number); }

    void run(const std::byte* source, std::byte* target, std::byte* scratch) const override {
        if (empty_) return;
        visit(0, {reinterpret_cast<const T*>(source), nullptr, 0, 1}, reinterpret_cast<T*>(target),
              reinterpret_cast<Number*>(scratch));
    }

  private:
    // The source rows that the target row in work is blended from: a start and, for each outer axis decided
    // so far, the taps it chose.
    struct Choice {
        const T* source = nullptr;
        const Choice* before = nullptr;
        std::size_t axis = 0;
        std::size_t taps = 1;
        const std::int64_t* indices = nullptr;
        const float* weights = nullptr;
    };

    void visit(std::size_t axis, const Choice& choice, T* target, Number* scratch) const {
        if (axis + 1 == axes_.size()) {
            make_row(choice, target, scratch);
            return;
        }
        const ResizeAxis& at = axes_[axis];
        for (std::int64_t i = 0; i < at.target_size; ++i, target += target_strides_[axis]) {
            const auto index = static_cast<std::size_t>(i);
            if (at.identity) {
                Choice next = choice;
                next.source += index * source_strides_[axis];
                visit(axis + 1, next, target, scratch);
            } else if (at.outside[index] != 0) {
                std::fill_n(target, target_strides_[axis], extrapolation_);
            } else {
                const Choice next{choice.source,
                                  &choice,
                                  axis,
                                  at.taps,
                                  at.indices.data() + index * at.taps,
                                  at.weights.data() + index * at.taps};
                visit(axis + 1, next, target, scratch);
            }
        }
    }

    void make_row(const Choice& choice, T* target, Number* scratch) const {
        const bool one_row = choice.indices == nullptr && choice.before == nullptr;
        if constexpr (std::is_same_v<T, Number>) {
            if (one_row) return finish_row(choice.source, target);
        }
        if (one_row) {
            std::copy_n(choice.source, row_elements_, scratch);
        } else {
            bool first = true;
            add_rows(&choice, choice.source, 1, scratch, first);
        }
        finish_row(scratch, target);
    }

    // Adds up, in `row`, the source rows of all combinations of the taps chosen.
    void add_rows(const Choice* choice, const T* source, float weight, Number* row, bool& first) const {
        if (choice == nullptr || choice->indices == nullptr) {
            const auto factor = static_cast<Number>(weight);
            if (first) {
                for (std::size_t i = 0; i < row_elements_; ++i)
                    row[i] = factor * static_cast<Number>(source[i]);
            } else {
                for (std::size_t i = 0; i < row_elements_; ++i)
                    row[i] += factor * static_cast<Number>(source[i]);
            }
            first = false;
            return;
        }
        for (std::size_t tap = 0; tap < choice->taps; ++tap) {
            const auto index = static_cast<std::size_t>(choice->indices[tap]);
            add_rows(choice->before, source + index * source_strides_[choice->axis],
                     weight * choice->weights[tap], row, first);
        }
    }

    void finish_row(const Number* row, T* target) const {
        const ResizeAxis& axis = axes_.back();
        if (axis.identity) {
            std::transform(row, row + row_elements_, target, to_element<T, Number>);
        } else if (axis.taps == 2) {
            finish_taps<2>(row, target);
        } else {
            finish_taps<4>(row, target);
        }
    }

    template <std::size_t taps>
    void finish_taps(const Number* row, T* target) const {
        const ResizeAxis& axis = axes_.back();
        const auto count = static_cast<std::size_t>(axis.target_size);
        if (inner_ == 1) {
            finish_single<taps>(row, target);
            return;
        }
        for (std::size_t i = 0; i < count; ++i, target += inner_) {
            if (axis.outside[i] != 0) {
                std::fill_n(target, inner_, extrapolation_);
                continue;
            }
            const std::int64_t* indices = axis.indices.data() + i * taps;
            const float* weights = axis.weights.data() + i * taps;
            const Number* from[taps];
            Number factor[taps];
            for (std::size_t tap = 0; tap < taps; ++tap) {
                from[tap] = row + static_cast<std::size_t>(indices[tap]) * inner_;
                factor[tap] = static_cast<Number>(weights[tap]);
            }
            for (std::size_t c = 0; c < inner_; ++c) {
                Number sum = factor[0] * from[0][c];
                for (std::size_t tap = 1; tap < taps; ++tap) sum += factor[tap] * from[tap][c];
                target[c] = to_element<T>(sum);
            }
        }
    }

    // finish_taps() for vectors of one element.
    template <std::size_t taps>
    void finish_single(const Number* row, T* target) const {
        const ResizeAxis& axis = axes_.back();
        const std::int64_t* indices = axis.indices.data();
        const float* weights = axis.weights.data();
        for (std::size_t i = 0; i < axis.outside.size(); ++i, indices += taps, weights += taps) {
            Number sum = static_cast<Number>(weights[0]) * row[indices[0]];
            for (std::size_t tap = 1; tap < taps; ++tap)
                sum += static_cast<Number>(weights[tap]) * row[indices[tap]];
            target[i] = axis.outside[i] != 0 ? extrapolation_ : to_element<T>(sum);
        }
    }

    std::vector<ResizeAxis> axes_;  // outermost in memory first; the last is resized, unless none is
    std::vector<std::size_t> source_strides_;
    std::vector<std::size_t> target_strides_;  // elements below one index of the target
    std::size_t inner_ = 1;
    std::size_t row_elements_ = 0;
    T extrapolation_;
    bool empty_ = false;
};

// Each element of the target on its own: the sum over the taps of all axes, in double.
template <typename T>
class ElementBlender : public Resampler {
  public:
    ElementBlender(const TensorDescriptor& input, const ResizeGeometry& geometry)
        : geometry_(geometry),
          strides_(element_strides(input)),
          elements_(element_count(geometry.target_shape())) {}

    void run(const std::byte* source, std::byte* target, std::byte* /*scratch*/) const override {
        auto* to = reinterpret_cast<T*>(target);
        for (std::int64_t i = 0; i < elements_; ++i) {
            bool outside = false;
            const double value = blend(geometry_.axes.size(), i, reinterpret_cast<const T*>(source), outside);
            to[i] = outside ? to_element<T>(geometry_.extrapolation_value) : to_element<T>(value);
        }
    }

  private:
    // `position` is what is left of the element's index for the first `axes` axes.
    double blend(std::size_t axes, std::int64_t position, const T* source, bool& outside) const {
        if (axes == 0) return static_cast<double>(*source);
        const ResizeAxis& axis = geometry_.axes[axes - 1];
        const std::int64_t stride = strides_[axes - 1];
        const std::int64_t at = position % axis.target_size;
        const std::int64_t rest = position / axis.target_size;
        if (axis.identity) return blend(axes - 1, rest, source + at * stride, outside);
        const auto index = static_cast<std::size_t>(at);
        if (axis.outside[index] != 0) outside = true;
        double sum = 0;
        for (std::size_t tap = index * axis.taps; tap < (index + 1) * axis.taps; ++tap) {
            sum += axis.weights[tap] * blend(axes - 1, rest, source + axis.indices[tap] * stride, outside);
        }
        return sum;
    }

    ResizeGeometry geometry_;
    std::vector<std::int64_t> strides_;
    std::int64_t elements_ = 0;
};

template <template <typename> typename Blender>
std::unique_ptr<Resampler> make_blender(const NodeContext& context, const ResizeGeometry& geometry) {
    const TensorDescriptor& input = context.input(0);
    switch (input.type) {
        case DataType::float32:
            return std::make_unique<Blender<float>>(input, geometry);
        case DataType::float64:
            return std::make_unique<Blender<double>>(input, geometry);
        case DataType::int8:
            return std::make_unique<Blender<std::int8_t>>(input, geometry);
        case DataType::uint8:
            return std::make_unique<Blender<std::uint8_t>>(input, geometry);
        case DataType::int32:
            return std::make_unique<Blender<std::int32_t>>(input, geometry);
        default:
            break;
    }
    context.refuse(
        fmt::format("expected float, int8, uint8 or int32 elements to blend, found {}", name_of(input.type)));
}

template <typename Copy, template <typename> typename Blender>
class Resize : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return Copy::any_order ? first_channels_last(context) : all_row_major(context);
    }

    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        const ResizeGeometry geometry = resize_geometry(context);
        if (geometry.mode == ResizeMode::nearest || input.rank() == 0) {
            resampler_ = std::make_unique<NearestResampler<Copy>>(input, geometry);
        } else {
            resampler_ = make_blender<Blender>(context, geometry);
        }
        Prepared prepared;
        prepared.outputs = {{input.type, geometry.target_shape(), input.order}};
        prepared.scratch_bytes = resampler_->scratch_bytes();
        const bool unchanged = std::all_of(geometry.axes.begin(), geometry.axes.end(),
                                           [](const ResizeAxis& axis) { return axis.identity; });
        if (Copy::any_order && unchanged) prepared.view_of = 0;
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        resampler_->run(inputs[0].data, outputs[0].data, workspace.scratch.data());
    }

  private:
    std::unique_ptr<Resampler> resampler_;
};

}  // namespace

void register_resize(KernelRegistry& registry) {
    const auto add = [&](const char* name, std::int64_t since, std::vector<std::size_t> value_inputs) {
        registry.add({.domain = "",
                      .op_type = name,
                      .since = since,
                      .summary = "the axes resampled: nearest, linear or cubic",
                      .value_inputs = std::move(value_inputs),
                      .make = make_kernel<Resize<RunCopy, RowBlender>>,
                      .make_reference = make_kernel<Resize<ElementCopy, ElementBlender>>});
    };
    add("Upsample", 7, {});
    add("Upsample", 9, {1});
    add("Resize", 10, {1});
    for (const std::int64_t since : {11, 18})
        add("Resize", since, {1, 2, 3});  // 18: axes, aspect ratio policies
}

}  // namespace qcalib
