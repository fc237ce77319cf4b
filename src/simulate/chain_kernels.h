#pragma once

#include "runtime/kernel_registry.h"

namespace qcalib {

// The domain of the integer chain's own operators. Codes are whole numbers in float32 tensors; sums of them
// are made in double and are exact up to 2^53. Numbers are attributes of type float64:
//   ToCodes     x -> clamp(round(x * scale)); grid [scale, least, greatest], rounding (ValueRounding)
//   FromCodes   q -> q / scale; grid [scale]
//   Requantize  a1, a2, ... -> clamp(round((sum or product of m_i a_i + bias) * factor)); factors [inputs, 1
//   or
//               channels], bias [0, 1 or channels], axis of the channels, combine ("sum", "product"), whole
//               (1: the sum is first rounded to a whole number, half up), grid [factor, least, greatest],
//               rounding (ShiftRounding)
//   Average     q -> clamp(round(round_half_up(mean over the pixels of a channel * unit) * factor)); unit
//   [1],
//               grid, rounding as Requantize
//   Digits      q -> its digits in base `base`, the least first, all from 0 to base - 1 but the last
inline constexpr std::string_view chain_domain = "qcalib.chain";

// The built-in operators and those of the chain.
const KernelRegistry& chain_kernels();

}  // namespace qcalib
