#pragma once

#include <memory>

#include "runtime/kernel.h"

namespace qcalib {

// Kernels along one axis that ONNX's operators here do not have; row-major, each the fast and the plain form
// at once.

// x / (bias + alpha * sum of x^2 of the channels at most `radius` away)^beta along the last axis.
std::unique_ptr<Kernel> make_local_response_kernel();
// Sums along `axis` of the elements up to each; `exclusive`: without it; `reverse`: from the end.
std::unique_ptr<Kernel> make_cumulative_sum_kernel();
// The first place of the greatest (or least) element along `axis`, as int64 (`wide`) or int32.
std::unique_ptr<Kernel> make_extreme_index_kernel();
// The `k` greatest elements along the last axis and their places (int32), the greatest first, equal ones in
// their order.
std::unique_ptr<Kernel> make_top_kernel();
// Input 0 are indices; a new `axis` of `depth` has input 1 at the index and input 2 elsewhere.
std::unique_ptr<Kernel> make_one_hot_kernel();

}  // namespace qcalib
