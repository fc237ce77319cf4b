#pragma once

#include <cstddef>

namespace qcalib {

// What is done to each element and how they are put together.
enum class Reduction { none, sum, sum_of_magnitudes, sum_of_squares, greatest, least, product };

// out[row] = combination of out[row] and the row's `columns` floats.
// out[column] = combination of out[column] and the column's `rows` floats.
struct ReduceFunctions {
    void (*along_rows)(const float* in, float* out, std::size_t rows, std::size_t columns) = nullptr;
    void (*along_columns)(const float* in, float* out, std::size_t rows, std::size_t columns) = nullptr;
};

// The functions with the best instructions in force; both nullptr for `none`.
ReduceFunctions fast_reduction(Reduction reduction);

}  // namespace qcalib
