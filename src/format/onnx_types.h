#pragma once

#include <optional>
#include <string>

namespace qcalib {

// An integer type of ONNX by its name: "int4", "uint8", ... of 2, 4, 8, 16 or 32 bits.
struct IntegerType {
    int bits = 8;
    bool is_signed = false;
};
std::optional<IntegerType> integer_type(const std::string& name);

// Bits of a float type by its name ("float16", "bfloat16", "float8e4m3fn", ...), or 0.
int float_bits(const std::string& name);

}  // namespace qcalib
