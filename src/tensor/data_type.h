#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace qcalib {

enum class DataType : std::uint8_t {
    undefined,
    float32,
    float64,
    float16,
    bfloat16,
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    boolean,
    string,
    sequence,  // of tensors
    optional,  // a tensor or a sequence, or none
};

// Bytes of one element in memory; 0 for undefined.
std::size_t size_of(DataType type);

// "float32", "int64", "bool", ...
std::string_view name_of(DataType type);

// float32, float64, float16 or bfloat16.
bool is_floating(DataType type);

// A type of numbers or bools: what files of elements can hold.
bool is_numeric(DataType type);

// The type tag of a C++ type: data_type_of<float>() is float32.
template <typename T>
constexpr DataType data_type_of();
template <>
constexpr DataType data_type_of<float>() {
    return DataType::float32;
}
template <>
constexpr DataType data_type_of<double>() {
    return DataType::float64;
}
template <>
constexpr DataType data_type_of<std::int8_t>() {
    return DataType::int8;
}
template <>
constexpr DataType data_type_of<std::uint8_t>() {
    return DataType::uint8;
}
template <>
constexpr DataType data_type_of<std::int16_t>() {
    return DataType::int16;
}
template <>
constexpr DataType data_type_of<std::uint16_t>() {
    return DataType::uint16;
}
template <>
constexpr DataType data_type_of<std::int32_t>() {
    return DataType::int32;
}
template <>
constexpr DataType data_type_of<std::uint32_t>() {
    return DataType::uint32;
}
template <>
constexpr DataType data_type_of<std::int64_t>() {
    return DataType::int64;
}
template <>
constexpr DataType data_type_of<std::uint64_t>() {
    return DataType::uint64;
}
template <>
constexpr DataType data_type_of<bool>() {
    return DataType::boolean;
}

}  // namespace qcalib
