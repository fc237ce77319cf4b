#include "conformance/node_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <onnx/onnx-data_pb.h>
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
        case onnx::TensorProto::STRING:
            return DataType::string;
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

Tensor read_tensor(const onnx::TensorProto& proto, DataType declared, const std::string& what) {
    DataType type = type_of(proto);
    if (type == DataType::uint16 && declared == DataType::bfloat16) type = declared;
    if (type == DataType::string) {
        const std::vector<std::string> strings(proto.string_data().begin(), proto.string_data().end());
        return Tensor::of_strings({proto.dims().begin(), proto.dims().end()}, strings);
    }
    Tensor tensor(TensorDescriptor{type, {proto.dims().begin(), proto.dims().end()}, MemoryOrder::row_major});
    copy_elements(proto, tensor.mutable_view());
    return to_float32(tensor, what);
}

Tensor read_sequence(const onnx::SequenceProto& proto, const std::string& what) {
    std::vector<Tensor> elements;
    if (proto.elem_type() == onnx::SequenceProto::TENSOR) {
        for (const auto& tensor : proto.tensor_values()) {
            elements.push_back(read_tensor(tensor, DataType::undefined, what));
        }
    } else if (proto.elem_type() == onnx::SequenceProto::SEQUENCE) {
        for (const auto& inner : proto.sequence_values()) elements.push_back(read_sequence(inner, what));
    } else {
        fail("{}: a sequence of elements of kind {} is none of ours", what, proto.elem_type());
    }
    return Tensor::of_tensors(DataType::sequence, std::move(elements));
}

Tensor read_optional(const onnx::OptionalProto& proto, const std::string& what) {
    std::vector<Tensor> element;
    if (proto.elem_type() == onnx::OptionalProto::TENSOR) {
        element.push_back(read_tensor(proto.tensor_value(), DataType::undefined, what));
    } else if (proto.elem_type() == onnx::OptionalProto::SEQUENCE) {
        element.push_back(read_sequence(proto.sequence_value(), what));
    } else if (proto.elem_type() != onnx::OptionalProto::UNDEFINED) {
        fail("{}: an optional value of kind {} is none of ours", what, proto.elem_type());
    }
    return Tensor::of_tensors(DataType::optional, std::move(element));
}

// A file is a message of the kind that the graph declares, and does not say itself what it is.
Tensor read_value_file(const std::filesystem::path& path, DataType declared) {
    const std::string what = path.string();
    if (declared == DataType::sequence) return read_sequence(read_message<onnx::SequenceProto>(path), what);
    if (declared == DataType::optional) return read_optional(read_message<onnx::OptionalProto>(path), what);
    return read_tensor(read_message<onnx::TensorProto>(path), declared, what);
}

std::vector<Tensor> read_tensors(const std::filesystem::path& folder, const std::string& prefix,
                                 const Graph& graph, const std::vector<ValueId>& values) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0;; ++i) {
        const std::filesystem::path path = folder / fmt::format("{}_{}.pb", prefix, i);
        if (!std::filesystem::exists(path)) return tensors;
        const DataType declared =
            i < values.size() ? graph.values[values[i]].declared_type : DataType::undefined;
        tensors.push_back(read_value_file(path, declared));
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
        if (!is_numeric(inputs[i].type()) && inputs[i].type() != DataType::string) {
            result->inputs.push_back(value);
            left.push_back(inputs[i]);
            continue;
        }
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
        copy.own_elements();
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
    if (expected.type() == DataType::string) {
        const std::vector<std::string> a = strings_of(found.view());
        const std::vector<std::string> b = strings_of(expected.view());
        const auto at = std::mismatch(a.begin(), a.end(), b.begin());
        if (at.first == a.end()) return "";
        return fmt::format("element {}: expected '{}', found '{}'", at.first - a.begin(), *at.second,
                           *at.first);
    }
    if (!is_numeric(expected.type())) {
        const auto a = found.view().as<TensorElement>();
        const auto b = expected.view().as<TensorElement>();
        for (std::size_t i = 0; i < b.size(); ++i) {
            const std::string wrong = difference(*a[i], *b[i], declared);
            if (!wrong.empty()) return fmt::format("element {}: {}", i, wrong);
        }
        return "";
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
