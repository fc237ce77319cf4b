#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace qcalib {

// Where the raw_data of a tensor lies in the model file, in bytes from its start.
struct RawExtent {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

// The ModelProto in `file` as a message small enough for protobuf: each TensorProto.raw_data is replaced by a
// record that raw_extent reads. Errors start with `path` and tell an empty file, something that is no ONNX
// model, one that ends early, and one that is damaged from one another.
std::string without_raw_data(std::span<const std::byte> file, const std::filesystem::path& path);

// The extent that stands for a tensor's raw_data in what without_raw_data answered.
RawExtent raw_extent(std::string_view record);

}  // namespace qcalib
