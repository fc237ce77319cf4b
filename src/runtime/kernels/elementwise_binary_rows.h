#pragma once

#include <cstddef>

namespace qcalib {

// Rows of columns of two operands, of which each may be repeated along rows or columns (step 0), to a dense
// output.
struct BinaryBlock {
    const std::byte* a = nullptr;
    const std::byte* b = nullptr;
    std::byte* out = nullptr;
    std::size_t rows = 1;
    std::size_t columns = 1;
    std::ptrdiff_t a_row = 0;  // steps in elements
    std::ptrdiff_t a_column = 1;
    std::ptrdiff_t b_row = 0;
    std::ptrdiff_t b_column = 1;
};

// out = f(a, b), element by element; `out` may be a dense operand.
using BinaryBlockFunction = void (*)(const BinaryBlock& block);

enum class BinaryFunction { none, add, subtract, multiply, divide, maximum, minimum, power, parametric_relu };

// The float32 function with the best instructions in force for columns of steps 1, or of step 0 where
// `a_repeated` or `b_repeated` says so; nullptr where there is none.
BinaryBlockFunction fast_binary_block(BinaryFunction function, bool a_repeated, bool b_repeated);

}  // namespace qcalib
