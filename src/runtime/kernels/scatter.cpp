// ScatterND and ScatterElements: a copy of the data with updates written to, or combined at, given places.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/indices.h"

namespace qcalib {

namespace {

enum class Reduction : std::uint8_t { none, add, mul, max, min };

Reduction reduction_of(const NodeContext& context) {
    static const std::vector<std::string> names{"none", "add", "mul", "max", "min"};
    const auto name = context.node.attribute<std::string>("reduction", "none");
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        context.refuse(fmt::format("expected reduction {}, found '{}'{}", join(names, ", "), printable(name),
                                   did_you_mean(name, names)));
    }
    return static_cast<Reduction>(found - names.begin());
}

template <typename T>
void combine(Reduction reduction, const std::byte* update, std::byte* target, std::size_t count) {
    const auto* from = reinterpret_cast<const T*>(update);
    auto* to = reinterpret_cast<T*>(target);
    for (std::size_t i = 0; i < count; ++i) {
        switch (reduction) {
            case Reduction::none:
                to[i] = from[i];
                break;
            case Reduction::add:
                to[i] = static_cast<T>(to[i] + from[i]);
                break;
            case Reduction::mul:
                to[i] = static_cast<T>(to[i] * from[i]);
                break;
            case Reduction::max:
                to[i] = std::max(to[i], from[i]);
                break;
            case Reduction::min:
                to[i] = std::min(to[i], from[i]);
                break;
        }
    }
}

using Combine = void (*)(Reduction, const std::byte*, std::byte*, std::size_t);

// How elements of the type are combined; types that are only ever copied go by their size.
Combine combine_of(const NodeContext& context, DataType type, Reduction reduction) {
    switch (type) {
        case DataType::float32:
            return combine<float>;
        case DataType::float64:
            return combine<double>;
        case DataType::int32:
            return combine<std::int32_t>;
        case DataType::uint32:
            return combine<std::uint32_t>;
        case DataType::int64:
            return combine<std::int64_t>;
        case DataType::uint64:
            return combine<std::uint64_t>;
        case DataType::int16:
            return combine<std::int16_t>;
        case DataType::uint16:
            return combine<std::uint16_t>;
        case DataType::int8:
            return combine<std::int8_t>;
        case DataType::uint8:
            return combine<std::uint8_t>;
        case DataType::boolean:
            if (reduction == Reduction::none) return combine<std::uint8_t>;
            break;
        default:
            break;
    }
    context.refuse(fmt::format("cannot combine elements of type {}", name_of(type)));
}

// What both operators have in common: the output is the data first.
class Scatter : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        require_index_type(context, 1);
        const TensorDescriptor& data = context.input(0);
        const TensorDescriptor& updates = context.input(2);
        const Shape wanted = prepare_places(context);
        if (updates.type != data.type || updates.shape != wanted) {
            context.refuse(fmt::format("expected updates {} {}, found {} {}", name_of(data.type),
                                       to_string(wanted), name_of(updates.type), to_string(updates.shape)));
        }
        reduction_ = reduction_of(context);
        combine_ = combine_of(context, data.type, reduction_);
        element_size_ = size_of(data.type);
        Prepared prepared;
        prepared.outputs = {{data.type, data.shape, MemoryOrder::row_major}};
        prepared.in_place = {0};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        if (inputs[0].data != outputs[0].data) {
            std::copy_n(inputs[0].data, inputs[0].bytes().size(), outputs[0].data);
        }
        scatter(inputs[1], inputs[2].data, outputs[0].data);
    }

  protected:
    // Answers the shape the updates must have.
    virtual Shape prepare_places(const NodeContext& context) = 0;
    virtual void scatter(TensorView indices, const std::byte* updates, std::byte* target) const = 0;

    void put(const std::byte* updates, std::size_t from, std::byte* target, std::size_t to,
             std::size_t count) const {
        combine_(reduction_, updates + from * element_size_, target + to * element_size_, count);
    }

  private:
    Reduction reduction_ = Reduction::none;
    Combine combine_ = nullptr;
    std::size_t element_size_ = 0;
};

class ScatterNd : public Scatter {
  protected:
    Shape prepare_places(const NodeContext& context) override {
        place_ = SlicePlace(context, context.input(0), context.input(1), 0);
        return place_.gathered_shape();
    }

    void scatter(TensorView indices, const std::byte* updates, std::byte* target) const override {
        const std::size_t count = place_.slice_elements();
        visit_indices(indices, [&](auto values) {
            for (std::size_t i = 0; i < place_.slices(); ++i) {
                put(updates, i * count, target, place_.of(i, values), count);
            }
        });
    }

  private:
    SlicePlace place_;
};

class ScatterElements : public Scatter {
  protected:
    Shape prepare_places(const NodeContext& context) override {
        place_ = ElementPlace(context, context.input(0), context.input(1));
        return context.input(1).shape;
    }

    void scatter(TensorView indices, const std::byte* updates, std::byte* target) const override {
        visit_indices(indices, [&](auto values) {
            for (std::size_t i = 0; i < values.size(); ++i)
                put(updates, i, target, place_.of(i, values[i]), 1);
        });
    }

  private:
    ElementPlace place_;
};

}  // namespace

void register_scatter(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "ScatterND",
                  .since = 11,
                  .summary = "slices written at coordinates",
                  .make = make_kernel<ScatterNd>,
                  .make_reference = make_kernel<ScatterNd>});
    registry.add({.domain = "",
                  .op_type = "ScatterElements",
                  .since = 11,
                  .summary = "elements along an axis written at indices",
                  .make = make_kernel<ScatterElements>,
                  .make_reference = make_kernel<ScatterElements>});
}

}  // namespace qcalib
