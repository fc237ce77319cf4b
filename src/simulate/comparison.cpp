#include "simulate/comparison.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "simulate/element_kernels.h"

namespace qcalib {

namespace {

constexpr std::size_t many = 5;

// How many elements are before that at `place`: greater, or equal and earlier.
std::size_t rank_of(std::span<const float> row, std::size_t place) {
    std::size_t before = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
        if (row[i] > row[place] || (row[i] == row[place] && i < place)) ++before;
    }
    return before;
}

}  // namespace

void ErrorSums::add(const ErrorSums& next) {
    elements += next.elements;
    left_out += next.left_out;
    signal += next.signal;
    other += next.other;
    product += next.product;
    squared_error += next.squared_error;
    absolute_error += next.absolute_error;
    greatest_error = std::max(greatest_error, next.greatest_error);
}

double ErrorSums::sqnr() const {
    if (squared_error == 0) return std::numeric_limits<double>::infinity();
    return 10 * std::log10(signal / squared_error);
}

double ErrorSums::cosine() const {
    if (signal == 0 && other == 0) return 1;
    if (signal == 0 || other == 0) return 0;
    return std::clamp(product / std::sqrt(signal) / std::sqrt(other), -1.0, 1.0);
}

double ErrorSums::mean_error() const {
    return elements == 0 ? 0 : absolute_error / static_cast<double>(elements);
}

double ErrorSums::relative_error() const {
    if (squared_error == 0) return 0;
    return signal == 0 ? std::numeric_limits<double>::infinity() : squared_error / signal;
}

ErrorSums compare(TensorView first, TensorView second) {
    assert(first.descriptor->type == DataType::float32 && second.descriptor->type == DataType::float32);
    assert(first.descriptor->shape == second.descriptor->shape);
    Tensor moved;
    if (first.descriptor->order != second.descriptor->order &&
        !same_in_both_orders(first.descriptor->shape)) {
        moved = Tensor(*first.descriptor);
        copy_to_order(second, moved.mutable_view());
        second = moved.view();
    }
    const std::size_t count = first.elements();
    const ElementDifferences found =
        compare_elements(first.as<float>().data(), second.as<float>().data(), count);
    return {found.compared, count - found.compared, found.first_squares,  found.second_squares,
            found.products, found.squared_error,    found.absolute_error, found.greatest_error};
}

void TopAgreement::add(const TopAgreement& next) {
    has_five = (rows == 0 || has_five) && (next.rows == 0 || next.has_five);
    rows += next.rows;
    top1 += next.top1;
    top5 += next.top5;
}

TopAgreement compare_tops(TensorView first, TensorView second) {
    TopAgreement result;
    const Shape& shape = first.descriptor->shape;
    if (shape.size() != 2 || shape[1] < 2 || first.descriptor->type != DataType::float32) return result;
    const auto columns = static_cast<std::size_t>(shape[1]);
    result.has_five = columns > many;
    const std::span<const float> a = first.as<float>();
    const std::span<const float> b = second.as<float>();
    for (std::size_t row = 0; row < static_cast<std::size_t>(shape[0]); ++row) {
        const std::span<const float> scores = a.subspan(row * columns, columns);
        const auto best =
            static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
        const std::size_t rank = rank_of(b.subspan(row * columns, columns), best);
        ++result.rows;
        result.top1 += rank == 0 ? 1 : 0;
        result.top5 += rank < many ? 1 : 0;
    }
    return result;
}

}  // namespace qcalib
