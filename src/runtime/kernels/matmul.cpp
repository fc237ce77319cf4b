#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/matrix_loops.h"
#include "runtime/onednn.h"

namespace qcalib {

namespace {

// A node's product with as few batch dimensions as it can be told in.
struct Product {
    onednn::MatMulShape shape;  // all of one rank, at least 2
    Shape output;               // what the node answers: 1-D operands leave no dimension
    std::int64_t rows = 0;
    std::int64_t inner = 0;
    std::int64_t columns = 0;
    std::vector<std::int64_t> first_offsets;  // per batch: where its matrix begins, in elements
    std::vector<std::int64_t> second_offsets;
};

enum class Repeated : std::uint8_t { neither, first, second };

struct BatchDimension {
    std::int64_t size;
    Repeated repeated;
};

// The batch dimensions of two operands; neighbours that repeat the same operand become one.
std::vector<BatchDimension> batch_dimensions(std::span<const std::int64_t> first,
                                             std::span<const std::int64_t> second,
                                             std::span<const std::int64_t> output) {
    std::vector<BatchDimension> dimensions;
    const auto size_at = [&](std::span<const std::int64_t> shape, std::size_t i) {
        const std::size_t missing = output.size() - shape.size();
        return i < missing ? 1 : shape[i - missing];
    };
    for (std::size_t i = 0; i < output.size(); ++i) {
        if (output[i] == 1) continue;
        Repeated repeated = Repeated::neither;
        if (size_at(first, i) == 1) repeated = Repeated::first;
        if (size_at(second, i) == 1) repeated = Repeated::second;
        if (!dimensions.empty() && dimensions.back().repeated == repeated) {
            dimensions.back().size *= output[i];
        } else {
            dimensions.push_back({output[i], repeated});
        }
    }
    return dimensions;
}

// Where each batch's matrix of an operand begins.
std::vector<std::int64_t> matrix_offsets(std::span<const BatchDimension> dimensions, Repeated operand,
                                         std::int64_t matrix_elements) {
    std::vector<std::int64_t> offsets{0};
    std::int64_t step = matrix_elements;
    for (auto dimension = dimensions.rbegin(); dimension != dimensions.rend(); ++dimension) {
        const bool moves = dimension->repeated != operand;
        const std::size_t inner = offsets.size();
        for (std::int64_t i = 1; i < dimension->size; ++i) {
            for (std::size_t j = 0; j < inner; ++j) offsets.push_back(offsets[j] + (moves ? i * step : 0));
        }
        if (moves) step *= dimension->size;
    }
    return offsets;
}

Product read_product(const NodeContext& context) {
    if (!context.has_input(0) || !context.has_input(1)) context.refuse("inputs 0 and 1 should be there");
    Shape first = context.input(0).shape;
    Shape second = context.input(1).shape;
    const auto refuse = [&](const char* what) {
        context.refuse(fmt::format("{}: shapes {} and {}", what, to_string(first), to_string(second)));
    };
    if (first.empty() || second.empty()) refuse("a scalar cannot be multiplied as a matrix");
    const bool first_is_row = first.size() == 1;
    const bool second_is_column = second.size() == 1;
    if (first_is_row) first.insert(first.begin(), 1);
    if (second_is_column) second.push_back(1);

    Product product;
    product.rows = first[first.size() - 2];
    product.inner = first.back();
    product.columns = second.back();
    if (second[second.size() - 2] != product.inner) refuse("the inner dimensions differ");
    const std::span first_batch = std::span(first).first(first.size() - 2);
    const std::span second_batch = std::span(second).first(second.size() - 2);
    const auto batch = broadcast_shapes(first_batch, second_batch);
    if (!batch) refuse("the batch dimensions do not broadcast");
    product.output = *batch;
    if (!first_is_row) product.output.push_back(product.rows);
    if (!second_is_column) product.output.push_back(product.columns);
    if (element_count(*batch) == 0) return product;

    std::vector<BatchDimension> dimensions = batch_dimensions(first_batch, second_batch, *batch);
    if (!dimensions.empty() &&
        dimensions.back().repeated == Repeated::second) {  // they are so many more rows
        product.rows *= dimensions.back().size;
        dimensions.pop_back();
    }
    for (const auto& [size, repeated] : dimensions) {
        product.shape.first.push_back(repeated == Repeated::first ? 1 : size);
        product.shape.second.push_back(repeated == Repeated::second ? 1 : size);
        product.shape.output.push_back(size);
    }
    product.shape.first.insert(product.shape.first.end(), {product.rows, product.inner});
    product.shape.second.insert(product.shape.second.end(), {product.inner, product.columns});
    product.shape.output.insert(product.shape.output.end(), {product.rows, product.columns});
    product.first_offsets = matrix_offsets(dimensions, Repeated::first, product.rows * product.inner);
    product.second_offsets = matrix_offsets(dimensions, Repeated::second, product.inner * product.columns);
    return product;
}

class MatMulReference : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        product_ = read_product(context);
        type_ = context.input(0).type;
        if (context.input(1).type != type_ || !with_number_types(type_, [](auto, auto) {})) {
            context.refuse(
                fmt::format("inputs should both be float32 or both of one 32 or 64 bit integer type, found "
                            "{} and {}",
                            name_of(type_), name_of(context.input(1).type)));
        }
        Prepared prepared;
        prepared.outputs = {{type_, product_.output, MemoryOrder::row_major}};
        prepared.scratch_bytes = static_cast<std::size_t>(product_.columns) * sizeof(double);
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        with_number_types(type_, [&](auto element, auto sum) {
            run_loops<decltype(element), decltype(sum)>(inputs, outputs[0], workspace);
        });
    }

  protected:
    const Product& product() const { return product_; }

  private:
    template <typename T, typename S>
    void run_loops(std::span<const TensorView> inputs, MutableTensorView output, Workspace& workspace) const {
        const auto* first = reinterpret_cast<const T*>(inputs[0].data);
        const auto* second = reinterpret_cast<const T*>(inputs[1].data);
        auto* target = reinterpret_cast<T*>(output.data);
        auto* sums = reinterpret_cast<S*>(workspace.scratch.data());
        const Product& p = product_;
        for (std::size_t i = 0; i < p.first_offsets.size(); ++i, target += p.rows * p.columns) {
            multiply(Matrix<T>{first + p.first_offsets[i], p.inner, 1},
                     Matrix<T>{second + p.second_offsets[i], p.columns, 1}, p.rows, p.inner, p.columns, sums,
                     target, [](S value, std::int64_t, std::int64_t) { return static_cast<T>(value); });
        }
    }

    Product product_;
    DataType type_ = DataType::undefined;
};

// oneDNN, with a constant second operand packed; where it has no fast code for the batches, matrix by matrix.
class MatMul : public MatMulReference {
  public:
    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = MatMulReference::prepare(context);
        primitive_.reset();
        const bool empty = element_count(product().output) == 0 || product().inner == 0;
        if (empty || context.input(0).type != DataType::float32) return prepared;
        primitive_ = onednn::make_matmul(product().shape, {context.inputs[1], context.weights});
        one_by_one_ = primitive_ == nullptr;
        if (one_by_one_) primitive_ = make_for_one_matrix(context);
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
        if (primitive_ == nullptr) return MatMulReference::run(inputs, outputs, workspace);
        onednn::Operands operands;
        operands.source = inputs[0].data;
        operands.weights = inputs[1].data;
        operands.target = outputs[0].data;
        if (!one_by_one_) return primitive_->execute(operands, workspace);
        const auto bytes = [](std::int64_t elements) {
            return elements * static_cast<std::int64_t>(sizeof(float));
        };
        for (std::size_t i = 0; i < product().first_offsets.size(); ++i) {
            operands.source = inputs[0].data + bytes(product().first_offsets[i]);
            operands.weights = inputs[1].data + bytes(product().second_offsets[i]);
            primitive_->execute(operands, workspace);
            operands.target += bytes(product().rows * product().columns);
        }
    }

  private:
    std::unique_ptr<onednn::Primitive> make_for_one_matrix(const NodeContext& context) const {
        onednn::MatMulShape one;
        one.first = {product().rows, product().inner};
        one.second = {product().inner, product().columns};
        one.output = {product().rows, product().columns};
        InputInfo second;
        second.descriptor = context.input(1);
        return onednn::make_matmul(one, {second, context.weights});
    }

    std::unique_ptr<onednn::Primitive> primitive_;
    bool one_by_one_ = false;
};

}  // namespace

void register_matmul(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "MatMul",
                  .since = 1,
                  .summary = "product of matrices as numpy.matmul has it",
                  .make = make_kernel<MatMul>,
                  .make_reference = make_kernel<MatMulReference>});
}

}  // namespace qcalib
