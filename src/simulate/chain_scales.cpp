#include "simulate/chain_scales.h"

#include <algorithm>
#include <cmath>

namespace qcalib {

namespace {

constexpr double no_range = 1e-15;  // TIDL takes a smaller one for zero

double half_codes(int bits) {
    return std::ldexp(1.0, bits - 1);
}

}  // namespace

double chain_scale(int bits, bool is_signed, double limit) {
    if (limit < no_range) return 1;
    return (is_signed ? half_codes(bits) : 2 * half_codes(bits)) / limit;
}

double network_input_scale(int bits, double limit) {
    if (limit < no_range) return 1;
    return half_codes(bits) / std::exp2(std::ceil(std::log2(limit)));
}

double aligned_weight_scale(double weight, double input, double output) {
    const double ratio = weight * input / output;
    return output * std::exp2(std::floor(std::log2(ratio) + 1e-12)) / input;
}

double SplitBias::value(double bias, double sums) const {
    const double factor = std::trunc(std::trunc(bias * sums) / unit);
    return std::clamp(factor, -half_codes(16), half_codes(16) - 1) * unit;
}

SplitBias split_bias(double limit, double sums, int bits, bool signed_input) {
    const double greatest_unit = signed_input ? 127 : 255;
    const double ratio = sums / chain_scale(bits, true, limit);
    return {ratio > greatest_unit ? greatest_unit : 1};
}

}  // namespace qcalib
