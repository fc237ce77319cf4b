#include "engine/carry.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "dataset/input_names.h"

namespace qcalib {

namespace {

using PartialShape = std::vector<std::optional<std::int64_t>>;

std::optional<ValueId> output_named(const Graph& graph, std::string_view name) {
    for (const ValueId output : graph.outputs) {
        if (graph.values[output].name == name) return output;
    }
    return std::nullopt;
}

std::optional<std::size_t> input_named(std::span<const InputSpec> inputs, std::string_view name) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].name == name) return i;
    }
    return std::nullopt;
}

[[noreturn]] void refuse_names(const Graph& graph, std::span<const InputSpec> inputs, std::string_view text,
                               const std::string& option) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
        fail("{}: expected OUTPUT=INPUT, found no '='", option);
    }
    const std::string_view output = text.substr(0, equals);
    if (output_named(graph, output)) fail("{}: {}", option, no_such_input(text.substr(equals + 1), inputs));
    std::vector<std::string> names;
    for (const ValueId value : graph.outputs) names.push_back(graph.values[value].name);
    std::string hint = did_you_mean(output, names);
    if (hint.empty()) {
        for (std::string& name : names) name = printable(name);
        hint = fmt::format(" (the model's outputs: {})", join(names, ", "));
    }
    fail("{}: no output '{}'{}", option, printable(output), hint);
}

// Names may hold '=': the first place where both sides are names counts.
Carry parse_names(const Graph& graph, std::span<const InputSpec> inputs, std::string_view text) {
    const std::string option = "--carry " + printable(text);
    for (std::size_t equals = text.find('='); equals != std::string_view::npos;
         equals = text.find('=', equals + 1)) {
        const auto output = output_named(graph, text.substr(0, equals));
        const auto input = input_named(inputs, text.substr(equals + 1));
        if (output && input) return {*input, *output, option};
    }
    refuse_names(graph, inputs, text, option);
}

// The type that samples have a value in.
DataType fed_type(DataType declared) {
    return is_floating(declared) ? DataType::float32 : declared;
}

PartialShape sizes_of(const std::vector<Dimension>& dimensions) {
    PartialShape sizes;
    for (const Dimension& dimension : dimensions) sizes.push_back(dimension.size);
    return sizes;
}

bool agree(const PartialShape& a, const PartialShape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return !x || !y || *x == *y; });
}

void check_pair(const Graph& graph, const Carry& carry, const InputSpec& input) {
    const Value& output = graph.values[carry.output];
    const std::string name = printable(output.name);
    const DataType type = output.declared_type;
    if (type != DataType::undefined && fed_type(type) != input.type) {
        fail("{}: output '{}' is {}, but {} takes {}", carry.option, name, name_of(type), describe(input),
             name_of(input.type));
    }
    if (!output.declared_shape || !input.rank_known) return;
    const PartialShape shape = sizes_of(*output.declared_shape);
    if (!agree(shape, input.shape)) {
        fail("{}: output '{}' has shape {}, which {} does not take", carry.option, name, to_string(shape),
             describe(input));
    }
}

// The size that an input of the model has where another dimension of that name is known.
std::optional<std::int64_t> size_named(const Graph& graph, std::span<const InputSpec> inputs,
                                       const std::string& name) {
    if (name.empty()) return std::nullopt;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto& declared = graph.values[graph.inputs[i]].declared_shape;
        if (!declared || declared->size() != inputs[i].shape.size()) continue;
        for (std::size_t axis = 0; axis < declared->size(); ++axis) {
            if ((*declared)[axis].name == name && inputs[i].shape[axis]) return inputs[i].shape[axis];
        }
    }
    return std::nullopt;
}

// The input's shape, what is open bound as parse_carries() says.
Shape first_shape(const Graph& graph, const Carry& carry, std::span<const InputSpec> inputs,
                  Remarks& remarks) {
    const InputSpec& input = inputs[carry.input];
    const auto& declared = graph.values[graph.inputs[carry.input]].declared_shape;
    Shape shape;
    bool guessed = false;
    for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
        std::optional<std::int64_t> size = input.shape[axis];
        if (!size && declared) size = size_named(graph, inputs, (*declared)[axis].name);
        guessed = guessed || !size;
        shape.push_back(size.value_or(1));
    }
    if (guessed) {
        remarks.add(fmt::format("{}: the zero state of {} is taken as {}; --shape {}=... says otherwise",
                                carry.option, describe(input), to_string(shape), printable(input.name)));
    }
    return shape;
}

void start_with_zeros(const Graph& graph, const Carry& carry, std::vector<InputSpec>& inputs,
                      Remarks& remarks) {
    InputSpec& input = inputs[carry.input];
    if (input.otherwise || !input.rank_known) return;
    if (!is_numeric(input.type)) {
        fail("{}: {} is of type {}, which cannot be carried", carry.option, describe(input),
             name_of(input.type));
    }
    Tensor zeros({input.type, first_shape(graph, carry, inputs, remarks), MemoryOrder::row_major});
    std::ranges::fill(zeros.mutable_view().bytes(), std::byte{0});
    input.otherwise = zeros;
}

}  // namespace

std::vector<Carry> parse_carries(const Graph& graph, std::span<const std::string> options,
                                 std::vector<InputSpec>& inputs, Remarks& remarks) {
    std::vector<Carry> carries;
    for (const std::string& option : options) {
        Carry carry = parse_names(graph, inputs, option);
        InputSpec& input = inputs[carry.input];
        if (input.carried) fail("{}: input '{}' is carried twice", carry.option, printable(input.name));
        check_pair(graph, carry, input);
        input.carried = true;
        carries.push_back(std::move(carry));
    }
    for (const Carry& carry : carries) start_with_zeros(graph, carry, inputs, remarks);
    return carries;
}

TapRight CarryTap::right(const Graph& /*graph*/, ValueId value) const {
    const bool carried =
        std::ranges::any_of(carries_, [&](const Carry& carry) { return carry.output == value; });
    return carried ? TapRight::read : TapRight::ignore;
}

void CarryTap::on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) {
    std::vector<Tensor>& latest = latest_.local();
    latest.resize(carries_.size());
    for (std::size_t i = 0; i < carries_.size(); ++i) {
        if (carries_[i].output != value) continue;
        TensorDescriptor descriptor = *view.descriptor;
        descriptor.order = MemoryOrder::row_major;
        latest[i] = Tensor(std::move(descriptor));
        copy_to_order(view, latest[i].mutable_view());
    }
}

void CarryTap::feed_back(const Program& program, std::span<const InputSpec> specs, std::span<Tensor> inputs) {
    std::vector<Tensor>& latest = latest_.local();
    latest.resize(carries_.size());
    for (std::size_t i = 0; i < carries_.size(); ++i) {
        const Carry& carry = carries_[i];
        const Tensor* constant = program.constant(carry.output);
        const Tensor& state = constant != nullptr ? *constant : latest[i];
        const InputSpec& input = specs[carry.input];
        PartialShape found(state.shape().begin(), state.shape().end());
        if (state.type() != input.type || (input.rank_known && !agree(found, input.shape))) {
            fail("{}: the output is {} {}, which {} {} does not take", carry.option, name_of(state.type()),
                 to_string(state.shape()), name_of(input.type), describe(input));
        }
        inputs[carry.input] = state;
    }
}

}  // namespace qcalib
