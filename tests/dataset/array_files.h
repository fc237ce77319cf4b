#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <hdf5.h>
#include <zip.h>

#include "sample_files.h"
#include "tensor/npy.h"

namespace qcalib::test {

inline Tensor floats(Shape shape, const std::vector<float>& values) {
    return Tensor::of<float>(std::move(shape), values);
}

// 0, 1, 2, ... in a shape.
inline Tensor counting(Shape shape) {
    std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return floats(std::move(shape), values);
}

inline std::string bytes_of(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

struct NamedTensor {
    std::string name;
    Tensor tensor;
};

// Writes .npz files as numpy does, through libzip.
class ArrayFolder : public SampleFolder {
  public:
    std::filesystem::path npy(const std::string& name, const Tensor& tensor) const {
        write_npy(path() / name, tensor.view());
        return path() / name;
    }

    std::filesystem::path npz(const std::string& name, const std::vector<NamedTensor>& arrays,
                              bool compressed = false) const {
        int code = 0;
        zip_t* archive = zip_open((path() / name).c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
        REQUIRE(archive != nullptr);
        std::vector<std::string> contents;  // libzip reads them when it closes
        contents.reserve(arrays.size());
        for (const NamedTensor& array : arrays) {
            contents.push_back(bytes_of(npy("member.npy", array.tensor)));
            zip_source_t* source =
                zip_source_buffer(archive, contents.back().data(), contents.back().size(), 0);
            const zip_int64_t index = zip_file_add(archive, (array.name + ".npy").c_str(), source, 0);
            REQUIRE(index >= 0);
            zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                                     compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
        }
        REQUIRE(zip_close(archive) == 0);
        return path() / name;
    }
};

// An HDF5 file being written; groups on the way to a name are made.
class Hdf5Writer {
  public:
    explicit Hdf5Writer(const std::filesystem::path& path)
        : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)),
          links_(H5Pcreate(H5P_LINK_CREATE)) {
        REQUIRE(file_ >= 0);
        H5Pset_create_intermediate_group(links_, 1);
    }
    ~Hdf5Writer() {
        H5Pclose(links_);
        H5Fclose(file_);
    }
    Hdf5Writer(const Hdf5Writer&) = delete;
    Hdf5Writer& operator=(const Hdf5Writer&) = delete;

    // `stored` is the type in the file, `memory` that of `values`.
    template <typename T>
    Hdf5Writer& add(const std::string& name, const std::vector<hsize_t>& shape, const std::vector<T>& values,
                    hid_t stored, hid_t memory, int gzip = 0) {
        const hid_t space = shape.empty()
                                ? H5Screate(H5S_SCALAR)
                                : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
        const hid_t settings = H5Pcreate(H5P_DATASET_CREATE);
        if (gzip > 0) {
            std::vector<hsize_t> chunk(shape);
            chunk.front() = 1;
            H5Pset_chunk(settings, static_cast<int>(chunk.size()), chunk.data());
            H5Pset_deflate(settings, static_cast<unsigned>(gzip));
        }
        const hid_t set = H5Dcreate2(file_, name.c_str(), stored, space, links_, settings, H5P_DEFAULT);
        REQUIRE(set >= 0);
        CHECK(H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
        H5Dclose(set);
        H5Pclose(settings);
        H5Sclose(space);
        return *this;
    }
    Hdf5Writer& add_floats(const std::string& name, const std::vector<hsize_t>& shape,
                           const std::vector<float>& values) {
        return add(name, shape, values, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT);
    }
    Hdf5Writer& attribute(const std::string& group, const std::string& name) {
        const hid_t space = H5Screate(H5S_SCALAR);
        const hid_t owner = H5Gopen2(file_, group.c_str(), H5P_DEFAULT);
        const hid_t attribute =
            H5Acreate2(owner, name.c_str(), H5T_STD_I8LE, space, H5P_DEFAULT, H5P_DEFAULT);
        const std::int8_t one = 1;
        H5Awrite(attribute, H5T_NATIVE_INT8, &one);
        H5Aclose(attribute);
        H5Gclose(owner);
        H5Sclose(space);
        return *this;
    }
    Hdf5Writer& external_link(const std::string& name, const std::string& file) {
        H5Lcreate_external(file.c_str(), "/x", file_, name.c_str(), links_, H5P_DEFAULT);
        return *this;
    }

  private:
    hid_t file_;
    hid_t links_;
};

}  // namespace qcalib::test
