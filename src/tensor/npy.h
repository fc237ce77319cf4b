#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace qcalib {

// Reads a .npy file (format 1.0 to 3.0: numpy's NEP 1) of a little-endian numeric or bool type in C order.
// Errors start with the path and name what was found: fortran order, a foreign byte order or type, a wrong
// file size.
Tensor read_npy(const std::filesystem::path& path);

// What the header of a .npy array says.
struct NpyHeader {
    TensorDescriptor descriptor;
    std::size_t data = 0;  // where its elements begin
};

// The header of an array whose first bytes are `start`: all of them, or at least most_npy_header. `shown`
// stands at the start of errors, as above.
NpyHeader read_npy_header(std::span<const std::byte> start, std::string_view shown);
constexpr std::size_t most_npy_header = std::size_t{1} << 16;

// Makes every byte of bools that is not 0 a 1, as numpy takes them.
void mend_bools(std::span<std::byte> bytes);

// A tensor as the bytes of a .npy 1.0 file, as write_npy writes them; `shown` stands at the start of errors.
std::string npy_bytes(TensorView tensor, std::string_view shown);

// Writes a tensor as .npy 1.0 in C order of its logical shape, whatever its memory order.
void write_npy(const std::filesystem::path& path, TensorView tensor);

}  // namespace qcalib
