#include <algorithm>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/broadcast.h"
#include "runtime/kernels/elementwise_binary_rows.h"
#include "runtime/kernels/elementwise_scalar.h"

namespace qcalib {

namespace {

// One element after the other, for one pair of operand types.
struct PlainBlock {
    BinaryBlockFunction run = nullptr;
    DataType result = DataType::undefined;
};

template <auto function, typename A, typename B, typename Out>
void plain_block(const BinaryBlock& block) {
    const auto* a = reinterpret_cast<const A*>(block.a);
    const auto* b = reinterpret_cast<const B*>(block.b);
    auto* out = reinterpret_cast<Out*>(block.out);
    const auto columns = static_cast<std::ptrdiff_t>(block.columns);
    for (std::size_t row = 0; row < block.rows; ++row) {
        for (std::ptrdiff_t i = 0; i < columns; ++i) {
            out[i] = static_cast<Out>(function(a[i * block.a_column], b[i * block.b_column]));
        }
        a += block.a_row;
        b += block.b_row;
        out += columns;
    }
}

// Calls choose(T{}) with the number type of that tag; a PlainBlock without a function for any other.
template <typename Choose>
PlainBlock for_number(DataType type, const Choose& choose) {
    switch (type) {
        case DataType::float32:
            return choose(float{});
        case DataType::float64:
            return choose(double{});
        case DataType::int8:
            return choose(std::int8_t{});
        case DataType::uint8:
            return choose(std::uint8_t{});
        case DataType::int16:
            return choose(std::int16_t{});
        case DataType::uint16:
            return choose(std::uint16_t{});
        case DataType::int32:
            return choose(std::int32_t{});
        case DataType::uint32:
            return choose(std::uint32_t{});
        case DataType::int64:
            return choose(std::int64_t{});
        case DataType::uint64:
            return choose(std::uint64_t{});
        default:
            return {};
    }
}

// Two numbers of one type to a third of it.
template <auto function>
PlainBlock numbers(DataType a, DataType b, const Node& /*node*/) {
    if (a != b) return {};
    return for_number(a, [a](auto tag) -> PlainBlock {
        using T = decltype(tag);
        return {&plain_block<function, T, T, T>, a};
    });
}

template <auto function>
PlainBlock floats(DataType a, DataType b, const Node& node) {
    return is_floating(a) ? numbers<function>(a, b, node) : PlainBlock{};
}

// Two bools to a bool.
template <auto function>
PlainBlock truths(DataType a, DataType b, const Node& /*node*/) {
    if (a != DataType::boolean || b != DataType::boolean) return {};
    constexpr auto of_bytes = [](std::uint8_t x, std::uint8_t y) { return function(x != 0, y != 0); };
    return {&plain_block<of_bytes, std::uint8_t, std::uint8_t, bool>, DataType::boolean};
}

// Two numbers of one type (or two bools) to a bool.
template <auto function>
PlainBlock comparison(DataType a, DataType b, const Node& node) {
    if (a == DataType::boolean) return truths<function>(a, b, node);
    if (a != b) return {};
    return for_number(a, [](auto tag) -> PlainBlock {
        using T = decltype(tag);
        return {&plain_block<function, T, T, bool>, DataType::boolean};
    });
}

PlainBlock powers(DataType a, DataType b, const Node& /*node*/) {
    return for_number(a, [a, b](auto base) {
        return for_number(b, [a](auto exponent) -> PlainBlock {
            using T = decltype(base);
            using E = decltype(exponent);
            return {&plain_block<scalar::power<T, E>, T, E, T>, a};
        });
    });
}

PlainBlock remainders(DataType a, DataType b, const Node& node) {
    const bool as_dividend = node.attribute<std::int64_t>("fmod", 0) != 0;
    if (is_floating(a) && !as_dividend) return {};
    constexpr auto remainder = [](auto x, auto y) { return scalar::remainder(x, y); };
    constexpr auto modulo = [](auto x, auto y) { return scalar::modulo(x, y); };
    return as_dividend ? numbers<remainder>(a, b, node) : numbers<modulo>(a, b, node);
}

struct BinaryOperator {
    const char* name;
    std::int64_t since;
    const char* summary;
    BinaryFunction fast;  // for float32; none: the plain form serves
    PlainBlock (*plain)(DataType a, DataType b, const Node& node);  // no function: the types are not taken
    enum class Operands { two, second_to_first, any_number } operands = Operands::two;
};

using F = BinaryFunction;
using Operands = BinaryOperator::Operands;

// A new operator is one line here, and one in elementwise_binary_rows.cpp where it is worth vectors.
// clang-format off
constexpr BinaryOperator operators[] = {
    {"Add", 7, "a + b", F::add, numbers<[](auto a, auto b) { return scalar::add(a, b); }>},
    {"Sub", 7, "a - b", F::subtract, numbers<[](auto a, auto b) { return scalar::subtract(a, b); }>},
    {"Mul", 7, "a b", F::multiply, numbers<[](auto a, auto b) { return scalar::multiply(a, b); }>},
    {"Div", 7, "a / b", F::divide, numbers<[](auto a, auto b) { return scalar::divide(a, b); }>},
    {"Pow", 7, "a to the power b", F::power, powers},
    {"Mod", 10, "remainder of a / b", F::none, remainders},
    {"PRelu", 7, "a, b a for a below 0", F::parametric_relu, numbers<[](auto a, auto b) { return a < 0 ? scalar::multiply(a, b) : a; }>, Operands::second_to_first},
    {"Max", 6, "the greatest", F::maximum, numbers<[](auto a, auto b) { return scalar::maximum(a, b); }>, Operands::any_number},
    {"Min", 6, "the least", F::minimum, numbers<[](auto a, auto b) { return scalar::minimum(a, b); }>, Operands::any_number},
    {"Sum", 6, "the sum of all", F::add, floats<[](auto a, auto b) { return scalar::add(a, b); }>, Operands::any_number},
    {"Equal", 7, "a = b", F::none, comparison<[](auto a, auto b) { return a == b; }>},
    {"Less", 7, "a < b", F::none, comparison<[](auto a, auto b) { return a < b; }>},
    {"LessOrEqual", 12, "a <= b", F::none, comparison<[](auto a, auto b) { return a <= b; }>},
    {"Greater", 7, "a > b", F::none, comparison<[](auto a, auto b) { return b < a; }>},
    {"GreaterOrEqual", 12, "a >= b", F::none, comparison<[](auto a, auto b) { return b <= a; }>},
    {"And", 7, "a and b", F::none, truths<[](bool a, bool b) { return a && b; }>},
    {"Or", 7, "a or b", F::none, truths<[](bool a, bool b) { return a || b; }>},
    {"Xor", 7, "either a or b", F::none, truths<[](bool a, bool b) { return a != b; }>},
};
// clang-format on

const BinaryOperator& operator_of(const Node& node) {
    for (const BinaryOperator& candidate : operators) {
        if (node.op_type == candidate.name) return candidate;
    }
    assert(false);
    return operators[0];
}

void check_inputs(const NodeContext& context, Operands operands) {
    const std::size_t found = context.input_count();
    if (operands == Operands::any_number ? found == 0 : found != 2) {
        context.refuse(fmt::format("expected {}, found {}",
                                   operands == Operands::any_number ? "at least one input" : "two inputs",
                                   found));
    }
}

// Inputs 0 and 1 where the output has their very bytes. With three inputs or more the output is written
// before the later ones are read, so none of them may be the same value.
std::vector<std::size_t> overwritable(const NodeContext& context, const TensorDescriptor& output) {
    std::vector<ValueId> values = context.node.inputs;
    std::sort(values.begin(), values.end());
    const bool repeated = std::adjacent_find(values.begin(), values.end()) != values.end();
    if (context.input_count() > 2 && repeated) return {};
    std::vector<std::size_t> inputs;
    for (std::size_t i = 0; i < 2; ++i) {
        const TensorDescriptor& input = context.input(i);
        const bool same_place = input.order == output.order || same_in_both_orders(output.shape);
        if (input.shape == output.shape && same_place && size_of(input.type) == size_of(output.type)) {
            inputs.push_back(i);
        }
    }
    return inputs;
}

// What both kernels do when prepared. With more than two inputs, output = f(f(a, b), c) ...
class BinaryKernel : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        const BinaryOperator& definition = operator_of(context.node);
        check_inputs(context, definition.operands);
        const Shape shape = broadcast_inputs(context);
        if (definition.operands == Operands::second_to_first && shape != context.input(0).shape) {
            context.refuse(fmt::format("expected a second input that broadcasts to {}, found {}",
                                       to_string(context.input(0).shape), to_string(context.input(1).shape)));
        }
        choose_plain(context, definition);
        output_ = {plain_.result, shape, broadcast_order(context, shape)};
        Prepared prepared;
        if (context.input_count() == 1) {
            prepared.outputs = {context.input(0)};
            prepared.view_of = 0;
            return prepared;
        }
        prepared.outputs = {output_};
        prepared.in_place = overwritable(context, output_);
        prepared.scratch_bytes = prepare_steps(context, definition);
        return prepared;
    }

  protected:
    // Prepares what run() does and answers the scratch bytes it needs.
    virtual std::size_t prepare_steps(const NodeContext& context, const BinaryOperator& definition) = 0;

    PlainBlock plain_;
    TensorDescriptor output_;

  private:
    void choose_plain(const NodeContext& context, const BinaryOperator& definition) {
        for (std::size_t i = context.input_count() == 1 ? 0 : 1; i < context.input_count(); ++i) {
            plain_ = definition.plain(context.input(0).type, context.input(i).type, context.node);
            if (plain_.run == nullptr) {
                context.refuse(fmt::format("its inputs have types it does not take together: {} and {}",
                                           name_of(context.input(0).type), name_of(context.input(i).type)));
            }
        }
    }
};

class ReferenceBinaryKernel : public BinaryKernel {
  public:
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const MutableTensorView& output = outputs[0];
        for (std::size_t i = 0; i < walks_.size(); ++i) {
            const TensorView first = i == 0 ? inputs[0] : TensorView(output);
            const TensorView second = inputs[i + 1];
            const auto first_size = static_cast<std::ptrdiff_t>(size_of(first.descriptor->type));
            const auto second_size = static_cast<std::ptrdiff_t>(size_of(second.descriptor->type));
            walks_[i].for_each([&](std::size_t element, const Broadcast::Steps& operands) {
                BinaryBlock one;
                one.a = first.data + operands[0] * first_size;
                one.b = second.data + operands[1] * second_size;
                one.out = output.data + element * size_of(output.descriptor->type);
                plain_.run(one);
            });
        }
    }

  protected:
    std::size_t prepare_steps(const NodeContext& context, const BinaryOperator& /*definition*/) override {
        for (std::size_t i = 1; i < context.input_count(); ++i) {
            const Shape shapes[] = {i == 1 ? context.input(0).shape : output_.shape, context.input(i).shape};
            walks_.emplace_back(output_.shape, shapes);
        }
        return 0;
    }

  private:
    std::vector<BroadcastWalk> walks_;
};

// Short rows that meet one repeated row, e.g. pixels of three channels and a value per channel: the repeated
// row is written out several times, so that one long row of it meets as many short ones.
struct Tiling {
    std::size_t repeats = 0;  // 0: none
    bool of_a = false;        // which operand is the repeated row

    static constexpr std::size_t short_columns = 64;
    static constexpr std::size_t long_columns = 512;
};

Tiling tiling_of(const Broadcast& broadcast) {
    const Broadcast::Loop& rows = broadcast.rows();
    const Broadcast::Loop& columns = broadcast.columns();
    const auto width = static_cast<std::ptrdiff_t>(columns.extent);
    if (columns.extent == 0 || columns.extent > Tiling::short_columns) return {};
    if (columns.steps[0] != 1 || columns.steps[1] != 1) return {};
    const std::size_t repeats = Tiling::long_columns / columns.extent;
    if (rows.extent < 2 * repeats) return {};
    if (rows.steps[0] == width && rows.steps[1] == 0) return {repeats, false};
    if (rows.steps[0] == 0 && rows.steps[1] == width) return {repeats, true};
    return {};
}

void run_tiled(const Tiling& tiling, BinaryBlockFunction function, BinaryBlock block,
               std::span<std::byte> scratch) {
    const std::size_t row_bytes = block.columns * sizeof(float);
    const std::byte*& row = tiling.of_a ? block.a : block.b;
    for (std::size_t i = 0; i < tiling.repeats; ++i)
        std::memcpy(scratch.data() + i * row_bytes, row, row_bytes);
    row = scratch.data();
    const std::size_t columns = block.columns;
    const std::size_t rows = block.rows;
    block.rows = rows / tiling.repeats;
    block.columns = columns * tiling.repeats;
    (tiling.of_a ? block.b_row : block.a_row) = static_cast<std::ptrdiff_t>(block.columns);
    function(block);
    const std::size_t done_bytes = block.rows * block.columns * sizeof(float);
    (tiling.of_a ? block.b : block.a) += done_bytes;
    block.out += done_bytes;
    block.rows = 1;
    block.columns = columns * (rows % tiling.repeats);
    function(block);
}

class FastBinaryKernel : public BinaryKernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return follow_inputs(context);
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            run_step(steps_[i], i == 0 ? inputs[0] : TensorView(outputs[0]), inputs[i + 1], outputs[0],
                     workspace);
        }
    }

  protected:
    std::size_t prepare_steps(const NodeContext& context, const BinaryOperator& definition) override {
        bool tiled = false;
        for (std::size_t i = 1; i < context.input_count(); ++i) {
            const TensorDescriptor operands[] = {i == 1 ? context.input(0) : output_, context.input(i)};
            const bool floats =
                operands[0].type == DataType::float32 && operands[1].type == DataType::float32;
            steps_.push_back(
                make_step(Broadcast::over(output_, operands), floats ? definition.fast : F::none));
            tiled = tiled || steps_.back().tiling.repeats != 0;
        }
        return tiled ? Tiling::long_columns * sizeof(float) : 0;
    }

  private:
    struct Step {
        Broadcast broadcast;
        BinaryBlockFunction function = nullptr;
        Tiling tiling;
    };

    Step make_step(Broadcast broadcast, BinaryFunction fast) const {
        Step step{std::move(broadcast), nullptr, {}};
        const Broadcast::Steps& columns = step.broadcast.columns().steps;
        const auto dense_or_repeated = [](std::ptrdiff_t along) { return along == 0 || along == 1; };
        if (dense_or_repeated(columns[0]) && dense_or_repeated(columns[1])) {
            step.function = fast_binary_block(fast, columns[0] == 0, columns[1] == 0);
        }
        if (step.function == nullptr) {
            step.function = plain_.run;
        } else {
            step.tiling = tiling_of(step.broadcast);
        }
        return step;
    }

    static void run_step(const Step& step, TensorView a, TensorView b, MutableTensorView output,
                         Workspace& workspace) {
        const Broadcast::Loop& rows = step.broadcast.rows();
        const Broadcast::Loop& columns = step.broadcast.columns();
        BinaryBlock block{nullptr,       nullptr,          nullptr,       rows.extent,     columns.extent,
                          rows.steps[0], columns.steps[0], rows.steps[1], columns.steps[1]};
        const auto a_size = static_cast<std::ptrdiff_t>(size_of(a.descriptor->type));
        const auto b_size = static_cast<std::ptrdiff_t>(size_of(b.descriptor->type));
        const std::size_t out_size = size_of(output.descriptor->type);
        step.broadcast.for_each_block([&](std::size_t element, const Broadcast::Steps& operands) {
            block.a = a.data + operands[0] * a_size;
            block.b = b.data + operands[1] * b_size;
            block.out = output.data + element * out_size;
            if (step.tiling.repeats == 0) return step.function(block);
            run_tiled(step.tiling, step.function, block, workspace.scratch);
        });
    }

    std::vector<Step> steps_;
};

}  // namespace

void register_elementwise_binary(KernelRegistry& registry) {
    for (const BinaryOperator& definition : operators) {
        OperatorEntry entry;
        entry.op_type = definition.name;
        entry.since = definition.since;
        entry.summary = definition.summary;
        entry.make = make_kernel<FastBinaryKernel>;
        entry.make_reference = make_kernel<ReferenceBinaryKernel>;
        registry.add(std::move(entry));
    }
}

}  // namespace qcalib
