#include "support/onnx_builder.h"

#include <cassert>
#include <cstring>

#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include "support/temporary_folder.h"

namespace qcalib::test {

namespace {

using onnx::TensorProto;

template <typename Stored>
Stored element(const Tensor& tensor, std::size_t index) {
    Stored stored;
    std::memcpy(&stored, tensor.data() + index * sizeof(Stored), sizeof(Stored));
    return stored;
}

template <typename Stored, typename Field>
void append_elements(const Tensor& tensor, std::vector<Field>& field) {
    for (std::size_t i = 0; i < tensor.descriptor().elements(); ++i) {
        field.push_back(static_cast<Field>(element<Stored>(tensor, i)));
    }
}

void fill_typed(OnnxTensor& result, const Tensor& tensor) {
    switch (tensor.type()) {
        case DataType::float32:
            return append_elements<float>(tensor, result.floats);
        case DataType::float64:
            return append_elements<double>(tensor, result.doubles);
        case DataType::int64:
            return append_elements<std::int64_t>(tensor, result.int64s);
        case DataType::uint32:
            return append_elements<std::uint32_t>(tensor, result.uint64s);
        case DataType::uint64:
            return append_elements<std::uint64_t>(tensor, result.uint64s);
        case DataType::int8:
            return append_elements<std::int8_t>(tensor, result.int32s);
        case DataType::int16:
            return append_elements<std::int16_t>(tensor, result.int32s);
        case DataType::int32:
            return append_elements<std::int32_t>(tensor, result.int32s);
        case DataType::boolean:
        case DataType::uint8:
            return append_elements<std::uint8_t>(tensor, result.int32s);
        case DataType::float16:
        case DataType::bfloat16:
        case DataType::uint16:
            return append_elements<std::uint16_t>(tensor, result.int32s);
        case DataType::undefined:
        case DataType::string:
        case DataType::sequence:
        case DataType::optional:
            break;
    }
    assert(false && "a tensor without elements");
}

void set_tensor(TensorProto& proto, const OnnxTensor& tensor) {
    if (!tensor.name.empty()) proto.set_name(tensor.name);
    proto.set_data_type(tensor.data_type);
    for (const std::int64_t dimension : tensor.dims) proto.add_dims(dimension);
    if (tensor.raw) proto.set_raw_data(*tensor.raw);
    for (const float value : tensor.floats) proto.add_float_data(value);
    for (const std::int32_t value : tensor.int32s) proto.add_int32_data(value);
    for (const std::int64_t value : tensor.int64s) proto.add_int64_data(value);
    for (const double value : tensor.doubles) proto.add_double_data(value);
    for (const std::uint64_t value : tensor.uint64s) proto.add_uint64_data(value);
    for (const std::string& value : tensor.strings) proto.add_string_data(value);
    for (const auto& [key, value] : tensor.external) {
        auto* entry = proto.add_external_data();
        entry->set_key(key);
        entry->set_value(value);
    }
    if (tensor.is_external) proto.set_data_location(onnx::TensorProto_DataLocation_EXTERNAL);
}

void set_graph(onnx::GraphProto& proto, const OnnxGraph& graph);

struct AttributeSetter {
    onnx::AttributeProto& proto;

    void operator()(std::int64_t value) const {
        proto.set_type(onnx::AttributeProto_AttributeType_INT);
        proto.set_i(value);
    }
    void operator()(float value) const {
        proto.set_type(onnx::AttributeProto_AttributeType_FLOAT);
        proto.set_f(value);
    }
    void operator()(const std::string& value) const {
        proto.set_type(onnx::AttributeProto_AttributeType_STRING);
        proto.set_s(value);
    }
    void operator()(const OnnxInts& values) const {
        proto.set_type(onnx::AttributeProto_AttributeType_INTS);
        for (const std::int64_t value : values) proto.add_ints(value);
    }
    void operator()(const OnnxFloats& values) const {
        proto.set_type(onnx::AttributeProto_AttributeType_FLOATS);
        for (const float value : values) proto.add_floats(value);
    }
    void operator()(const OnnxStrings& values) const {
        proto.set_type(onnx::AttributeProto_AttributeType_STRINGS);
        for (const std::string& value : values) proto.add_strings(value);
    }
    void operator()(const OnnxTensor& value) const {
        proto.set_type(onnx::AttributeProto_AttributeType_TENSOR);
        set_tensor(*proto.mutable_t(), value);
    }
    void operator()(const std::vector<OnnxTensor>& values) const {
        proto.set_type(onnx::AttributeProto_AttributeType_TENSORS);
        for (const OnnxTensor& value : values) set_tensor(*proto.add_tensors(), value);
    }
    void operator()(const std::shared_ptr<const OnnxGraph>& value) const {
        proto.set_type(onnx::AttributeProto_AttributeType_GRAPH);
        set_graph(*proto.mutable_g(), *value);
    }
};

void set_attribute(onnx::AttributeProto& proto, const OnnxAttribute& attribute) {
    proto.set_name(attribute.name);
    if (!attribute.reference.empty()) proto.set_ref_attr_name(attribute.reference);
    std::visit(AttributeSetter{proto}, attribute.value);
}

void set_node(onnx::NodeProto& proto, const OnnxNode& node) {
    proto.set_op_type(node.op_type);
    if (!node.name.empty()) proto.set_name(node.name);
    if (!node.domain.empty()) proto.set_domain(node.domain);
    for (const std::string& input : node.inputs) proto.add_input(input);
    for (const std::string& output : node.outputs) proto.add_output(output);
    for (const OnnxAttribute& attribute : node.attributes) set_attribute(*proto.add_attribute(), attribute);
}

void set_shape(onnx::TensorShapeProto& proto, const OnnxDimensions& dims) {
    for (const OnnxDimension& dimension : dims) {
        auto& target = *proto.add_dim();
        if (dimension.size) {
            target.set_dim_value(*dimension.size);
        } else if (!dimension.name.empty()) {
            target.set_dim_param(dimension.name);
        }
    }
}

void set_tensor_type(onnx::TypeProto& proto, const OnnxValue& value) {
    proto.mutable_tensor_type()->set_elem_type(value.data_type);
    if (value.dims) set_shape(*proto.mutable_tensor_type()->mutable_shape(), *value.dims);
}

void set_value(onnx::ValueInfoProto& proto, const OnnxValue& value) {
    proto.set_name(value.name);
    switch (value.kind) {
        case OnnxValue::Kind::untyped:
            return;
        case OnnxValue::Kind::tensor:
            return set_tensor_type(*proto.mutable_type(), value);
        case OnnxValue::Kind::sequence:
            return set_tensor_type(*proto.mutable_type()->mutable_sequence_type()->mutable_elem_type(),
                                   value);
        case OnnxValue::Kind::optional:
            return set_tensor_type(*proto.mutable_type()->mutable_optional_type()->mutable_elem_type(),
                                   value);
        case OnnxValue::Kind::map:
            proto.mutable_type()->mutable_map_type()->set_key_type(7);
            return set_tensor_type(*proto.mutable_type()->mutable_map_type()->mutable_value_type(), value);
        case OnnxValue::Kind::sparse_tensor:
            proto.mutable_type()->mutable_sparse_tensor_type()->set_elem_type(value.data_type);
            return;
    }
}

void set_graph(onnx::GraphProto& proto, const OnnxGraph& graph) {
    proto.set_name(graph.name);
    for (const OnnxNode& node : graph.nodes) set_node(*proto.add_node(), node);
    for (const OnnxTensor& tensor : graph.initializers) set_tensor(*proto.add_initializer(), tensor);
    for (const auto& [values, indices] : graph.sparse_initializers) {
        auto& sparse = *proto.add_sparse_initializer();
        set_tensor(*sparse.mutable_values(), values);
        set_tensor(*sparse.mutable_indices(), indices);
    }
    for (const OnnxValue& value : graph.inputs) set_value(*proto.add_input(), value);
    for (const OnnxValue& value : graph.outputs) set_value(*proto.add_output(), value);
    for (const OnnxValue& value : graph.value_infos) set_value(*proto.add_value_info(), value);
}

}  // namespace

std::int32_t onnx_type(DataType type) {
    switch (type) {
        case DataType::undefined:
            return onnx::TensorProto_DataType_UNDEFINED;
        case DataType::float32:
            return onnx::TensorProto_DataType_FLOAT;
        case DataType::float64:
            return onnx::TensorProto_DataType_DOUBLE;
        case DataType::float16:
            return onnx::TensorProto_DataType_FLOAT16;
        case DataType::bfloat16:
            return onnx::TensorProto_DataType_BFLOAT16;
        case DataType::int8:
            return onnx::TensorProto_DataType_INT8;
        case DataType::uint8:
            return onnx::TensorProto_DataType_UINT8;
        case DataType::int16:
            return onnx::TensorProto_DataType_INT16;
        case DataType::uint16:
            return onnx::TensorProto_DataType_UINT16;
        case DataType::int32:
            return onnx::TensorProto_DataType_INT32;
        case DataType::uint32:
            return onnx::TensorProto_DataType_UINT32;
        case DataType::int64:
            return onnx::TensorProto_DataType_INT64;
        case DataType::uint64:
            return onnx::TensorProto_DataType_UINT64;
        case DataType::boolean:
            return onnx::TensorProto_DataType_BOOL;
        case DataType::string:
            return onnx::TensorProto_DataType_STRING;
        case DataType::sequence:
        case DataType::optional:
            break;
    }
    return 0;
}

OnnxAttribute::OnnxAttribute(std::string attribute_name, const OnnxGraph& graph)
    : name(std::move(attribute_name)), value(std::make_shared<const OnnxGraph>(graph)) {}

OnnxTensor OnnxTensor::of(std::string name, const Tensor& tensor, OnnxStorage storage) {
    OnnxTensor result;
    result.name = std::move(name);
    result.data_type = onnx_type(tensor.type());
    result.dims = tensor.shape();
    if (storage == OnnxStorage::raw) {
        result.raw.emplace(reinterpret_cast<const char*>(tensor.data()), tensor.descriptor().bytes());
    } else {
        fill_typed(result, tensor);
    }
    return result;
}

OnnxTensor OnnxTensor::external_file(std::string name, DataType type, Shape shape, std::string location,
                                     std::int64_t offset, std::int64_t length) {
    OnnxTensor result;
    result.name = std::move(name);
    result.data_type = onnx_type(type);
    result.dims = std::move(shape);
    result.is_external = true;
    result.external.emplace_back("location", std::move(location));
    if (offset >= 0) result.external.emplace_back("offset", std::to_string(offset));
    if (length >= 0) result.external.emplace_back("length", std::to_string(length));
    return result;
}

OnnxGraph& OnnxGraph::input(std::string value_name, OnnxDimensions dims, DataType type) {
    inputs.push_back({std::move(value_name), std::move(dims), onnx_type(type)});
    return *this;
}

OnnxGraph& OnnxGraph::output(std::string value_name) {
    outputs.push_back({std::move(value_name)});
    return *this;
}

OnnxGraph& OnnxGraph::output(std::string value_name, OnnxDimensions dims, DataType type) {
    outputs.push_back({std::move(value_name), std::move(dims), onnx_type(type)});
    return *this;
}

OnnxGraph& OnnxGraph::value_info(std::string value_name, OnnxDimensions dims, DataType type) {
    value_infos.push_back({std::move(value_name), std::move(dims), onnx_type(type)});
    return *this;
}

OnnxGraph& OnnxGraph::node(std::string op_type, std::vector<std::string> node_inputs,
                           std::vector<std::string> node_outputs, std::vector<OnnxAttribute> attributes,
                           std::string node_name, std::string domain) {
    nodes.push_back({std::move(op_type), std::move(node_inputs), std::move(node_outputs),
                     std::move(attributes), std::move(node_name), std::move(domain)});
    return *this;
}

OnnxGraph& OnnxGraph::initializer(OnnxTensor tensor) {
    initializers.push_back(std::move(tensor));
    return *this;
}

OnnxGraph& OnnxGraph::initializer(std::string tensor_name, const Tensor& tensor, OnnxStorage storage) {
    return initializer(OnnxTensor::of(std::move(tensor_name), tensor, storage));
}

OnnxGraph& OnnxGraph::initializer(std::string tensor_name, Shape shape, const std::vector<float>& values,
                                  OnnxStorage storage) {
    return initializer(OnnxTensor::of(std::move(tensor_name), std::move(shape), values, storage));
}

OnnxGraph& OnnxGraph::initializer(std::string tensor_name, Shape shape,
                                  const std::vector<std::int64_t>& values, OnnxStorage storage) {
    return initializer(OnnxTensor::of(std::move(tensor_name), std::move(shape), values, storage));
}

std::string OnnxModel::bytes() const {
    onnx::ModelProto proto;
    proto.set_ir_version(ir_version);
    proto.set_producer_name(producer);
    for (const auto& [domain, version] : opsets) {
        auto* entry = proto.add_opset_import();
        entry->set_domain(domain);
        entry->set_version(version);
    }
    set_graph(*proto.mutable_graph(), graph);
    for (const OnnxFunction& function : functions) {
        auto& target = *proto.add_functions();
        target.set_name(function.name);
        target.set_domain(function.domain);
        for (const std::string& name : function.inputs) target.add_input(name);
        for (const std::string& name : function.outputs) target.add_output(name);
        for (const OnnxNode& node : function.nodes) set_node(*target.add_node(), node);
        for (const auto& [domain, version] : function.opsets) {
            auto* entry = target.add_opset_import();
            entry->set_domain(domain);
            entry->set_version(version);
        }
        for (const OnnxAttribute& attribute : function.defaults) {
            onnx::AttributeProto encoded;
            set_attribute(encoded, attribute);
            constexpr int attribute_proto_field = 11;
            target.GetReflection()->MutableUnknownFields(&target)->AddLengthDelimited(
                attribute_proto_field, encoded.SerializeAsString());
        }
    }
    return proto.SerializeAsString();
}

void OnnxModel::save(const std::filesystem::path& path) const {
    write_unsynced(path, bytes());
}

}  // namespace qcalib::test
