#pragma once

#include <cstdint>

#include "tensor/data_type.h"

namespace qcalib {

// Calls `function.operator()<T>()` with the C++ type of a numeric `type`. False for half types, bool and
// string, for which it is not called.
template <typename Function>
bool with_numeric_type(DataType type, Function&& function) {
    switch (type) {
        case DataType::float32:
            function.template operator()<float>();
            return true;
        case DataType::float64:
            function.template operator()<double>();
            return true;
        case DataType::int8:
            function.template operator()<std::int8_t>();
            return true;
        case DataType::uint8:
            function.template operator()<std::uint8_t>();
            return true;
        case DataType::int16:
            function.template operator()<std::int16_t>();
            return true;
        case DataType::uint16:
            function.template operator()<std::uint16_t>();
            return true;
        case DataType::int32:
            function.template operator()<std::int32_t>();
            return true;
        case DataType::uint32:
            function.template operator()<std::uint32_t>();
            return true;
        case DataType::int64:
            function.template operator()<std::int64_t>();
            return true;
        case DataType::uint64:
            function.template operator()<std::uint64_t>();
            return true;
        default:
            return false;
    }
}

}  // namespace qcalib
