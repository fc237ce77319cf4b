#pragma once

#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/operator_harness.h"

namespace qcalib::test {

inline Tensor integers(std::vector<std::int64_t> values) {
    return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

inline Tensor reals(std::vector<float> values) {
    return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

// 0, 1, 2, ... in row-major order: tells every element apart.
template <typename T = float>
Tensor counting(Shape shape) {
    std::vector<T> values(static_cast<std::size_t>(element_count(shape)));
    std::iota(values.begin(), values.end(), T{0});
    return Tensor::of<T>(std::move(shape), values);
}

inline Tensor booleans(Shape shape, std::initializer_list<bool> values) {
    return Tensor::of<bool>(std::move(shape), std::span<const bool>(values.begin(), values.size()));
}

constexpr Kernels all_kernels[] = {Kernels::fast, Kernels::fast_channels_last, Kernels::fast_row_major,
                                   Kernels::reference, Kernels::reference_float64};

// All kinds of kernels must make exactly this shape and these numbers of output 0.
inline void check_values(const OperatorCase& test, const Shape& shape, const std::vector<double>& numbers) {
    for (const Kernels kernels : all_kernels) {
        INFO(test.op_type << ", kernels " << static_cast<int>(kernels));
        const Tensor output = run_operator(test, kernels).at(0);
        CHECK(output.shape() == shape);
        CHECK(numbers_of(output.view()) == numbers);
    }
}

}  // namespace qcalib::test
