#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/elementwise_scalar.h"
#include "runtime/kernels/reduce_rows.h"

namespace qcalib {

namespace {

// One loop over the input's memory; `output_step` is 0 along an axis that is reduced.
struct ReduceLoop {
    std::size_t extent = 1;
    std::size_t output_step = 0;
};

struct ReducedShape {
    TensorDescriptor output;        // type left to the kernel
    std::vector<ReduceLoop> loops;  // outermost first; neighbours of one kind are one; at least two
    std::size_t reduced = 1;        // input elements per output element
};

std::vector<bool> reduced_axes(const NodeContext& context) {
    const std::size_t rank = context.input(0).rank();
    const std::vector<std::int64_t> given =
        integers_from(context, 1, "axes").value_or(std::vector<std::int64_t>{});
    std::vector<bool> reduced(rank, given.empty());
    for (const std::size_t axis : resolve_axes(context, given, rank)) reduced[axis] = true;
    return reduced;
}

bool keeps_axes(const NodeContext& context) {
    return context.node.attribute<std::int64_t>("keepdims", 1) != 0;
}

// True where the output is the input itself: no axes, and the attribute that says what this means.
bool nothing_to_reduce(const NodeContext& context) {
    if (context.node.attribute<std::int64_t>("noop_with_empty_axes", 0) == 0) return false;
    return integers_from(context, 1, "axes").value_or(std::vector<std::int64_t>{}).empty();
}

ReducedShape reduced_shape(const NodeContext& context) {
    const TensorDescriptor& input = context.input(0);
    const std::vector<bool> reduced = reduced_axes(context);
    ReducedShape result;
    for (std::size_t i = 0; i < input.rank(); ++i) {
        if (reduced[i]) result.reduced *= static_cast<std::size_t>(input.shape[i]);
        if (!reduced[i]) result.output.shape.push_back(input.shape[i]);
        if (reduced[i] && keeps_axes(context)) result.output.shape.push_back(1);
    }
    const bool same_rank = result.output.rank() == input.rank() && !same_in_both_orders(result.output.shape);
    result.output.order = same_rank ? input.order : MemoryOrder::row_major;
    std::size_t step = 1;
    const std::vector<std::size_t> axes = memory_axes(input);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        const auto extent = static_cast<std::size_t>(input.shape[*axis]);
        if (extent == 1) continue;
        const bool merges = !result.loops.empty() && (result.loops.back().output_step == 0) == reduced[*axis];
        if (merges) result.loops.back().extent *= extent;
        if (!merges) result.loops.push_back({extent, reduced[*axis] ? 0 : step});
        if (!reduced[*axis]) step *= extent;
    }
    // What is left of a loop that is not there: one row, or one column that is kept.
    if (result.loops.empty()) result.loops.push_back({1, 1});
    if (result.loops.size() == 1)
        result.loops.push_back({1, result.loops.front().output_step == 0 ? 1U : 0U});
    std::reverse(result.loops.begin(), result.loops.end());
    return result;
}

// Calls visit(input element, output element) for each input element in the order of memory.
template <typename Visit>
void for_each_element(const ReducedShape& shape, const Visit& visit) {
    std::size_t input = 0;
    const auto walk = [&](const auto& self, std::size_t depth, std::size_t output) -> void {
        if (depth == shape.loops.size()) return visit(input++, output);
        for (std::size_t i = 0; i < shape.loops[depth].extent; ++i) {
            self(self, depth + 1, output + i * shape.loops[depth].output_step);
        }
    };
    walk(walk, 0, 0);
}

// Computes in doubles for float types, in the type itself for integers, in scratch memory for all outputs.
template <typename T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, T>;

struct PlainReduction {
    void (*run)(const ReducedShape& shape, const std::byte* in, std::byte* out, std::byte* scratch) = nullptr;
    std::size_t scratch_per_output = 0;
};

// One class per operator: start(), next(so far, element), finish(result, elements).
template <typename Operator, typename T>
void reduce_plain(const ReducedShape& shape, const std::byte* in, std::byte* out, std::byte* scratch) {
    const auto* from = reinterpret_cast<const T*>(in);
    const std::size_t outputs = shape.output.elements();
    const std::span<Accumulator<T>> results(reinterpret_cast<Accumulator<T>*>(scratch), outputs);
    std::fill(results.begin(), results.end(), Operator::template start<Accumulator<T>>());
    for_each_element(shape, [&](std::size_t input, std::size_t output) {
        results[output] = Operator::next(results[output], static_cast<Accumulator<T>>(from[input]));
    });
    for (std::size_t i = 0; i < outputs; ++i) {
        reinterpret_cast<T*>(out)[i] = static_cast<T>(Operator::finish(results[i], shape.reduced));
    }
}

struct Sum {
    template <typename A>
    static A start() {
        return 0;
    }
    template <typename A>
    static A next(A sum, A x) {
        return scalar::add(sum, x);
    }
    template <typename A>
    static A finish(A sum, std::size_t /*count*/) {
        return sum;
    }
};

struct Mean : Sum {
    template <typename A>
    static A finish(A sum, std::size_t count) {
        if constexpr (std::is_integral_v<A>)
            return count == 0 ? A{0} : scalar::divide(sum, static_cast<A>(count));
        else
            return sum / static_cast<A>(count);
    }
};

struct SumOfMagnitudes : Sum {
    template <typename A>
    static A next(A sum, A x) {
        return x < 0 ? scalar::subtract(sum, x) : scalar::add(sum, x);
    }
};

struct SumOfSquares : Sum {
    template <typename A>
    static A next(A sum, A x) {
        return scalar::add(sum, scalar::multiply(x, x));
    }
};

struct Norm : SumOfSquares {
    template <typename A>
    static A finish(A sum, std::size_t /*count*/) {
        return scalar::from_real<A>(std::sqrt(static_cast<double>(sum)));
    }
};

struct LogOfSum : Sum {
    template <typename A>
    static A finish(A sum, std::size_t /*count*/) {
        return scalar::from_real<A>(std::log(static_cast<double>(sum)));
    }
};

struct Product {
    template <typename A>
    static A start() {
        return 1;
    }
    template <typename A>
    static A next(A product, A x) {
        return scalar::multiply(product, x);
    }
    template <typename A>
    static A finish(A product, std::size_t /*count*/) {
        return product;
    }
};

template <typename A>
constexpr A greatest_number = std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity()
                                                                   : std::numeric_limits<A>::max();
template <typename A>
constexpr A least_number = std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity()
                                                                : std::numeric_limits<A>::lowest();

struct Greatest : Product {
    template <typename A>
    static A start() {
        return least_number<A>;
    }
    template <typename A>
    static A next(A greatest, A x) {
        return scalar::maximum(greatest, x);
    }
};

struct Least : Product {
    template <typename A>
    static A start() {
        return greatest_number<A>;
    }
    template <typename A>
    static A next(A least, A x) {
        return scalar::minimum(least, x);
    }
};

// log(sum of e^x) as m + log(sum of e^(x - m)) with m the greatest x.
template <typename T>
void log_of_exponentials(const ReducedShape& shape, const std::byte* in, std::byte* out, std::byte* scratch) {
    const auto* from = reinterpret_cast<const T*>(in);
    const std::size_t outputs = shape.output.elements();
    const std::span<double> greatest(reinterpret_cast<double*>(scratch), outputs);
    const std::span<double> sums(greatest.data() + outputs, outputs);
    std::fill(greatest.begin(), greatest.end(), least_number<double>);
    std::fill(sums.begin(), sums.end(), 0.0);
    for_each_element(shape, [&](std::size_t input, std::size_t output) {
        greatest[output] = std::max(greatest[output], static_cast<double>(from[input]));
    });
    for (double& value : greatest) value = std::isinf(value) ? 0 : value;
    for_each_element(shape, [&](std::size_t input, std::size_t output) {
        sums[output] += std::exp(static_cast<double>(from[input]) - greatest[output]);
    });
    for (std::size_t i = 0; i < outputs; ++i) {
        reinterpret_cast<T*>(out)[i] = scalar::from_real<T>(greatest[i] + std::log(sums[i]));
    }
}

template <template <typename T> typename ForType>
PlainReduction for_number(DataType type) {
    switch (type) {
        case DataType::float32:
            return ForType<float>::get();
        case DataType::float64:
            return ForType<double>::get();
        case DataType::int8:
            return ForType<std::int8_t>::get();
        case DataType::uint8:
            return ForType<std::uint8_t>::get();
        case DataType::int32:
            return ForType<std::int32_t>::get();
        case DataType::uint32:
            return ForType<std::uint32_t>::get();
        case DataType::int64:
            return ForType<std::int64_t>::get();
        case DataType::uint64:
            return ForType<std::uint64_t>::get();
        default:
            return {};
    }
}

template <typename Operator>
struct Plain {
    template <typename T>
    struct For {
        static PlainReduction get() { return {&reduce_plain<Operator, T>, sizeof(Accumulator<T>)}; }
    };
};

template <typename T>
struct LogOfExponentials {
    static PlainReduction get() { return {&log_of_exponentials<T>, 2 * sizeof(double)}; }
};

template <typename Operator>
PlainReduction plain(DataType type) {
    return for_number<Plain<Operator>::template For>(type);
}

void no_finish(std::span<float> /*results*/, std::size_t /*count*/) {}

void divide_by_count(std::span<float> results, std::size_t count) {
    for (float& value : results) value /= static_cast<float>(count);
}

void root(std::span<float> results, std::size_t /*count*/) {
    for (float& value : results) value = std::sqrt(value);
}

void logarithm(std::span<float> results, std::size_t /*count*/) {
    for (float& value : results) value = std::log(value);
}

struct ReduceOperator {
    const char* name;
    std::int64_t axes_are_input_since;
    const char* summary;
    PlainReduction (*plain)(DataType type);
    Reduction fast;  // for float32; none: the plain form serves
    float start;     // of the fast form
    void (*finish)(std::span<float> results, std::size_t count) = no_finish;
};

constexpr float infinity = std::numeric_limits<float>::infinity();

// A new operator is one line here, and one in reduce_rows.cpp where it is worth vectors.
// clang-format off
constexpr ReduceOperator operators[] = {
    {"ReduceSum", 13, "sum along axes", plain<Sum>, Reduction::sum, 0},
    {"ReduceMean", 18, "mean along axes", plain<Mean>, Reduction::sum, 0, divide_by_count},
    {"ReduceMax", 18, "greatest along axes", plain<Greatest>, Reduction::greatest, -infinity},
    {"ReduceMin", 18, "least along axes", plain<Least>, Reduction::least, infinity},
    {"ReduceProd", 18, "product along axes", plain<Product>, Reduction::product, 1},
    {"ReduceL1", 18, "sum of magnitudes along axes", plain<SumOfMagnitudes>, Reduction::sum_of_magnitudes, 0},
    {"ReduceL2", 18, "root of the sum of squares along axes", plain<Norm>, Reduction::sum_of_squares, 0, root},
    {"ReduceSumSquare", 18, "sum of squares along axes", plain<SumOfSquares>, Reduction::sum_of_squares, 0},
    {"ReduceLogSum", 18, "logarithm of the sum along axes", plain<LogOfSum>, Reduction::sum, 0, logarithm},
    {"ReduceLogSumExp", 18, "logarithm of the sum of e^x along axes", for_number<LogOfExponentials>, Reduction::none, 0},
};
// clang-format on

const ReduceOperator& operator_of(const Node& node) {
    for (const ReduceOperator& candidate : operators) {
        if (node.op_type == candidate.name) return candidate;
    }
    assert(false);
    return operators[0];
}

class ReduceKernel : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        if (!context.has_input(0)) context.refuse("expected an input, found none");
        const TensorDescriptor& input = context.input(0);
        definition_ = &operator_of(context.node);
        plain_ = definition_->plain(input.type);
        if (plain_.run == nullptr) {
            context.refuse(fmt::format("its input has a type it does not take: {}", name_of(input.type)));
        }
        Prepared prepared;
        if (nothing_to_reduce(context)) {
            prepared.outputs = {input};
            prepared.view_of = 0;
            return prepared;
        }
        shape_ = reduced_shape(context);
        shape_.output.type = input.type;
        prepared.outputs = {shape_.output};
        prepared.scratch_bytes = shape_.output.elements() * plain_.scratch_per_output;
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        plain_.run(shape_, inputs[0].data, outputs[0].data, workspace.scratch.data());
    }

  protected:
    const ReduceOperator* definition_ = nullptr;
    PlainReduction plain_;
    ReducedShape shape_;
};

class FastReduceKernel : public ReduceKernel {
  public:
    // Channels-last is as good as row-major where the output's axes come in the same order from both.
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        if (!context.has_input(0) || context.input(0).order == MemoryOrder::row_major)
            return all_row_major(context);
        const std::vector<bool> reduced = reduced_axes(context);
        const bool all_spatial =
            std::all_of(reduced.begin() + 2, reduced.end(), [](bool axis) { return axis; });
        if (keeps_axes(context) || reduced[1] || all_spatial) return keep_first_order(context);
        return all_row_major(context);
    }

    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = ReduceKernel::prepare(context);
        if (context.input(0).type == DataType::float32) fast_ = fast_reduction(definition_->fast);
        if (fast_.along_rows != nullptr) prepared.scratch_bytes = 0;
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (fast_.along_rows == nullptr) return ReduceKernel::run(inputs, outputs, workspace);
        const std::span<float> results = outputs[0].as<float>();
        std::fill(results.begin(), results.end(), definition_->start);
        if (shape_.reduced != 0) reduce(0, inputs[0].as<float>().data(), results.data());
        definition_->finish(results, shape_.reduced);
    }

  private:
    // Goes through the loops outside the two innermost; answers where the input goes on.
    const float* reduce(std::size_t depth, const float* in, float* out) const {
        const ReduceLoop& loop = shape_.loops[depth];
        if (depth + 2 == shape_.loops.size()) {
            const std::size_t columns = shape_.loops.back().extent;
            const bool rows_stay = loop.output_step != 0;
            (rows_stay ? fast_.along_rows : fast_.along_columns)(in, out, loop.extent, columns);
            return in + loop.extent * columns;
        }
        for (std::size_t i = 0; i < loop.extent; ++i) in = reduce(depth + 1, in, out + i * loop.output_step);
        return in;
    }

    ReduceFunctions fast_;
};

}  // namespace

void register_reduce(KernelRegistry& registry) {
    for (const ReduceOperator& definition : operators) {
        for (const std::int64_t since : {std::int64_t{1}, definition.axes_are_input_since}) {
            OperatorEntry entry;
            entry.op_type = definition.name;
            entry.since = since;
            entry.summary = definition.summary;
            if (since > 1) entry.value_inputs = {1};
            entry.make = make_kernel<FastReduceKernel>;
            entry.make_reference = make_kernel<ReduceKernel>;
            registry.add(std::move(entry));
        }
    }
}

}  // namespace qcalib
