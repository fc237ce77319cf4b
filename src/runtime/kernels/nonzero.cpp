#include <cstring>

#include "base/text.h"
#include "runtime/kernels/all.h"

namespace qcalib {

namespace {

// Calls visit(i) for each element that is not zero, in memory order. -0.0 is zero, NaN is not.
template <typename T, typename Visit>
void visit_nonzero(TensorView view, Visit visit) {
    const std::span<const T> elements = view.as<T>();
    for (std::size_t i = 0; i < elements.size(); ++i) {
        if (elements[i] != T{}) visit(i);
    }
}

template <typename Visit>
void for_each_nonzero(TensorView view, Visit visit) {
    switch (view.descriptor->type) {
        case DataType::float32:
            return visit_nonzero<float>(view, visit);
        case DataType::float64:
            return visit_nonzero<double>(view, visit);
        default:
            break;
    }
    switch (size_of(view.descriptor->type)) {
        case 1:
            return visit_nonzero<std::uint8_t>(view, visit);
        case 2:
            return visit_nonzero<std::uint16_t>(view, visit);
        case 4:
            return visit_nonzero<std::uint32_t>(view, visit);
        default:
            return visit_nonzero<std::uint64_t>(view, visit);
    }
}

// The indices of the elements that are not zero: one row for each dimension, one column for each element, in
// row-major order of the elements.
class NonZero : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        if (!context.has_input(0)) context.refuse("expected an input, which is left out");
        if (context.input(0).type == DataType::string) context.refuse("expected numbers, found strings");
        Prepared prepared;
        prepared.data_dependent = true;
        return prepared;
    }

    void run(std::span<const TensorView> /*inputs*/, std::span<const MutableTensorView> /*outputs*/,
             Workspace& /*workspace*/) const override {}

    std::vector<Tensor> make_outputs(std::span<const TensorView> inputs,
                                     Workspace& /*workspace*/) const override {
        const Shape& shape = inputs[0].descriptor->shape;
        std::size_t count = 0;
        for_each_nonzero(inputs[0], [&](std::size_t /*element*/) { ++count; });
        Tensor indices(
            TensorDescriptor{DataType::int64,
                             {static_cast<std::int64_t>(shape.size()), static_cast<std::int64_t>(count)},
                             MemoryOrder::row_major});
        const std::span<std::int64_t> target = indices.mutable_view().as<std::int64_t>();
        std::size_t column = 0;
        for_each_nonzero(inputs[0], [&](std::size_t element) {
            for (std::size_t d = shape.size(); d-- > 0;) {
                const auto size = static_cast<std::size_t>(shape[d]);
                target[d * count + column] = static_cast<std::int64_t>(element % size);
                element /= size;
            }
            ++column;
        });
        return {indices};
    }
};

}  // namespace

void register_nonzero(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "NonZero",
                  .since = 9,
                  .summary = "Indices of the elements that are not zero",
                  .make = make_kernel<NonZero>,
                  .make_reference = make_kernel<NonZero>});
}

}  // namespace qcalib
