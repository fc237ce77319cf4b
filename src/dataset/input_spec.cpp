#include "dataset/input_spec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "dataset/input_names.h"
#include "dataset/numeric_type.h"

namespace qcalib {

namespace {

using PartialShape = std::vector<std::optional<std::int64_t>>;

// The numbers of "1,3,640,640", each at least 1; none for an empty text.
PartialShape parse_dimensions(std::string_view text, const std::string& option) {
    PartialShape dimensions;
    if (trim(text).empty()) return dimensions;
    for (const std::string& part : split(text, ',')) {
        const std::int64_t value = parse_integer(part, option);
        if (value < 1) fail("{}: expected dimensions of at least 1, found {}", option, value);
        dimensions.emplace_back(value);
    }
    return dimensions;
}

InputSpec& named_input(std::vector<InputSpec>& inputs, const std::string& name, const std::string& option) {
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [&](const InputSpec& i) { return i.name == name; });
    if (found == inputs.end()) fail("{}: {}", option, no_such_input(name, inputs));
    return *found;
}

InputSpec& only_input(std::vector<InputSpec>& inputs, const std::string& option) {
    if (inputs.size() != 1) {
        fail("{}: expected NAME=... with one of the model's {} inputs ({}), found no name", option,
             inputs.size(), list_of_inputs(inputs));
    }
    return inputs.front();
}

void check_agreement(const InputSpec& input, const PartialShape& wanted, const std::string& option) {
    if (!input.rank_known) return;
    if (wanted.size() != input.shape.size()) {
        fail("{}: {} has {} dimensions, found {}", option, describe(input), input.shape.size(),
             wanted.size());
    }
    for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
        if (input.shape[axis] && input.shape[axis] != wanted[axis]) {
            fail("{}: dimension {} of {} is {} in the model, not {}", option, axis, describe(input),
                 *input.shape[axis], *wanted[axis]);
        }
    }
}

// A number as an element of the input's type.
template <typename T>
T parse_element(std::string_view text, const std::string& option) {
    if constexpr (std::is_floating_point_v<T>) {
        const double value = parse_real(text, option);
        if (std::isfinite(value) && std::abs(value) > std::numeric_limits<T>::max()) {
            fail("{}: {} is beyond {}", option, trim(text), name_of(data_type_of<T>()));
        }
        return static_cast<T>(value);
    } else {
        const std::int64_t value = parse_integer(text, option);
        if (!std::in_range<T>(value)) fail("{}: {} is beyond {}", option, value, name_of(data_type_of<T>()));
        return static_cast<T>(value);
    }
}

bool parse_bool(std::string_view text, const std::string& option) {
    const std::int64_t value = parse_integer(text, option);
    if (value != 0 && value != 1) fail("{}: expected 0 or 1 for a bool, found {}", option, value);
    return value == 1;
}

// The input's shape, one open dimension bound by the count of numbers (several open ones by a single number).
Shape shape_for(const InputSpec& input, std::size_t count, const std::string& option) {
    const auto refuse = [&] {
        fail("{}: expected one number or one for each element of {}, found {}", option, describe(input),
             count);
    };
    if (!input.rank_known) fail("{}: {} needs a --shape before it", option, describe(input));
    Shape known;
    for (const auto& dimension : input.shape) known.push_back(dimension.value_or(1));
    const auto open = std::count(input.shape.begin(), input.shape.end(), std::nullopt);
    const std::int64_t elements = element_count(known);
    const auto numbers = static_cast<std::int64_t>(count);
    if (open > 1 && numbers != 1) fail("{}: {} needs a --shape before it", option, describe(input));
    if (open == 1 && elements > 0 && numbers > 1) {
        if (numbers % elements != 0) refuse();
        for (std::size_t i = 0; i < known.size(); ++i) {
            if (!input.shape[i]) known[i] = numbers / elements;
        }
    } else if (numbers != 1 && numbers != elements) {
        refuse();
    }
    return known;
}

// A tensor of that shape from one number a text, or one for all elements.
template <typename Parse>
auto tensor_of(Shape shape, std::span<const std::string> texts, const Parse& parse) {
    using T = decltype(parse(std::string_view()));
    Tensor tensor(TensorDescriptor{data_type_of<T>(), std::move(shape), MemoryOrder::row_major});
    const std::span<T> elements = tensor.mutable_view().as<T>();
    for (std::size_t i = 0; i < elements.size(); ++i) {
        elements[i] = i > 0 && texts.size() == 1 ? elements[0] : parse(texts[i]);
    }
    return tensor;
}

void check_size(const PartialShape& wanted, const std::string& option) {
    Shape shape;
    for (const auto& dimension : wanted) shape.push_back(*dimension);
    try {
        element_count(shape);
    } catch (const Error& error) {
        fail("{}: {}", option, error.what());
    }
}

}  // namespace

std::vector<std::string> input_names(std::span<const InputSpec> inputs) {
    std::vector<std::string> names;
    for (const InputSpec& input : inputs) names.push_back(input.name);
    return names;
}

std::string list_of_inputs(std::span<const InputSpec> inputs) {
    std::string text;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (i > 0) text += i + 1 == inputs.size() ? " and " : ", ";
        text += printable(inputs[i].name);
    }
    return text;
}

std::string no_such_input(std::string_view name, std::span<const InputSpec> inputs) {
    std::string hint = did_you_mean(name, input_names(inputs));
    if (hint.empty()) hint = fmt::format(" (the model's inputs: {})", list_of_inputs(inputs));
    return fmt::format("no input '{}'{}", printable(name), hint);
}

std::string describe(const InputSpec& input) {
    return fmt::format("input '{}' {}", printable(input.name),
                       input.rank_known ? to_string(input.shape) : "of any shape");
}

std::string to_string(const std::vector<std::optional<std::int64_t>>& shape) {
    std::string text = "[";
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (axis > 0) text += ',';
        text += shape[axis] ? std::to_string(*shape[axis]) : "?";
    }
    return text + "]";
}

void apply_shape(std::vector<InputSpec>& inputs, const std::string& option) {
    const std::string shown = "--shape " + printable(option);
    const std::size_t equals = option.rfind('=');  // a name may hold '=', the numbers do not
    InputSpec& input = equals == std::string::npos ? only_input(inputs, shown)
                                                   : named_input(inputs, option.substr(0, equals), shown);
    const std::string_view numbers =
        std::string_view(option).substr(equals == std::string::npos ? 0 : equals + 1);
    PartialShape wanted = parse_dimensions(numbers, shown);
    check_agreement(input, wanted, shown);
    check_size(wanted, shown);
    input.shape = std::move(wanted);
    input.rank_known = true;
}

void apply_value(std::vector<InputSpec>& inputs, const std::string& option) {
    const std::string shown = "--input " + printable(option);
    const std::size_t equals = option.rfind('=');
    InputSpec& input = equals == std::string::npos ? only_input(inputs, shown)
                                                   : named_input(inputs, option.substr(0, equals), shown);
    if (input.otherwise) fail("{}: input '{}' is given twice", shown, printable(input.name));
    const std::vector<std::string> texts =
        split(std::string_view(option).substr(equals == std::string::npos ? 0 : equals + 1), ',');
    Shape shape = shape_for(input, texts.size(), shown);
    if (input.type == DataType::boolean) {
        input.otherwise = tensor_of(std::move(shape), texts,
                                    [&](std::string_view text) { return parse_bool(text, shown); });
        return;
    }
    const bool known = with_numeric_type(input.type, [&]<typename T>() {
        input.otherwise = tensor_of(std::move(shape), texts,
                                    [&](std::string_view text) { return parse_element<T>(text, shown); });
    });
    if (!known)
        fail("{}: {} is of type {}, which takes no numbers", shown, describe(input), name_of(input.type));
}

}  // namespace qcalib
