#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"

namespace qcalib {

namespace {

// One number as another type. Floats to integers are cut towards zero; what lies outside the integer's range,
// which ONNX leaves undefined, becomes its nearest end and NaN becomes 0. To bool: whatever is not 0 is true.
template <typename To, typename From>
To convert(From value) {
    if constexpr (std::is_same_v<To, bool>) {
        return value != From{0};
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        constexpr auto lowest = static_cast<From>(std::numeric_limits<To>::lowest());
        // The first whole number above the range, a power of two, which every float type holds exactly.
        constexpr To half = std::numeric_limits<To>::max() / 2 + 1;
        constexpr auto beyond = static_cast<From>(half) * From{2};
        if (value >= beyond) return std::numeric_limits<To>::max();
        if (value <= lowest) return std::numeric_limits<To>::lowest();
        return std::isnan(value) ? To{0} : static_cast<To>(value);
    } else {
        return static_cast<To>(value);
    }
}

// The number that a text is: plain, with an exponent, or in any case "+INF", "-INF" or "NaN", spaces around
// it allowed; nothing where it is none, or none within the range of `To`.
template <typename To>
std::optional<To> parsed(std::string_view text) {
    text = trim(text);
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    To number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

template <typename To>
To number_of(std::string_view text) {
    if constexpr (!std::is_same_v<To, bool>) {
        if (const auto number = parsed<To>(text)) return *number;
    }
    if (const auto number = parsed<double>(text)) return convert<To>(*number);
    fail("expected the text of a number, found '{}'", printable(text));
}

// The shortest text that is read as the same number again.
template <typename From>
StringElement text_of(From number) {
    std::array<char, StringElement::most_inside> text;
    char* end = text.data();
    if constexpr (std::is_same_v<From, bool>) {
        *end++ = number ? '1' : '0';
    } else {
        end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    }
    StringElement element{};
    element.show({text.data(), static_cast<std::size_t>(end - text.data())});
    if constexpr (std::is_floating_point_v<From>) {
        if (std::isnan(number)) element.show("NaN");
        if (std::isinf(number)) element.show(number < 0 ? "-INF" : "INF");
    }
    return element;
}

// One element as another type.
template <typename To, typename From>
To convert_element(From element) {
    if constexpr (std::is_same_v<To, From>) {
        return element;
    } else if constexpr (std::is_same_v<To, StringElement>) {
        return text_of(element);
    } else if constexpr (std::is_same_v<From, StringElement>) {
        return number_of<To>(element.text());
    } else {
        return convert<To>(element);
    }
}

// Element by element, first to last: the target may lie on the source where elements are of one size.
template <typename From, typename To>
void convert_all(const std::byte* source, std::byte* target, std::size_t count) {
    const auto* from = reinterpret_cast<const From*>(source);
    auto* to = reinterpret_cast<To*>(target);
    for (std::size_t i = 0; i < count; ++i) to[i] = convert_element<To>(from[i]);
}

using Conversion = void (*)(const std::byte*, std::byte*, std::size_t);

// Calls `visit` with a value of the C++ type, or answers nullptr where there is none.
template <typename Visit>
Conversion with_type(DataType type, Visit visit) {
    switch (type) {
        case DataType::float32:
            return visit(float{});
        case DataType::float64:
            return visit(double{});
        case DataType::int8:
            return visit(std::int8_t{});
        case DataType::uint8:
            return visit(std::uint8_t{});
        case DataType::int16:
            return visit(std::int16_t{});
        case DataType::uint16:
            return visit(std::uint16_t{});
        case DataType::int32:
            return visit(std::int32_t{});
        case DataType::uint32:
            return visit(std::uint32_t{});
        case DataType::int64:
            return visit(std::int64_t{});
        case DataType::uint64:
            return visit(std::uint64_t{});
        case DataType::boolean:
            return visit(bool{});
        case DataType::string:
            return visit(StringElement{});
        default:
            return nullptr;
    }
}

Conversion conversion(DataType from, DataType to) {
    return with_type(from, [to]<typename From>(From) {
        return with_type(to, []<typename To>(To) -> Conversion { return convert_all<From, To>; });
    });
}

// ONNX's numbers for element types (TensorProto.DataType).
DataType element_type(std::int64_t number) {
    switch (number) {
        case 1:
            return DataType::float32;
        case 2:
            return DataType::uint8;
        case 3:
            return DataType::int8;
        case 4:
            return DataType::uint16;
        case 5:
            return DataType::int16;
        case 6:
            return DataType::int32;
        case 7:
            return DataType::int64;
        case 8:
            return DataType::string;
        case 9:
            return DataType::boolean;
        case 10:
            return DataType::float16;
        case 11:
            return DataType::float64;
        case 12:
            return DataType::uint32;
        case 13:
            return DataType::uint64;
        case 16:
            return DataType::bfloat16;
        default:
            return DataType::undefined;
    }
}

// Floats of any width are computed in one float type, so casts between them only round.
class Cast : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return keep_first_order(context);
    }

    Prepared prepare(const NodeContext& context) override {
        const TensorDescriptor& input = context.input(0);
        const auto number = context.node.attribute<std::int64_t>("to", 0);
        const DataType to = element_type(number);
        if (to == DataType::undefined) {
            context.refuse(
                fmt::format("expected 'to' to be a type of numbers, bool or string, found {}", number));
        }
        TensorDescriptor output = input;
        if (is_floating(to)) {
            output.type = is_floating(input.type) ? input.type : DataType::float32;
        } else {
            output.type = to;
        }
        convert_ = conversion(input.type, output.type);
        if (convert_ == nullptr) context.refuse(fmt::format("cannot cast from {}", name_of(input.type)));
        const bool rounds = to == DataType::float16 || to == DataType::bfloat16;
        Prepared prepared;
        prepared.rounding = {rounds ? to : DataType::undefined};
        if (output.type == input.type && !rounds) prepared.view_of = 0;
        if (size_of(output.type) == size_of(input.type)) prepared.in_place = {0};
        prepared.outputs = {output};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        convert_(inputs[0].data, outputs[0].data, inputs[0].elements());
    }

  private:
    Conversion convert_ = nullptr;
};

// The same conversions, always into memory of their own.
class CastReference : public Cast {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return all_row_major(context);
    }

    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = Cast::prepare(context);
        prepared.view_of.reset();
        prepared.in_place.clear();
        return prepared;
    }
};

}  // namespace

void register_cast(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "Cast",
                  .since = 6,
                  .summary = "the elements as another type",
                  .make = make_kernel<Cast>,
                  .make_reference = make_kernel<CastReference>,
                  .any_elements = true});
}

}  // namespace qcalib
