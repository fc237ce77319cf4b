#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace qcalib {

// What tells two tensors apart, summed over as many as wanted. Elements where either is no number or beyond
// 1e30 are left out.
struct ErrorSums {
    std::uint64_t elements = 0;
    std::uint64_t left_out = 0;
    double signal = 0;         // squares of the first
    double other = 0;          // squares of the second
    double product = 0;        // first * second
    double squared_error = 0;  // of the difference
    double absolute_error = 0;
    double greatest_error = 0;

    void add(const ErrorSums& next);
    bool empty() const { return elements == 0; }
    // 10 log10(signal / squared error) in decibels; infinite where nothing differs, minus infinity where
    // there is no signal.
    double sqnr() const;
    // Signed; 1 where both are zero throughout.
    double cosine() const;
    double mean_error() const;
    // squared error / signal; 0 where nothing differs, infinite where there is no signal.
    double relative_error() const;
};

// Both float32 and of one shape, in any memory orders.
ErrorSums compare(TensorView first, TensorView second);

// Whether classifiers agree. For outputs of rank 2 with one row of more than one number, or several rows
// of a batch.
struct TopAgreement {
    std::uint64_t rows = 0;
    std::uint64_t top1 = 0;  // the greatest of both stands at the same place
    std::uint64_t top5 = 0;  // the greatest of the first is among the five greatest of the second
    bool has_five = true;    // there are more than five numbers

    void add(const TopAgreement& next);
};

// No rows where the shape is none of a classifier's. Of equals the one that comes first is the greater.
TopAgreement compare_tops(TensorView first, TensorView second);

}  // namespace qcalib
