#include "runtime/kernels/circle_axis_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "runtime/kernels/axes.h"
#include "runtime/kernels/indices.h"

namespace qcalib {

namespace {

// A tensor as [outer, axis, inner].
struct AxisExtents {
    std::size_t outer = 1;
    std::size_t axis = 1;
    std::size_t inner = 1;
};

AxisExtents extents_around(const Shape& shape, std::size_t axis) {
    const std::span<const std::int64_t> all(shape);
    return {static_cast<std::size_t>(element_count(all.first(axis))), static_cast<std::size_t>(shape[axis]),
            static_cast<std::size_t>(element_count(all.subspan(axis + 1)))};
}

// Calls `visit` with a number of the element type; false where it is no type of numbers that is compared and
// added up here.
template <typename Visit>
bool with_axis_type(DataType type, const Visit& visit) {
    switch (type) {
        case DataType::float32:
            visit(float{});
            return true;
        case DataType::float64:
            visit(double{});
            return true;
        case DataType::int8:
            visit(std::int8_t{});
            return true;
        case DataType::uint8:
            visit(std::uint8_t{});
            return true;
        case DataType::int16:
            visit(std::int16_t{});
            return true;
        case DataType::int32:
            visit(std::int32_t{});
            return true;
        case DataType::int64:
            visit(std::int64_t{});
            return true;
        default:
            return false;
    }
}

void require_axis_type(const NodeContext& context) {
    if (with_axis_type(context.input(0).type, [](auto) {})) return;
    context.refuse(fmt::format("expected numbers, found {}", name_of(context.input(0).type)));
}

class LocalResponse : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        const auto number = [&](std::string_view name) {
            return static_cast<double>(context.node.attribute<float>(name, 0));
        };
        if (!is_floating(input.type) || input.rank() == 0) {
            context.refuse(fmt::format("expected float channels, found {} {}", name_of(input.type),
                                       to_string(input.shape)));
        }
        bias_ = number("bias");
        alpha_ = number("alpha");
        beta_ = number("beta");
        radius_ = std::max<std::int64_t>(0, context.node.attribute<std::int64_t>("radius", 0));
        channels_ = input.shape.back();
        Prepared prepared;
        prepared.outputs = {input};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        if (inputs[0].descriptor->type == DataType::float64) {
            normalize(inputs[0].as<double>(), outputs[0].as<double>());
        } else {
            normalize(inputs[0].as<float>(), outputs[0].as<float>());
        }
    }

  private:
    template <typename T>
    void normalize(std::span<const T> x, std::span<T> y) const {
        const auto channels = static_cast<std::size_t>(channels_);
        for (std::size_t start = 0; channels > 0 && start < x.size(); start += channels) {
            for (std::int64_t c = 0; c < channels_; ++c) {
                double squares = 0;
                const std::int64_t last =
                    std::min(channels_ - 1, radius_ > channels_ ? channels_ : c + radius_);
                for (std::int64_t near = std::max<std::int64_t>(0, c - radius_); near <= last; ++near) {
                    const double value = x[start + static_cast<std::size_t>(near)];
                    squares += value * value;
                }
                const std::size_t at = start + static_cast<std::size_t>(c);
                y[at] = static_cast<T>(x[at] * std::pow(bias_ + alpha_ * squares, -beta_));
            }
        }
    }

    double bias_ = 0;
    double alpha_ = 0;
    double beta_ = 0;
    std::int64_t radius_ = 0;
    std::int64_t channels_ = 0;
};

class CumulativeSum : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        require_axis_type(context);
        extents_ = extents_around(
            input.shape,
            resolve_axis(context, context.node.attribute<std::int64_t>("axis", 0), input.rank()));
        exclusive_ = context.node.attribute<std::int64_t>("exclusive", 0) != 0;
        reverse_ = context.node.attribute<std::int64_t>("reverse", 0) != 0;
        Prepared prepared;
        prepared.outputs = {input};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        with_axis_type(inputs[0].descriptor->type, [&]<typename T>(T) {
            const std::span<const T> x = inputs[0].as<T>();
            const std::span<T> y = outputs[0].as<T>();
            for (std::size_t i = 0; i < extents_.outer * extents_.inner; ++i) {
                const std::size_t start =
                    i / extents_.inner * extents_.axis * extents_.inner + i % extents_.inner;
                T sum = 0;
                for (std::size_t j = 0; j < extents_.axis; ++j) {
                    const std::size_t at = start + (reverse_ ? extents_.axis - 1 - j : j) * extents_.inner;
                    if (exclusive_) y[at] = sum;
                    sum = static_cast<T>(sum + x[at]);
                    if (!exclusive_) y[at] = sum;
                }
            }
        });
    }

  private:
    AxisExtents extents_;
    bool exclusive_ = false;
    bool reverse_ = false;
};

class ExtremeIndex : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        require_axis_type(context);
        const std::size_t axis =
            resolve_axis(context, context.node.attribute<std::int64_t>("axis", 0), input.rank());
        extents_ = extents_around(input.shape, axis);
        if (extents_.axis == 0) context.refuse("expected elements along its axis, found none");
        greatest_ = context.node.attribute<std::int64_t>("greatest", 1) != 0;
        const bool wide = context.node.attribute<std::int64_t>("wide", 1) != 0;
        TensorDescriptor output{wide ? DataType::int64 : DataType::int32, input.shape,
                                MemoryOrder::row_major};
        output.shape.erase(output.shape.begin() + static_cast<std::ptrdiff_t>(axis));
        Prepared prepared;
        prepared.outputs = {output};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        with_axis_type(inputs[0].descriptor->type, [&]<typename T>(T) {
            const std::span<const T> x = inputs[0].as<T>();
            for (std::size_t i = 0; i < extents_.outer * extents_.inner; ++i) {
                const std::size_t start =
                    i / extents_.inner * extents_.axis * extents_.inner + i % extents_.inner;
                std::size_t best = 0;
                for (std::size_t j = 1; j < extents_.axis; ++j) {
                    const T one = x[start + j * extents_.inner];
                    const T other = x[start + best * extents_.inner];
                    if (greatest_ ? one > other : one < other) best = j;
                }
                if (outputs[0].descriptor->type == DataType::int64) {
                    outputs[0].as<std::int64_t>()[i] = static_cast<std::int64_t>(best);
                } else {
                    outputs[0].as<std::int32_t>()[i] = static_cast<std::int32_t>(best);
                }
            }
        });
    }

  private:
    AxisExtents extents_;
    bool greatest_ = true;
};

class Top : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        require_axis_type(context);
        if (input.rank() == 0) context.refuse("expected a tensor with an axis, found a scalar");
        extents_ = extents_around(input.shape, input.rank() - 1);
        const auto k = context.node.attribute<std::int64_t>("k", 0);
        if (k < 0 || k > input.shape.back()) {
            context.refuse(fmt::format("expected 0 to {} elements to take, found {}", input.shape.back(), k));
        }
        k_ = static_cast<std::size_t>(k);
        Prepared prepared;
        prepared.outputs = {input, input};
        prepared.outputs[0].shape.back() = k;
        prepared.outputs[1] = {DataType::int32, prepared.outputs[0].shape, MemoryOrder::row_major};
        prepared.scratch_bytes = extents_.axis * sizeof(std::int32_t);
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        const std::span order(reinterpret_cast<std::int32_t*>(workspace.scratch.data()), extents_.axis);
        with_axis_type(inputs[0].descriptor->type, [&]<typename T>(T) {
            for (std::size_t row = 0; row < extents_.outer; ++row) {
                const std::span<const T> x = inputs[0].as<T>().subspan(row * extents_.axis, extents_.axis);
                std::iota(order.begin(), order.end(), 0);
                std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k_), order.end(),
                                  [&](std::int32_t a, std::int32_t b) {
                                      const T of_a = x[static_cast<std::size_t>(a)];
                                      const T of_b = x[static_cast<std::size_t>(b)];
                                      return of_a > of_b || (!(of_b > of_a) && a < b);
                                  });
                for (std::size_t i = 0; i < k_; ++i) {
                    if (outputs[0].data != nullptr) {
                        outputs[0].as<T>()[row * k_ + i] = x[static_cast<std::size_t>(order[i])];
                    }
                    if (outputs[1].data != nullptr) outputs[1].as<std::int32_t>()[row * k_ + i] = order[i];
                }
            }
        });
    }

  private:
    AxisExtents extents_;
    std::size_t k_ = 0;
};

class OneHot : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        require_index_type(context, 0);
        const TensorDescriptor& on = context.input(1);
        if (on.elements() != 1 || context.input(2).elements() != 1 || context.input(2).type != on.type) {
            context.refuse("expected one number each for the place of the index and for the others");
        }
        TensorDescriptor output{on.type, context.input(0).shape, MemoryOrder::row_major};
        const std::size_t axis =
            resolve_axis(context, context.node.attribute<std::int64_t>("axis", -1), output.rank() + 1);
        const auto depth = context.node.attribute<std::int64_t>("depth", 0);
        if (depth < 0) context.refuse(fmt::format("expected a depth of 0 or more, found {}", depth));
        output.shape.insert(output.shape.begin() + static_cast<std::ptrdiff_t>(axis), depth);
        static_cast<void>(output.elements());
        extents_ = extents_around(output.shape, axis);
        Prepared prepared;
        prepared.outputs = {output};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const std::size_t size = size_of(inputs[1].descriptor->type);
        visit_indices(inputs[0], [&](auto indices) {
            for (std::size_t i = 0; i < indices.size(); ++i) {
                for (std::size_t j = 0; j < extents_.axis; ++j) {
                    const bool here = std::cmp_equal(indices[i], j);
                    const std::size_t at =
                        (i / extents_.inner * extents_.axis + j) * extents_.inner + i % extents_.inner;
                    std::memcpy(outputs[0].data + at * size, inputs[here ? 1 : 2].data, size);
                }
            }
        });
    }

  private:
    AxisExtents extents_;
};

}  // namespace

std::unique_ptr<Kernel> make_local_response_kernel() {
    return std::make_unique<LocalResponse>();
}
std::unique_ptr<Kernel> make_cumulative_sum_kernel() {
    return std::make_unique<CumulativeSum>();
}
std::unique_ptr<Kernel> make_extreme_index_kernel() {
    return std::make_unique<ExtremeIndex>();
}
std::unique_ptr<Kernel> make_top_kernel() {
    return std::make_unique<Top>();
}
std::unique_ptr<Kernel> make_one_hot_kernel() {
    return std::make_unique<OneHot>();
}

}  // namespace qcalib
