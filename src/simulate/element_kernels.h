#pragma once

#include <cstddef>
#include <cstdint>

#include "target/simulation_rule.h"

namespace qcalib {

// Magnitudes from here on are masks: they are compared and counted nowhere.
constexpr double greatest_compared = 1e30;

// A grid as the kernels take it: codes count from the grid's zero.
struct CodeGrid {
    double scale = 1;
    double least = 0;
    double greatest = 0;
};

// What one call of quantize_elements found.
struct ElementChanges {
    std::uint64_t clipped = 0;
    double signal = 0;
    double error = 0;
};

// The sums over pairs (x, y) of one call of compare_elements.
struct ElementDifferences {
    std::uint64_t compared = 0;
    double first_squares = 0;   // x^2
    double second_squares = 0;  // y^2
    double products = 0;        // x * y
    double squared_error = 0;   // (x - y)^2
    double absolute_error = 0;  // |x - y|
    double greatest_error = 0;
};

// The vector kernels; what they answer depends on the instruction set alone.
ElementChanges quantize_elements(float* elements, std::size_t count, const CodeGrid& grid,
                                 ValueRounding rounding);
ElementDifferences compare_elements(const float* first, const float* second, std::size_t count);

}  // namespace qcalib
