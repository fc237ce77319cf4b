#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace qcalib {

// An HDF5 file to read, by libhdf5. Thread-safe: the library is entered by one thread at a time, whatever
// file. Names are paths from the root ("value/0/1"). Links into other files, data kept in other files and
// virtual data sets are refused. Errors start with "<file>" or "<file>, data set 'x'".
class Hdf5File {
  public:
    explicit Hdf5File(std::filesystem::path path);
    ~Hdf5File();
    Hdf5File(const Hdf5File&) = delete;
    Hdf5File& operator=(const Hdf5File&) = delete;

    const std::string& shown() const { return shown_; }
    std::string shown(const std::string& dataset) const;
    bool is_group(const std::string& name) const;
    bool has_attribute(const std::string& group, const std::string& attribute) const;
    // The names of a group's links, in the library's order; of at most `most` of them.
    std::vector<std::string> links(const std::string& group, std::size_t most) const;
    std::uint64_t link_count(const std::string& group) const;
    // All data sets of the file, at most `most`, sorted.
    std::vector<std::string> datasets(std::size_t most) const;

    // Type and shape of a data set. Numbers of any byte order, and h5py's bools.
    TensorDescriptor describe(const std::string& dataset) const;
    Tensor read(const std::string& dataset) const;
    // Row `row` along the first axis.
    Tensor read_row(const std::string& dataset, std::uint64_t row) const;

  private:
    struct Implementation;
    std::string shown_;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace qcalib
