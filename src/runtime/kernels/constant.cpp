// Values that come from attributes, shapes or a few numbers: Constant, ConstantOfShape, Shape, Size, Range.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/index_map.h"

namespace qcalib {

namespace {

// A kernel that knows its output when it is prepared.
class KnownValue : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return keep_first_order(context);
    }

    Prepared prepare(const NodeContext& context) override {
        value_ = value(context);
        Prepared prepared;
        prepared.outputs = {value_.descriptor()};
        prepared.known_outputs = {value_};
        return prepared;
    }

    void run(std::span<const TensorView> /*inputs*/, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        std::copy_n(value_.data(), value_.descriptor().bytes(), outputs[0].data);
    }

  protected:
    virtual Tensor value(const NodeContext& context) const = 0;

  private:
    Tensor value_;
};

class Constant : public KnownValue {
  protected:
    Tensor value(const NodeContext& context) const override {
        const Node& node = context.node;
        const std::vector<std::string> forms{"value",      "value_float",  "value_floats", "value_int",
                                             "value_ints", "value_string", "value_strings"};
        std::vector<std::string> given;
        for (const auto& [name, attribute] : node.attributes) given.push_back(name);
        if (given.size() != 1 || std::find(forms.begin(), forms.end(), given[0]) == forms.end()) {
            context.refuse(fmt::format("expected one attribute of {}, found {}", join(forms, ", "),
                                       given.empty() ? "none" : join(given, ", ")));
        }
        if (given[0] == "value_float") return scalar(node.attribute<float>("value_float", 0));
        if (given[0] == "value_int") return scalar(node.attribute<std::int64_t>("value_int", 0));
        if (given[0] == "value_floats") return list(node.attribute<std::vector<float>>("value_floats", {}));
        if (given[0] == "value_ints")
            return list(node.attribute<std::vector<std::int64_t>>("value_ints", {}));
        if (given[0] == "value_string") {
            const auto text = node.attribute<std::string>("value_string", {});
            return Tensor::of_strings({}, std::span(&text, 1));
        }
        if (given[0] == "value_strings") {
            const auto texts = node.attribute<std::vector<std::string>>("value_strings", {});
            return Tensor::of_strings({static_cast<std::int64_t>(texts.size())}, texts);
        }
        return to_float32(node.attribute<Tensor>("value", {}), label(context.graph, node));
    }

  private:
    template <typename T>
    static Tensor scalar(T value) {
        return Tensor::of<T>({}, std::span<const T>(&value, 1));
    }
    template <typename T>
    static Tensor list(const std::vector<T>& values) {
        return Tensor::of<T>({static_cast<std::int64_t>(values.size())}, values);
    }
};

class ConstantOfShape : public KnownValue {
  protected:
    Tensor value(const NodeContext& context) const override {
        const float zero = 0;
        const Tensor fill = to_float32(
            context.node.attribute<Tensor>("value", Tensor::of<float>({1}, std::span<const float>(&zero, 1))),
            label(context.graph, context.node));
        if (!is_numeric(fill.type())) {
            context.refuse(fmt::format("expected a number as value, found {}", name_of(fill.type())));
        }
        if (fill.descriptor().elements() != 1) {
            context.refuse(fmt::format("expected a value of one element, found {}", to_string(fill.shape())));
        }
        const Shape shape = context.integers(0);
        if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; })) {
            context.refuse(fmt::format("expected dimensions of 0 or more, found {}", to_string(shape)));
        }
        Tensor result(TensorDescriptor{fill.type(), shape, MemoryOrder::row_major});
        fill_elements(result.mutable_view().data, result.descriptor().bytes(), fill.data(),
                      size_of(fill.type()));
        return result;
    }
};

class ShapeOf : public KnownValue {
  protected:
    Tensor value(const NodeContext& context) const override {
        const Shape& shape = context.input(0).shape;
        const auto rank = static_cast<std::int64_t>(shape.size());
        const auto bound = [&](std::string_view name, std::int64_t otherwise) {
            const auto given = context.node.attribute<std::int64_t>(name, otherwise);
            return std::clamp<std::int64_t>(given < 0 ? given + rank : given, 0, rank);
        };
        const std::int64_t start = bound("start", 0);
        const std::int64_t count = std::max<std::int64_t>(bound("end", rank) - start, 0);
        const std::span<const std::int64_t> all(shape);
        return Tensor::of<std::int64_t>(
            {count}, all.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(count)));
    }
};

class Size : public KnownValue {
  protected:
    Tensor value(const NodeContext& context) const override {
        const std::int64_t count = element_count(context.input(0).shape);
        return Tensor::of<std::int64_t>({}, std::span<const std::int64_t>(&count, 1));
    }
};

// start, start + delta, ... up to but without limit.
class Range : public KnownValue {
  protected:
    Tensor value(const NodeContext& context) const override {
        for (std::size_t i = 0; i < 3; ++i) {
            if (!context.has_input(i) || !context.inputs[i].constant || context.input(i).elements() != 1) {
                context.refuse("expected start, limit and delta to be known single values");
            }
        }
        switch (context.input(0).type) {
            case DataType::float32:
                return range<float>(context);
            case DataType::float64:
                return range<double>(context);
            case DataType::int16:
                return range<std::int16_t>(context);
            case DataType::int32:
                return range<std::int32_t>(context);
            case DataType::int64:
                return range<std::int64_t>(context);
            default:
                context.refuse(fmt::format("expected float or int16 to int64 inputs, found {}",
                                           name_of(context.input(0).type)));
        }
    }

  private:
    template <typename T>
    static Tensor range(const NodeContext& context) {
        const auto number = [&](std::size_t i) {
            if (context.input(i).type != data_type_of<T>()) context.refuse("expected inputs of one type");
            T value;
            std::copy_n(context.inputs[i].constant->data(), sizeof(T), reinterpret_cast<std::byte*>(&value));
            return value;
        };
        const T start = number(0);
        const T limit = number(1);
        const T delta = number(2);
        const std::int64_t count = number_of_elements(context, start, limit, delta);
        Tensor result(TensorDescriptor{data_type_of<T>(), {count}, MemoryOrder::row_major});
        const std::span<T> values = result.mutable_view().as<T>();
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<T>(start + static_cast<T>(i) * delta);
        return result;
    }

    // max(ceil((limit - start) / delta), 0), as the operator's definition has it.
    static std::int64_t number_of_elements(const NodeContext& context, double start, double limit,
                                           double delta) {
        const double count = std::ceil((limit - start) / delta);
        if (!(count < 0x1p40)) {  // also NaN and infinity
            context.refuse(fmt::format("expected a range that ends, found start {}, limit {}, delta {}",
                                       start, limit, delta));
        }
        return static_cast<std::int64_t>(std::max(count, 0.0));
    }
};

}  // namespace

void register_constant(KernelRegistry& registry) {
    const auto add = [&](OperatorEntry entry) {
        entry.make_reference = entry.make;  // nothing is computed that could be faster
        registry.add(std::move(entry));
    };
    add({.domain = "",
         .op_type = "Constant",
         .summary = "the value of an attribute",
         .make = make_kernel<Constant>});
    add({.domain = "",
         .op_type = "ConstantOfShape",
         .since = 9,
         .summary = "one value, as often as a shape asks for",
         .value_inputs = {0},
         .make = make_kernel<ConstantOfShape>});
    add({.domain = "",
         .op_type = "Shape",
         .summary = "the input's dimensions",
         .needs_shapes_only = true,
         .make = make_kernel<ShapeOf>,
         .any_elements = true});
    add({.domain = "",
         .op_type = "Size",
         .summary = "the input's number of elements",
         .needs_shapes_only = true,
         .make = make_kernel<Size>,
         .any_elements = true});
    add({.domain = "",
         .op_type = "Range",
         .since = 11,
         .summary = "an arithmetic sequence",
         .value_inputs = {0, 1, 2},
         .make = make_kernel<Range>});
}

}  // namespace qcalib
