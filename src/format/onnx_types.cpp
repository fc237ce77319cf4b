#include "format/onnx_types.h"

namespace qcalib {

std::optional<IntegerType> integer_type(const std::string& name) {
    for (const int bits : {2, 4, 8, 16, 32}) {
        if (name == "int" + std::to_string(bits)) return IntegerType{bits, true};
        if (name == "uint" + std::to_string(bits)) return IntegerType{bits, false};
    }
    return std::nullopt;
}

int float_bits(const std::string& name) {
    if (name == "float32" || name == "float") return 32;
    if (name == "float16" || name == "bfloat16") return 16;
    if (name.starts_with("float8e")) return 8;
    return 0;
}

}  // namespace qcalib
