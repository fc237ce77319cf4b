#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/matrix_loops.h"
#include "runtime/onednn.h"

namespace qcalib {

namespace {

// y = alpha a b + beta c, a and b as they are or transposed, c broadcast to [rows, columns].
struct GemmShape {
    std::int64_t rows = 0;
    std::int64_t inner = 0;
    std::int64_t columns = 0;
    bool first_transposed = false;
    bool second_transposed = false;
    float alpha = 1;
    float beta = 1;
    bool has_term = false;
    std::int64_t term_row_step = 0;  // elements of c from one row, one column to the next
    std::int64_t term_column_step = 0;

    bool term_is_bias() const {
        return alpha == 1 && beta == 1 && has_term && (term_row_step == 0 || rows == 1) &&
               (term_column_step == 1 || columns == 1);
    }
};

// c has shape [], [1], [columns], [1, columns], [rows, 1] or [rows, columns], or the like with ones.
void read_term(const NodeContext& context, GemmShape& gemm) {
    gemm.has_term = context.has_input(2);
    if (!gemm.has_term) return;
    const Shape& shape = context.input(2).shape;
    const std::int64_t columns = shape.empty() ? 1 : shape.back();
    const std::int64_t rows = shape.size() < 2 ? 1 : shape[0];
    if (shape.size() > 2 || (columns != 1 && columns != gemm.columns) || (rows != 1 && rows != gemm.rows)) {
        context.refuse(fmt::format("input C of shape {} does not broadcast to [{},{}]", to_string(shape),
                                   gemm.rows, gemm.columns));
    }
    gemm.term_column_step = columns == 1 ? 0 : 1;
    gemm.term_row_step = rows == 1 ? 0 : columns;
}

GemmShape read_gemm(const NodeContext& context) {
    if (!context.has_input(0) || !context.has_input(1)) context.refuse("inputs A and B should be there");
    const Shape& first = context.input(0).shape;
    const Shape& second = context.input(1).shape;
    GemmShape gemm;
    gemm.first_transposed = context.node.attribute<std::int64_t>("transA", 0) != 0;
    gemm.second_transposed = context.node.attribute<std::int64_t>("transB", 0) != 0;
    gemm.alpha = context.node.attribute("alpha", 1.0F);
    gemm.beta = context.node.attribute("beta", 1.0F);
    if (first.size() != 2 || second.size() != 2) {
        context.refuse(fmt::format("A and B should be matrices, found shapes {} and {}", to_string(first),
                                   to_string(second)));
    }
    gemm.rows = first[gemm.first_transposed ? 1 : 0];
    gemm.inner = first[gemm.first_transposed ? 0 : 1];
    gemm.columns = second[gemm.second_transposed ? 0 : 1];
    if (second[gemm.second_transposed ? 1 : 0] != gemm.inner) {
        context.refuse(fmt::format(
            "the inner dimensions differ: A has shape {} (transA={}), B {} (transB={})", to_string(first),
            gemm.first_transposed ? 1 : 0, to_string(second), gemm.second_transposed ? 1 : 0));
    }
    read_term(context, gemm);
    return gemm;
}

void require_types(const NodeContext& context, const GemmShape& gemm) {
    const DataType type = context.input(0).type;
    for (std::size_t i = 0; i < context.input_count(); ++i) {
        if (!context.has_input(i) || context.input(i).type == type) continue;
        context.refuse(fmt::format("inputs should be of one type, found {} and {}", name_of(type),
                                   name_of(context.input(i).type)));
    }
    if (!with_number_types(type, [](auto, auto) {})) {
        context.refuse(
            fmt::format("inputs should be float32 or integers of 32 or 64 bits, found {}", name_of(type)));
    }
    if (!is_floating(type) && (gemm.alpha != 1 || gemm.beta != 1)) {
        context.refuse("attributes 'alpha' and 'beta' should be 1 for integers");
    }
}

class GemmReference : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        gemm_ = read_gemm(context);
        require_types(context, gemm_);
        type_ = context.input(0).type;
        Prepared prepared;
        prepared.outputs = {{type_, {gemm_.rows, gemm_.columns}, MemoryOrder::row_major}};
        prepared.scratch_bytes = static_cast<std::size_t>(gemm_.columns) * sizeof(double);
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        with_number_types(type_, [&](auto element, auto sum) {
            run_loops<decltype(element), decltype(sum)>(inputs, outputs[0], workspace);
        });
    }

  protected:
    const GemmShape& gemm() const { return gemm_; }

  private:
    template <typename T, typename S>
    void run_loops(std::span<const TensorView> inputs, MutableTensorView output, Workspace& workspace) const {
        const auto* term = gemm_.has_term ? reinterpret_cast<const T*>(inputs[2].data) : nullptr;
        const auto finish = [&](S sum, std::int64_t i, std::int64_t j) {
            const S product = gemm_.alpha == 1 ? sum : static_cast<S>(gemm_.alpha * sum);
            if (term == nullptr) return static_cast<T>(product);
            const S added = term[i * gemm_.term_row_step + j * gemm_.term_column_step];
            return static_cast<T>(product + (gemm_.beta == 1 ? added : static_cast<S>(gemm_.beta * added)));
        };
        const auto matrix = [](TensorView view, bool transposed) {
            const std::int64_t row = view.descriptor->shape[1];
            return Matrix<T>{reinterpret_cast<const T*>(view.data), transposed ? 1 : row,
                             transposed ? row : 1};
        };
        multiply(matrix(inputs[0], gemm_.first_transposed), matrix(inputs[1], gemm_.second_transposed),
                 gemm_.rows, gemm_.inner, gemm_.columns, reinterpret_cast<S*>(workspace.scratch.data()),
                 reinterpret_cast<T*>(output.data), finish);
    }

    GemmShape gemm_;
    DataType type_ = DataType::undefined;
};

// oneDNN, with a constant B packed; what is no plain bias is added in a pass of its own.
class Gemm : public GemmReference {
  public:
    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = GemmReference::prepare(context);
        primitive_.reset();
        const bool empty = gemm().rows == 0 || gemm().inner == 0 || gemm().columns == 0;
        if (empty || context.input(0).type != DataType::float32) return prepared;
        onednn::MatMulShape shape;
        shape.first = context.input(0).shape;
        shape.second = context.input(1).shape;
        shape.output = {gemm().rows, gemm().columns};
        shape.first_transposed = gemm().first_transposed;
        shape.second_transposed = gemm().second_transposed;
        shape.bias = gemm().term_is_bias();
        primitive_ = onednn::make_matmul(shape, {context.inputs[1], context.weights});
        if (primitive_ == nullptr) return prepared;
        prepared.scratch_bytes = primitive_->scratch_bytes();
        if (primitive_->has_packed_weights()) prepared.packed = {1};
        return prepared;
    }

    std::unique_ptr<KernelState> make_state() const override {
        return primitive_ == nullptr ? nullptr : primitive_->make_state();
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (primitive_ == nullptr) return GemmReference::run(inputs, outputs, workspace);
        const bool is_bias = gemm().term_is_bias();
        onednn::Operands operands;
        operands.source = inputs[0].data;
        operands.weights = inputs[1].data;
        operands.bias = is_bias ? inputs[2].data : nullptr;
        operands.target = outputs[0].data;
        primitive_->execute(operands, workspace);
        if (gemm().has_term && !is_bias) {
            add_term(inputs[2].as<float>().data(), outputs[0].as<float>().data());
        } else if (gemm().alpha != 1) {
            for (float& y : outputs[0].as<float>()) y *= gemm().alpha;
        }
    }

  private:
    void add_term(const float* term, float* y) const {
        const auto [alpha, beta] = std::pair(gemm().alpha, gemm().beta);
        for (std::int64_t i = 0; i < gemm().rows; ++i, y += gemm().columns) {
            const float* row = term + i * gemm().term_row_step;
            for (std::int64_t j = 0; j < gemm().columns; ++j) {
                y[j] = alpha * y[j] + beta * row[j * gemm().term_column_step];
            }
        }
    }

    std::unique_ptr<onednn::Primitive> primitive_;
};

}  // namespace

void register_gemm(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "Gemm",
                  .since = 7,
                  .summary = "alpha A B + beta C, with A and B transposed at will",
                  .make = make_kernel<Gemm>,
                  .make_reference = make_kernel<GemmReference>});
}

}  // namespace qcalib
