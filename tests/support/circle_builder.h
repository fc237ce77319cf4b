#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <flatbuffers/flatbuffers.h>

namespace qcalib {

// One field of an operator's options: its slot in the schema's table, and its value (1 or 4 bytes).
struct CircleOption {
    std::uint16_t slot = 0;
    std::int32_t value = 0;
    int bytes = 4;
};

// Makes small .circle files. Tensors are numbered from 0 in the order in which they are added.
class CircleBuilder {
  public:
    // A float tensor; a constant where there are values.
    std::int32_t add_float(const std::string& name, const std::vector<std::int32_t>& shape,
                           const std::vector<float>& values = {});
    // An int32 constant.
    std::int32_t add_int(const std::string& name, const std::vector<std::int32_t>& shape,
                         const std::vector<std::int32_t>& values);
    // `code` is a builtin operator's number (ADD 0, ...), `options_type` the number of its table of options.
    void add_operator(std::int32_t code, const std::vector<std::int32_t>& inputs,
                      const std::vector<std::int32_t>& outputs, std::uint8_t options_type = 0,
                      const std::vector<CircleOption>& options = {});
    // The file.
    std::string finish(const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs);

  private:
    template <typename T>
    std::uint32_t add_buffer(const std::vector<T>& values);
    std::int32_t add_tensor(const std::string& name, const std::vector<std::int32_t>& shape, std::int8_t type,
                            std::uint32_t buffer);

    flatbuffers::FlatBufferBuilder builder_;
    std::vector<flatbuffers::Offset<flatbuffers::Table>> buffers_;
    std::vector<flatbuffers::Offset<flatbuffers::Table>> tensors_;
    std::vector<flatbuffers::Offset<flatbuffers::Table>> codes_;
    std::vector<flatbuffers::Offset<flatbuffers::Table>> operators_;
};

}  // namespace qcalib
