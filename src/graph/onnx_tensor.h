#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "graph/external_data.h"
#include "tensor/tensor.h"

namespace onnx {
class TensorProto;
}

namespace qcalib {

// The type of a TensorProto.DataType, undefined where we have none like it.
DataType data_type_of_onnx(std::int32_t code);

// "float32", "complex64", "type 99": what a TensorProto.DataType is called.
std::string onnx_type_name(std::int32_t code);

// Makes tensors of a model's TensorProtos, whose raw_data without_raw_data has replaced.
class OnnxTensorReader {
  public:
    OnnxTensorReader(std::shared_ptr<const MappedFile> model, ExternalData& external)
        : model_(std::move(model)), external_(external) {}

    // The tensor in its declared type; raw and external data stay in the file. Strings have a shape and no
    // data. Throws Error starting with `what` where the message is not sound; nothing where its external file
    // cannot be had, which ExternalData tells.
    std::optional<Tensor> read(const onnx::TensorProto& proto, std::string_view what);

  private:
    std::optional<Tensor> read_external(const onnx::TensorProto& proto, TensorDescriptor descriptor,
                                        std::string_view what);
    Tensor read_raw(const onnx::TensorProto& proto, TensorDescriptor descriptor, std::string_view what) const;

    std::shared_ptr<const MappedFile> model_;
    ExternalData& external_;
};

}  // namespace qcalib
