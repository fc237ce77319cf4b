#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/format.h"
#include "tensor/range.h"
#include "tensor/tensor.h"

namespace onnx {
class GraphProto;
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace qcalib {

// A user's ONNX model whose tensors get Clip nodes. The message is parsed from the file again and keeps what
// this program does not know; inputs, outputs and the names of all tensors stay, since the tensor before an
// inserted Clip is the one that gets a new name. Bounds are attributes up to opset 10, else initializers.
class ClippedOnnx {
  public:
    // Error "<path>: ..." where the file is no whole model.
    explicit ClippedOnnx(const std::filesystem::path& path);
    ~ClippedOnnx();
    ClippedOnnx(const ClippedOnnx&) = delete;
    ClippedOnnx& operator=(const ClippedOnnx&) = delete;

    std::int64_t opset() const { return opset_; }  // of ONNX's own domain
    // Whether a node of the outermost graph makes it (not an input, an initializer, or a body's tensor).
    bool makes(const std::string& tensor) const;
    // Puts a Clip behind what makes the tensor. `type` is its TensorProto.DataType.
    void insert(const std::string& tensor, Range bounds, std::int32_t type);
    // Gives the Clip that makes the tensor other bounds; those that nothing needs any more are removed.
    void move(const std::string& tensor, Range bounds, std::int32_t type);
    // Replaces the float32 data of an initializer, which then lies in the model itself.
    void replace(const std::string& initializer, const Tensor& data);

    // The model as `name`, and the files of external data it still needs, at their places beside it.
    std::vector<FormattedFile> files(const std::filesystem::path& name);

  private:
    void collect_names(const onnx::GraphProto& graph);
    std::string unique(std::string name);
    std::optional<std::size_t> producer(const std::string& tensor) const;
    std::string add_bound(const std::string& name, double value, std::int32_t type);
    void set_bounds(onnx::NodeProto& clip, const std::string& tensor, Range bounds, std::int32_t type);
    void remove_unused();
    void place_insertions();

    struct Insertion;
    std::filesystem::path path_;
    std::unique_ptr<onnx::ModelProto> model_;
    std::int64_t opset_ = 0;
    std::set<std::string> names_;
    std::set<std::string> former_bounds_;
    std::vector<Insertion> insertions_;
};

}  // namespace qcalib
