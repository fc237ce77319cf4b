#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace qcalib {

// "CONV_2D" of 3, "INSTANCE_NORM" of -2; "OPERATOR_<code>" for one that is not known. Negative codes are
// Circle's own.
std::string circle_operator_name(std::int32_t code);

// "float32", "int4", "MXFP4", "type 99": what a TensorType is called; and the type, undefined where we have
// none like it.
std::string circle_type_name(std::int32_t code);
DataType data_type_of_circle(std::int32_t code);

// An operator's options as they lie in the file.
struct CircleOptions {
    std::uint8_t type = 0;                 // BuiltinOptions
    const std::uint8_t* table = nullptr;   // a table whose start is verified, or nullptr
    std::span<const std::uint8_t> buffer;  // all of the flatbuffer, which the table lies in
};

// Sets the node's attributes to the fields of its options (schema defaults where the file leaves them out);
// those of the operator's usual table where it has none. Throws Error where the table is damaged or another
// operator's.
void read_circle_options(std::int32_t operator_code, const CircleOptions& options, Node& node);

}  // namespace qcalib
