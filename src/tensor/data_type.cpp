#include "tensor/data_type.h"

#include "tensor/elements.h"

namespace qcalib {

std::size_t size_of(DataType type) {
    switch (type) {
        case DataType::float64:
        case DataType::int64:
        case DataType::uint64:
            return 8;
        case DataType::float32:
        case DataType::int32:
        case DataType::uint32:
            return 4;
        case DataType::float16:
        case DataType::bfloat16:
        case DataType::int16:
        case DataType::uint16:
            return 2;
        case DataType::int8:
        case DataType::uint8:
        case DataType::boolean:
            return 1;
        case DataType::string:
            return sizeof(StringElement);
        case DataType::sequence:
        case DataType::optional:
            return sizeof(TensorElement);
        case DataType::undefined:
            return 0;
    }
    return 0;
}

std::string_view name_of(DataType type) {
    switch (type) {
        case DataType::undefined:
            return "undefined";
        case DataType::float32:
            return "float32";
        case DataType::float64:
            return "float64";
        case DataType::float16:
            return "float16";
        case DataType::bfloat16:
            return "bfloat16";
        case DataType::int8:
            return "int8";
        case DataType::uint8:
            return "uint8";
        case DataType::int16:
            return "int16";
        case DataType::uint16:
            return "uint16";
        case DataType::int32:
            return "int32";
        case DataType::uint32:
            return "uint32";
        case DataType::int64:
            return "int64";
        case DataType::uint64:
            return "uint64";
        case DataType::boolean:
            return "bool";
        case DataType::string:
            return "string";
        case DataType::sequence:
            return "sequence";
        case DataType::optional:
            return "optional";
    }
    return "undefined";
}

bool is_numeric(DataType type) {
    return type != DataType::undefined && type != DataType::string && type != DataType::sequence &&
           type != DataType::optional;
}

bool is_floating(DataType type) {
    return type == DataType::float32 || type == DataType::float64 || type == DataType::float16 ||
           type == DataType::bfloat16;
}

}  // namespace qcalib
