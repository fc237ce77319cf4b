#pragma once

#include <filesystem>

#include "tensor/tensor.h"

namespace qcalib {

// Reads a .npy file (format 1.0 to 3.0: numpy's NEP 1) of a little-endian numeric or bool type in C order.
// Errors start with the path and name what was found: fortran order, a foreign byte order or type, a wrong
// file size.
Tensor read_npy(const std::filesystem::path& path);

// Writes a tensor as .npy 1.0 in C order of its logical shape, whatever its memory order.
void write_npy(const std::filesystem::path& path, TensorView tensor);

}  // namespace qcalib
