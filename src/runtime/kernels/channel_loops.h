#pragma once

#include <cstddef>

#include "tensor/tensor.h"

// Vectorised loops over channels, with the best instructions in force.
namespace qcalib {

// y[i] = x[i] * scale[i mod period] + shift[i mod period] for `count` floats; y may be x.
void scale_and_shift(const float* x, const float* scale, const float* shift, std::size_t period, float* y,
                     std::size_t count);

// y[i] = x[i] * scale + shift for `count` floats; y may be x.
void scale_and_shift(const float* x, float scale, float shift, float* y, std::size_t count);

// Adds bias[c] to each element of channel c of a float tensor of rank 3 to 5; `scratch` holds
// bias_scratch(channels) floats.
void add_bias(const float* bias, MutableTensorView tensor, float* scratch);
std::size_t bias_scratch(std::size_t channels);

enum class Fold { sum, max };

// The sum (added up in float over blocks, in double between them) or the greatest of `count` floats.
double fold_row(Fold fold, const float* x, std::size_t count);

// As fold_row for each of `columns` columns of [rows, columns], into `totals`; `lanes` holds
// fold_lanes(columns) floats.
void fold_columns(Fold fold, const float* x, std::size_t rows, std::size_t columns, float* lanes,
                  double* totals);
std::size_t fold_lanes(std::size_t columns);

}  // namespace qcalib
