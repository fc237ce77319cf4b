// Operators whose output has the very bytes of their input: Reshape, Flatten, Squeeze, Unsqueeze, Identity,
// Dropout.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"

namespace qcalib {

namespace {

// True where a channels-last tensor is still channels-last, byte for byte, under `shape`: N and C stay apart.
bool stays_channels_last(const TensorDescriptor& input, std::span<const std::int64_t> shape) {
    return input.order == MemoryOrder::channels_last && !same_in_both_orders(input.shape) &&
           shape.size() >= 3 && shape.size() <= 5 && shape[0] == input.shape[0] && shape[1] == input.shape[1];
}

// The input's elements under another shape.
class ShapeView : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        std::vector<MemoryOrder> orders = all_row_major(context);
        const TensorDescriptor& input = context.input(0);
        const bool keep =
            same_in_both_orders(input.shape) || stays_channels_last(input, output_shape(context));
        if (keep) orders[0] = input.order;
        return orders;
    }

    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        TensorDescriptor output{input.type, output_shape(context), MemoryOrder::row_major};
        if (output.elements() != input.elements()) {
            context.refuse(fmt::format("cannot show {} as {}: {} elements are not {}", to_string(input.shape),
                                       to_string(output.shape), input.elements(), output.elements()));
        }
        if (stays_channels_last(input, output.shape)) output.order = MemoryOrder::channels_last;
        Prepared prepared;
        prepared.outputs = {output};
        prepared.view_of = 0;
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        std::copy_n(inputs[0].data, inputs[0].bytes().size(), outputs[0].data);
    }

  protected:
    virtual Shape output_shape(const NodeContext& context) const = 0;
};

class Reshape : public ShapeView {
  protected:
    Shape output_shape(const NodeContext& context) const override {
        const Shape& input = context.input(0).shape;
        Shape shape = context.integers(1);
        const bool copies_zeros = context.node.attribute<std::int64_t>("allowzero", 0) == 0;
        std::optional<std::size_t> inferred;
        std::int64_t known = 1;
        for (std::size_t i = 0; i < shape.size(); ++i) {
            if (shape[i] == 0 && copies_zeros) {
                if (i >= input.size()) refuse(context, shape, "a 0 stands where the input has no dimension");
                shape[i] = input[i];
            }
            if (shape[i] < -1) refuse(context, shape, "expected dimensions of -1 or more");
            if (shape[i] == -1 && inferred) refuse(context, shape, "expected at most one -1");
            if (shape[i] == -1) {
                inferred = i;
            } else {
                known = element_count(std::array{known, shape[i]});
            }
        }
        if (inferred) {
            const std::int64_t total = element_count(input);
            if (known == 0 || total % known != 0) refuse(context, shape, "no dimension can stand for the -1");
            shape[*inferred] = total / known;
        }
        return shape;
    }

  private:
    [[noreturn]] static void refuse(const NodeContext& context, const Shape& shape, std::string_view why) {
        context.refuse(fmt::format("cannot reshape {} to {}: {}", to_string(context.input(0).shape),
                                   to_string(shape), why));
    }
};

class Flatten : public ShapeView {
  protected:
    Shape output_shape(const NodeContext& context) const override {
        const Shape& input = context.input(0).shape;
        const auto axis = context.node.attribute<std::int64_t>("axis", 1);
        const auto rank = static_cast<std::int64_t>(input.size());
        // Unlike elsewhere, the axis may be the rank itself.
        const std::size_t at = axis == rank ? input.size() : resolve_axis(context, axis, input.size());
        const std::span<const std::int64_t> dimensions(input);
        return {element_count(dimensions.first(at)), element_count(dimensions.subspan(at))};
    }
};

class Squeeze : public ShapeView {
  protected:
    Shape output_shape(const NodeContext& context) const override {
        const Shape& input = context.input(0).shape;
        std::vector<bool> dropped(input.size());
        if (const auto axes = integers_from(context, 1, "axes")) {
            for (const std::size_t axis : resolve_axes(context, *axes, input.size())) {
                if (input[axis] != 1) {
                    context.refuse(fmt::format("expected a dimension of 1 at axis {}, found shape {}", axis,
                                               to_string(input)));
                }
                dropped[axis] = true;
            }
        } else {
            std::transform(input.begin(), input.end(), dropped.begin(), [](auto size) { return size == 1; });
        }
        Shape shape;
        for (std::size_t i = 0; i < input.size(); ++i) {
            if (!dropped[i]) shape.push_back(input[i]);
        }
        return shape;
    }
};

class Unsqueeze : public ShapeView {
  protected:
    Shape output_shape(const NodeContext& context) const override {
        const Shape& input = context.input(0).shape;
        const auto axes = integers_from(context, 1, "axes");
        if (!axes) context.refuse("expected axes, found none");
        const std::size_t rank = input.size() + axes->size();
        Shape shape(rank, -1);
        for (const std::size_t axis : resolve_axes(context, *axes, rank)) shape[axis] = 1;
        auto next = input.begin();
        for (std::int64_t& dimension : shape) {
            if (dimension == -1) dimension = *next++;
        }
        return shape;
    }
};

class Identity : public ShapeView {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return keep_first_order(context);
    }
    Prepared prepare(const NodeContext& context) override {
        Prepared prepared;
        prepared.outputs = {context.input(0)};
        prepared.view_of = 0;
        return prepared;
    }

  protected:
    Shape output_shape(const NodeContext& context) const override { return context.input(0).shape; }
};

// Dropout of inference: the input as it is, and a mask that keeps everything.
class Dropout : public Identity {
  public:
    Prepared prepare(const NodeContext& context) override {
        refuse_training(context);
        Prepared prepared = Identity::prepare(context);
        if (context.node.outputs.size() > 1) {
            TensorDescriptor mask = context.input(0);
            mask.type = DataType::boolean;
            prepared.outputs.push_back(mask);
            prepared.view_of.reset();
        }
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (outputs[0].data != nullptr) Identity::run(inputs, outputs, workspace);
        if (outputs.size() > 1 && outputs[1].data != nullptr) {
            std::fill_n(outputs[1].data, outputs[1].bytes().size(), std::byte{1});
        }
    }

  private:
    // A model exported in training mode drops at random, unless its ratio is 0.
    static void refuse_training(const NodeContext& context) {
        if (!context.has_input(2)) return;
        const auto number = [&](std::size_t input, double otherwise) {
            if (!context.has_input(input)) return otherwise;
            const auto& value = context.inputs[input].constant;
            if (!value || value->descriptor().elements() != 1) {
                context.refuse("expected ratio and training_mode to be known single values");
            }
            return numbers_of(value->view())[0];
        };
        const double ratio = number(1, 0.5);
        if (number(2, 0) != 0 && ratio != 0) {
            context.refuse(
                fmt::format("training_mode is on with ratio {}: its output is random; export the model in "
                            "inference mode",
                            ratio));
        }
    }
};

// The same operator without a view: the elements are copied, row-major.
template <typename View>
class Copied : public View {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return all_row_major(context);
    }
    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = View::prepare(context);
        prepared.view_of.reset();
        return prepared;
    }
};

}  // namespace

void register_reshape(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "Reshape",
                  .since = 5,
                  .summary = "another shape, 0 and -1 allowed",
                  .value_inputs = {1},
                  .make = make_kernel<Reshape>,
                  .make_reference = make_kernel<Copied<Reshape>>,
                  .any_elements = true});
    registry.add({.domain = "",
                  .op_type = "Flatten",
                  .since = 1,
                  .summary = "two dimensions, split at an axis",
                  .make = make_kernel<Flatten>,
                  .make_reference = make_kernel<Copied<Flatten>>,
                  .any_elements = true});
    for (const std::int64_t since : {1, 13}) {  // the axes became an input
        registry.add({.domain = "",
                      .op_type = "Squeeze",
                      .since = since,
                      .summary = "drops dimensions of 1",
                      .value_inputs = {1},
                      .make = make_kernel<Squeeze>,
                      .make_reference = make_kernel<Copied<Squeeze>>,
                      .any_elements = true});
        registry.add({.domain = "",
                      .op_type = "Unsqueeze",
                      .since = since,
                      .summary = "inserts dimensions of 1",
                      .value_inputs = {1},
                      .make = make_kernel<Unsqueeze>,
                      .make_reference = make_kernel<Copied<Unsqueeze>>,
                      .any_elements = true});
    }
    registry.add({.domain = "",
                  .op_type = "Identity",
                  .since = 1,
                  .summary = "the input as it is",
                  .make = make_kernel<Identity>,
                  .make_reference = make_kernel<Copied<Identity>>,
                  .any_elements = true});
    for (const std::int64_t since : {7, 12}) {  // ratio and training_mode became inputs
        registry.add({.domain = "",
                      .op_type = "Dropout",
                      .since = since,
                      .summary = "the input as it is (inference)",
                      .value_inputs = {1, 2},
                      .make = make_kernel<Dropout>,
                      .make_reference = make_kernel<Copied<Dropout>>});
    }
}

}  // namespace qcalib
