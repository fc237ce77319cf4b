#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace qcalib {

// A .npz file: a zip archive of .npy members, as numpy.savez and savez_compressed write it. Thread-safe.
// Errors start with "<file>" or "<file>, array 'x'".
class NpzArchive {
  public:
    explicit NpzArchive(std::filesystem::path path);
    ~NpzArchive();
    NpzArchive(const NpzArchive&) = delete;
    NpzArchive& operator=(const NpzArchive&) = delete;

    // The arrays' names, without ".npy".
    std::span<const std::string> names() const { return names_; }
    std::string shown(std::size_t array) const;
    const TensorDescriptor& descriptor(std::size_t array) const;
    Tensor read(std::size_t array) const;
    // Row `row` along the first axis. Members that are stored as they are are read at that place; compressed
    // ones are run through from the row read last, or from the start where it lies before that.
    Tensor read_row(std::size_t array, std::uint64_t row) const;

  private:
    struct Implementation;
    std::vector<std::string> names_;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace qcalib
