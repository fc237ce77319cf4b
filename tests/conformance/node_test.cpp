#include "conformance/node_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "runtime/frame.h"
#include "runtime/kernel_registry.h"

namespace qcalib::test {

namespace {

template <typename Message>
Message read_message(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    Message message;
    if (!stream || !message.ParseFromIstream(&stream)) fail("{}: not readable as protobuf", path.string());
    return message;
}

void collect_operators(const onnx::GraphProto& graph, std::set<std::string>& operators) {
    for (const auto& node : graph.node()) {
        operators.insert(node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type());
        for (const auto& attribute : node.attribute()) {
            if (attribute.has_g()) collect_operators(attribute.g(), operators);
        }
    }
}

DataType type_of(const onnx::TensorProto& proto) {
    switch (proto.data_type()) {
        case onnx::TensorProto::FLOAT:
            return DataType::float32;
        case onnx::TensorProto::DOUBLE:
            return DataType::float64;
        case onnx::TensorProto::FLOAT16:
            return DataType::float16;
        case onnx::TensorProto::BFLOAT16:
            return DataType::bfloat16;
        case onnx::TensorProto::INT8:
            return DataType::int8;
        case onnx::TensorProto::UINT8:
            return DataType::uint8;
        case onnx::TensorProto::INT16:
            return DataType::int16;
        case onnx::TensorProto::UINT16:
            return DataType::uint16;
        case onnx::TensorProto::INT32:
            return DataType::int32;
        case onnx::TensorProto::UINT32:
            return DataType::uint32;
        case onnx::TensorProto::INT64:
            return DataType::int64;
        case onnx::TensorProto::UINT64:
            return DataType::uint64;
        case onnx::TensorProto::BOOL:
            return DataType::boolean;
        default:
            fail("tensor '{}': type {} is none of ours", proto.name(), proto.data_type());
    }
}

// Elements of a typed field, each cut to the size of the tensor's type.
template <typename Field>
void copy_field(const Field& field, MutableTensorView target) {
    const std::size_t size = size_of(target.descriptor->type);
    if (static_cast<std::size_t>(field.size()) != target.elements()) fail("wrong number of elements");
    for (int i = 0; i < field.size(); ++i) {
        const auto value = field.Get(i);
        std::memcpy(target.data + static_cast<std::size_t>(i) * size, &value, size);
    }
}

void copy_elements(const onnx::TensorProto& proto, MutableTensorView target) {
    if (proto.has_raw_data()) {
        const std::string& raw = proto.raw_data();
        if (raw.size() != target.bytes().size()) fail("tensor '{}': wrong number of bytes", proto.name());
        std::memcpy(target.data, raw.data(), raw.size());
        return;
    }
    switch (target.descriptor->type) {
        case DataType::float32:
            return copy_field(proto.float_data(), target);
        case DataType::float64:
            return copy_field(proto.double_data(), target);
        case DataType::int64:
            return copy_field(proto.int64_data(), target);
        case DataType::uint32:
        case DataType::uint64:
            return copy_field(proto.uint64_data(), target);
        default:
            return copy_field(proto.int32_data(), target);
    }
}

Tensor read_tensor_file(const std::filesystem::path& path, DataType declared) {
    const auto proto = read_message<onnx::TensorProto>(path);
    DataType type = type_of(proto);
    if (type == DataType::uint16 && declared == DataType::bfloat16) type = declared;
    Tensor tensor(TensorDescriptor{type, {proto.dims().begin(), proto.dims().end()}, MemoryOrder::row_major});
    copy_elements(proto, tensor.mutable_view());
    return to_float32(tensor, path.string());
}

std::vector<Tensor> read_tensors(const std::filesystem::path& folder, const std::string& prefix,
                                 const Graph& graph, const std::vector<ValueId>& values) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0;; ++i) {
        const std::filesystem::path path = folder / fmt::format("{}_{}.pb", prefix, i);
        if (!std::filesystem::exists(path)) return tensors;
        const DataType declared =
            i < values.size() ? graph.values[values[i]].declared_type : DataType::undefined;
        tensors.push_back(read_tensor_file(path, declared));
    }
}

}  // namespace

ModelFacts facts_of(const std::filesystem::path& model_file) {
    const auto model = read_message<onnx::ModelProto>(model_file);
    ModelFacts facts;
    collect_operators(model.graph(), facts.operators);
    for (const auto& import : model.opset_import()) {
        if (import.domain().empty()) facts.opset = import.version();
    }
    return facts;
}

void write_with_opset(const std::filesystem::path& model_file, std::int64_t opset,
                      const std::filesystem::path& target) {
    auto model = read_message<onnx::ModelProto>(model_file);
    for (auto& import : *model.mutable_opset_import()) {
        if (import.domain().empty()) import.set_version(opset);
    }
    std::ofstream stream(target, std::ios::binary);
    if (!model.SerializeToOstream(&stream)) fail("{}: cannot be written", target.string());
}

std::vector<DataSet> read_data_sets(const std::filesystem::path& folder, const Graph& graph) {
    std::vector<DataSet> sets;
    for (std::size_t k = 0;; ++k) {
        const std::filesystem::path set = folder / fmt::format("test_data_set_{}", k);
        if (!std::filesystem::exists(set)) return sets;
        sets.push_back({read_tensors(set, "input", graph, graph.inputs),
                        read_tensors(set, "output", graph, graph.outputs)});
    }
}

std::shared_ptr<const Graph> with_known_floats(const Graph& graph, std::vector<Tensor>& inputs) {
    std::set<ValueId> known;
    for (const Node& node : graph.nodes) {
        const OperatorEntry* entry = builtin_kernels().find(node.domain, node.op_type, node.opset);
        if (entry == nullptr) continue;
        for (const std::size_t i : entry->value_inputs) {
            if (i < node.inputs.size() && node.inputs[i] != no_value) known.insert(node.inputs[i]);
        }
    }
    auto result = std::make_shared<Graph>(graph);
    std::vector<Tensor> left;
    result->inputs.clear();
    for (std::size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i) {
        const ValueId value = graph.inputs[i];
        result->values[value].declared_shape.emplace();  // the data's: some tests declare another one
        for (const std::int64_t size : inputs[i].shape()) {
            result->values[value].declared_shape->push_back({size, {}});
        }
        if (known.contains(value) && is_floating(inputs[i].type())) {
            result->values[value].initializer = inputs[i];
        } else {
            result->inputs.push_back(value);
            left.push_back(inputs[i]);
        }
    }
    inputs = std::move(left);
    return result;
}

namespace {

// Keeps the values of a run.
class ValueTap : public Tap {
  public:
    TapRight right(const Graph& /*graph*/, ValueId /*value*/) const override { return TapRight::read; }

    void on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) override {
        values.insert_or_assign(value, row_major_copy(view));
    }

    static Tensor row_major_copy(TensorView view) {
        Tensor copy(TensorDescriptor{view.descriptor->type, view.descriptor->shape, MemoryOrder::row_major});
        copy_to_order(view, copy.mutable_view());
        return copy;
    }

    std::map<ValueId, Tensor> values;
};

}  // namespace

std::vector<Tensor> run_graph(std::shared_ptr<const Graph> graph, const std::vector<Tensor>& inputs,
                              const ProgramOptions& options) {
    ValueTap tap;
    Program program(std::move(graph), builtin_kernels(), {&tap}, options);
    Frame frame;
    frame.run(program.plan(inputs), inputs, 0);
    std::vector<Tensor> outputs;
    for (const ValueId value : program.graph().outputs) {
        const Tensor* constant = program.constant(value);
        outputs.push_back(constant == nullptr ? tap.values.at(value) : *constant);
    }
    return outputs;
}

std::string difference(const Tensor& found, const Tensor& expected, DataType declared) {
    if (found.type() != expected.type() || found.shape() != expected.shape()) {
        return fmt::format("expected {} {}, found {} {}", name_of(expected.type()),
                           to_string(expected.shape()), name_of(found.type()), to_string(found.shape()));
    }
    if (!is_floating(expected.type())) {
        const auto a = found.view().bytes();
        const auto b = expected.view().bytes();
        const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
        if (at == static_cast<std::ptrdiff_t>(a.size())) return "";
        return fmt::format("element {} differs", static_cast<std::size_t>(at) / size_of(expected.type()));
    }
    const std::vector<double> a = numbers_of(found.view());
    const std::vector<double> b = numbers_of(expected.view());
    // Tests cut numbers to bfloat16's 8 bits where we round them: the last bit may differ.
    const double relative = declared == DataType::bfloat16 ? 0x1p-7 : 1e-3;
    for (std::size_t i = 0; i < b.size(); ++i) {
        const bool right = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                           std::abs(a[i] - b[i]) <= 1e-7 + relative * std::abs(b[i]);
        if (!right) return fmt::format("element {}: expected {}, found {}", i, b[i], a[i]);
    }
    return "";
}

}  // namespace qcalib::test
