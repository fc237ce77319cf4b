#pragma once

#include <cstddef>

namespace qcalib {

// The mean of some floats, in two parts because one float is too coarse where the mean is far from zero, and
// 1 / sqrt(variance + epsilon).
struct Moments {
    float mean = 0;
    float correction = 0;  // the mean is mean + correction
    float inverse_deviation = 0;
};

// What normalization does to float32 rows, with the best instructions in force. Outputs may be inputs.
struct NormalizationFunctions {
    // Over `count` floats: a first mean, then the sums of distances from it and of their squares.
    Moments (*moments)(const float* in, std::size_t count, double epsilon) = nullptr;
    // out[i] = (in[i] - mean) inverse_deviation scale[i] + bias[i]; no bias where nullptr.
    void (*apply_along_row)(const float* in, float* out, std::size_t count, const Moments& moments,
                            const float* scale, const float* bias) = nullptr;
    // out[i] = (in[i] - mean) inverse_deviation scale + bias
    void (*apply)(const float* in, float* out, std::size_t count, const Moments& moments, float scale,
                  float bias) = nullptr;
    // For each column, adds the distances of its rows from mean[column] to sums, their squares to squares.
    void (*column_distances)(const float* in, std::size_t rows, std::size_t columns, const float* mean,
                             float* sums, float* squares) = nullptr;
    // out[column] = (in[column] - mean[column]) factor[column] + shift[column] for each row.
    void (*apply_to_columns)(const float* in, float* out, std::size_t rows, std::size_t columns,
                             const float* mean, const float* factor, const float* shift) = nullptr;
};

NormalizationFunctions fast_normalization();

}  // namespace qcalib
