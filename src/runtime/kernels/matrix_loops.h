#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/data_type.h"

namespace qcalib {

// A matrix in memory: elements from one row, one column to the next.
template <typename T>
struct Matrix {
    const T* data;
    std::int64_t row_step;
    std::int64_t column_step;
};

// y[i, j] = finish(sum over k of a[i, k] b[k, j], i, j) for [rows, inner] by [inner, columns]; `sums` holds
// one row of sums of type S. y lies row-major.
template <typename S, typename T, typename Finish>
void multiply(const Matrix<T>& a, const Matrix<T>& b, std::int64_t rows, std::int64_t inner,
              std::int64_t columns, S* sums, T* y, const Finish& finish) {
    for (std::int64_t i = 0; i < rows; ++i, y += columns) {
        std::fill_n(sums, columns, S{0});
        for (std::int64_t k = 0; k < inner; ++k) {
            const S factor = a.data[i * a.row_step + k * a.column_step];
            const T* row = b.data + k * b.row_step;
            if (b.column_step == 1) {
                for (std::int64_t j = 0; j < columns; ++j) sums[j] += factor * row[j];
            } else {
                for (std::int64_t j = 0; j < columns; ++j) sums[j] += factor * row[j * b.column_step];
            }
        }
        for (std::int64_t j = 0; j < columns; ++j) y[j] = finish(sums[j], i, j);
    }
}

// Calls `work` with a value of the C++ type to read elements of `type` as and one to sum them in: double for
// floats, unsigned (which wraps) for integers. False for another type.
template <typename Work>
bool with_number_types(DataType type, const Work& work) {
    switch (type) {
        case DataType::float32:
            work(float{}, double{});
            return true;
        case DataType::float64:
            work(double{}, double{});
            return true;
        case DataType::int32:
        case DataType::uint32:
            work(std::uint32_t{}, std::uint32_t{});
            return true;
        case DataType::int64:
        case DataType::uint64:
            work(std::uint64_t{}, std::uint64_t{});
            return true;
        default:
            return false;
    }
}

}  // namespace qcalib
