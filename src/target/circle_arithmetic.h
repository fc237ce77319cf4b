#pragma once

#include <cstdint>

#include "encoding/encoding.h"
#include "target/circle_rules.h"
#include "tensor/range.h"
#include "tensor/tensor.h"

namespace qcalib {

// How Samsung ONE's quantizer makes the codes of a constant.
enum class CircleCoding : std::uint8_t {
    own,    // clipped to the grid, then counted from its lower end: weights, operands
    given,  // divided by a scale that another tensor has, then moved by the zero point
    sign,   // one code above or below the zero point: the scale is the value itself
    bias,   // divided by the product of two scales
};

// The widths of biases beside activations of 8 and 16 bits.
constexpr int circle_bias_bits_8 = 32;
constexpr int circle_bias_bits_16 = 64;

// luci's encoding of a range of float32 values, `bits` 8 (uint8, asymmetric) or 16 (int16, symmetric: zero is
// code 32768 of Encoding's, codes -32767 to 32767 are used). The file's scale is `scale` as float32.
Encoding circle_encoding(Range range, int bits, const CircleRules& rules);

// One with such a scale and zero point, `bits` 8, 16, 32 or 64.
Encoding circle_encoding_of(double scale, std::int64_t zero_point, int bits);

// The encoding of a single value whose sign is the code.
Encoding circle_sign_encoding(float value, int bits);

// Codes of at most 16 bits and biases are symmetric around 0 in the file (int16, int32, int64), or lie from 0
// on (uint8): the zero point as the file has it.
std::int64_t circle_zero_point(const Encoding& encoding);

// A float32 constant as the integers of a file: uint8, int16, int32 or int64 by the width of its encodings,
// row-major. `axis` of the encodings is that of the tensor. What a code cannot hold is clipped.
Tensor circle_codes(const Tensor& value, const TensorEncoding& encoding, CircleCoding coding);

// What the codes stand for, float32.
Tensor circle_values(const Tensor& codes, const TensorEncoding& encoding);

}  // namespace qcalib
