#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/tensor.h"

namespace qcalib::test {

// Plain values that become an ONNX file, faults included: nothing is checked here. A small model reads
//
//   OnnxModel model;                                    // opset 13, IR 8
//   model.graph.input("x", {1, 3, "H", "W"});
//   model.graph.initializer("w", {4, 3, 1, 1}, weights);
//   model.graph.node("Conv", {"x", "w"}, {"y"}, {{"strides", OnnxInts{2, 2}}});
//   model.graph.output("y");
//   model.save(path);

// A dimension: a size, a name, or (default-made) neither.
struct OnnxDimension {
    OnnxDimension() = default;
    template <typename Integer>
    requires std::is_integral_v<Integer> OnnxDimension(Integer fixed)
        : size(static_cast<std::int64_t>(fixed)) {}                 // NOLINT: {1, 3, "H", "W"}
    OnnxDimension(const char* symbol) : name(symbol) {}             // NOLINT: {1, 3, "H", "W"}
    OnnxDimension(std::string symbol) : name(std::move(symbol)) {}  // NOLINT: {1, 3, "H", "W"}

    std::optional<std::int64_t> size;
    std::string name;
};

using OnnxDimensions = std::vector<OnnxDimension>;

enum class OnnxStorage {
    raw,    // raw_data
    typed,  // float_data, int32_data, int64_data, double_data or uint64_data, as the format asks
};

struct OnnxTensor {
    std::string name;
    std::int32_t data_type = 1;  // TensorProto.DataType
    Shape dims;
    std::optional<std::string> raw;
    std::vector<float> floats;
    std::vector<std::int32_t> int32s;
    std::vector<std::int64_t> int64s;
    std::vector<double> doubles;
    std::vector<std::uint64_t> uint64s;
    std::vector<std::string> strings;
    std::vector<std::pair<std::string, std::string>> external;  // keys location, offset, length
    bool is_external = false;

    static OnnxTensor of(std::string name, const Tensor& tensor, OnnxStorage storage = OnnxStorage::raw);
    template <typename T>
    static OnnxTensor of(std::string name, Shape shape, const std::vector<T>& values,
                         OnnxStorage storage = OnnxStorage::raw) {
        return of(std::move(name), Tensor::of<T>(std::move(shape), std::span<const T>(values)), storage);
    }
    // Data in another file. `offset` and `length` below 0 are left out.
    static OnnxTensor external_file(std::string name, DataType type, Shape shape, std::string location,
                                    std::int64_t offset = -1, std::int64_t length = -1);
};

struct OnnxGraph;

using OnnxInts = std::vector<std::int64_t>;
using OnnxFloats = std::vector<float>;
using OnnxStrings = std::vector<std::string>;

struct OnnxAttribute {
    std::string name;
    std::variant<std::int64_t, float, std::string, OnnxInts, OnnxFloats, OnnxStrings, OnnxTensor,
                 std::vector<OnnxTensor>, std::shared_ptr<const OnnxGraph>>
        value;
    std::string reference = {};  // ref_attr_name, inside functions

    OnnxAttribute(std::string name, int value) : OnnxAttribute(std::move(name), std::int64_t{value}) {}
    OnnxAttribute(std::string name, double value)
        : OnnxAttribute(std::move(name), static_cast<float>(value)) {}
    OnnxAttribute(std::string name, const char* value) : OnnxAttribute(std::move(name), std::string(value)) {}
    template <typename T>
    OnnxAttribute(std::string attribute_name, T attribute_value)
        : name(std::move(attribute_name)), value(std::move(attribute_value)) {}
    OnnxAttribute(std::string name, const OnnxGraph& graph);
};

struct OnnxNode {
    std::string op_type;
    std::vector<std::string> inputs;   // "": left out
    std::vector<std::string> outputs;  // "": left out
    std::vector<OnnxAttribute> attributes = {};
    std::string name = {};
    std::string domain = {};
};

// A graph input, output or value_info.
struct OnnxValue {
    enum class Kind { tensor, sequence, optional, map, sparse_tensor, untyped };

    std::string name;
    std::optional<OnnxDimensions> dims = {};  // nothing: no shape
    std::int32_t data_type = 1;               // TensorProto.DataType
    Kind kind = Kind::tensor;
};

struct OnnxGraph {
    std::string name = "graph";
    std::vector<OnnxNode> nodes = {};
    std::vector<OnnxTensor> initializers = {};
    std::vector<std::pair<OnnxTensor, OnnxTensor>> sparse_initializers = {};  // values, indices
    std::vector<OnnxValue> inputs = {};
    std::vector<OnnxValue> outputs = {};
    std::vector<OnnxValue> value_infos = {};

    OnnxGraph& input(std::string value_name, OnnxDimensions dims, DataType type = DataType::float32);
    OnnxGraph& output(std::string value_name);  // float32 without a shape
    OnnxGraph& output(std::string value_name, OnnxDimensions dims, DataType type = DataType::float32);
    OnnxGraph& value_info(std::string value_name, OnnxDimensions dims, DataType type = DataType::float32);
    OnnxGraph& node(std::string op_type, std::vector<std::string> node_inputs,
                    std::vector<std::string> node_outputs, std::vector<OnnxAttribute> attributes = {},
                    std::string node_name = {}, std::string domain = {});
    OnnxGraph& initializer(OnnxTensor tensor);
    OnnxGraph& initializer(std::string tensor_name, const Tensor& tensor,
                           OnnxStorage storage = OnnxStorage::raw);
    OnnxGraph& initializer(std::string tensor_name, Shape shape, const std::vector<float>& values,
                           OnnxStorage storage = OnnxStorage::raw);
    OnnxGraph& initializer(std::string tensor_name, Shape shape, const std::vector<std::int64_t>& values,
                           OnnxStorage storage = OnnxStorage::raw);
};

// A model-local function (IR 8).
struct OnnxFunction {
    std::string name;
    std::string domain;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::vector<OnnxNode> nodes;
    std::vector<std::pair<std::string, std::int64_t>> opsets = {{"", 13}, {"local", 1}};
    std::vector<OnnxAttribute> defaults = {};  // attribute_proto (IR 9)
};

struct OnnxModel {
    std::int64_t ir_version = 8;
    std::vector<std::pair<std::string, std::int64_t>> opsets = {{"", 13}};
    std::string producer = "qcalib test";
    OnnxGraph graph = {};
    std::vector<OnnxFunction> functions = {};

    std::string bytes() const;
    void save(const std::filesystem::path& path) const;
};

// TensorProto.DataType of a type.
std::int32_t onnx_type(DataType type);

}  // namespace qcalib::test
