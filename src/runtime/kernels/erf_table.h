#pragma once

#include <array>

namespace qcalib {

// The error function on [0, 4] as 32 polynomials of degree 4, one per segment of width 1/8: with x = (k + t)
// / 8, erf(x) = sum over i of coefficients[i][k] t^i. Error below 5e-8; in the first segment, where
// coefficients[0] is 0, relative to erf(x) below 2e-7.
struct ErfTable {
    static constexpr float end = 4;
    static constexpr float width = 0.125F;
    std::array<std::array<float, 32>, 5> coefficients;
};

const ErfTable& erf_table();

}  // namespace qcalib
