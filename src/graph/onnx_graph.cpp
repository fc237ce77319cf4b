#include "graph/onnx_graph.h"

#include <algorithm>
#include <iterator>

#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "base/text.h"
#include "graph/verify.h"

namespace qcalib {

namespace {

std::string named(std::string_view kind, const std::string& name) {
    return fmt::format("{} '{}'", kind, printable(name));
}

std::string_view kind_of(const onnx::TypeProto& type) {
    switch (type.value_case()) {
        case onnx::TypeProto::kTensorType:
            return "a tensor";
        case onnx::TypeProto::kSequenceType:
            return "a sequence";
        case onnx::TypeProto::kMapType:
            return "a map";
        case onnx::TypeProto::kOptionalType:
            return "an optional value";
        case onnx::TypeProto::kSparseTensorType:
            return "a sparse tensor";
        case onnx::TypeProto::kOpaqueType:
            return "an opaque value";
        case onnx::TypeProto::VALUE_NOT_SET:
            break;
    }
    return "no type";
}

std::vector<Dimension> dimensions_of(const onnx::TensorShapeProto& shape) {
    std::vector<Dimension> dimensions;
    for (const auto& proto : shape.dim()) {
        Dimension& dimension = dimensions.emplace_back();
        if (proto.has_dim_value() && proto.dim_value() >= 0) dimension.size = proto.dim_value();
        if (proto.has_dim_param()) dimension.name = proto.dim_param();
    }
    return dimensions;
}

std::vector<Dimension> fixed_dimensions(const Shape& shape) {
    std::vector<Dimension> dimensions;
    for (const std::int64_t size : shape) dimensions.push_back({size, ""});
    return dimensions;
}

template <typename Target, typename Field>
std::vector<Target> list_of(const Field& field) {
    return {field.begin(), field.end()};
}

// The attribute's kind; files older than the `type` field show it by the one field that is filled.
onnx::AttributeProto::AttributeType kind_of(const onnx::AttributeProto& proto) {
    if (proto.type() != onnx::AttributeProto_AttributeType_UNDEFINED) return proto.type();
    if (proto.has_f()) return onnx::AttributeProto_AttributeType_FLOAT;
    if (proto.has_i()) return onnx::AttributeProto_AttributeType_INT;
    if (proto.has_s()) return onnx::AttributeProto_AttributeType_STRING;
    if (proto.has_t()) return onnx::AttributeProto_AttributeType_TENSOR;
    if (proto.has_g()) return onnx::AttributeProto_AttributeType_GRAPH;
    if (proto.floats_size() > 0) return onnx::AttributeProto_AttributeType_FLOATS;
    if (proto.ints_size() > 0) return onnx::AttributeProto_AttributeType_INTS;
    if (proto.strings_size() > 0) return onnx::AttributeProto_AttributeType_STRINGS;
    return onnx::AttributeProto_AttributeType_UNDEFINED;
}

}  // namespace

std::string_view canonical_domain(std::string_view domain) {
    return domain == "ai.onnx" ? "" : domain;
}

Graph OnnxGraphReader::read(const onnx::GraphProto& proto) {
    graph_.name = proto.name();
    add_values(proto);
    for (const auto& info : proto.value_info()) declare(info);
    for (const auto& info : proto.input()) declare(info);
    for (const auto& info : proto.output()) declare(info);
    read_initializers(proto);
    read_inputs(proto);
    for (const auto& node : proto.node()) read_node(node);
    read_outputs(proto);
    sort_nodes(graph_);  // verify() tells of cycles
    return std::move(graph_);
}

// All names this graph makes, known before any use is resolved: nodes come in any order.
void OnnxGraphReader::add_values(const onnx::GraphProto& proto) {
    const auto add_made = [&](const std::string& name) {
        if (!name.empty() && made_.insert(name).second) add_value(name);
    };
    for (const auto& input : proto.input()) add_made(input.name());
    for (const auto& initializer : proto.initializer()) add_made(initializer.name());
    for (const auto& node : proto.node()) {
        for (const auto& output : node.output()) add_made(output);
    }
}

void OnnxGraphReader::read_inputs(const onnx::GraphProto& proto) {
    for (const auto& input : proto.input()) {
        if (input.name().empty()) {
            problem("a graph input has no name");
            continue;
        }
        const ValueId id = graph_.find(input.name());
        if (graph_.values[id].initializer) continue;
        graph_.inputs.push_back(id);
        if (outer_ == nullptr) check_input_type(input);
    }
}

void OnnxGraphReader::check_input_type(const onnx::ValueInfoProto& proto) {
    const std::string what = named("graph input", proto.name());
    if (!proto.type().has_tensor_type()) {
        problem("{}: expected a tensor of numbers, found {}", what, kind_of(proto.type()));
    } else if (data_type_of_onnx(proto.type().tensor_type().elem_type()) == DataType::undefined) {
        problem("{}: expected a tensor of numbers, found one of {}", what,
                onnx_type_name(proto.type().tensor_type().elem_type()));
    }
}

void OnnxGraphReader::read_outputs(const onnx::GraphProto& proto) {
    for (const auto& output : proto.output()) {
        if (output.name().empty()) {
            problem("a graph output has no name");
            continue;
        }
        graph_.outputs.push_back(use(output.name()));
        declare(output);
    }
}

void OnnxGraphReader::declare(const onnx::ValueInfoProto& proto) {
    const ValueId id = graph_.find(proto.name());
    if (id == no_value || !proto.type().has_tensor_type()) return;
    Value& value = graph_.values[id];
    const auto& tensor = proto.type().tensor_type();
    if (value.declared_type == DataType::undefined) {
        value.declared_type = data_type_of_onnx(tensor.elem_type());
        if (value.declared_type == DataType::float64) reading_.double_tensors.push_back(value.name);
    }
    if (!value.declared_shape && tensor.has_shape()) value.declared_shape = dimensions_of(tensor.shape());
}

void OnnxGraphReader::read_initializers(const onnx::GraphProto& proto) {
    for (const auto& tensor : proto.initializer()) {
        if (tensor.name().empty()) {
            problem("an initializer has no name");
            continue;
        }
        Value& value = graph_.values[graph_.find(tensor.name())];
        if (value.initializer) problem("initializer '{}' is given twice", printable(tensor.name()));
        // A tensor that cannot be read is a problem of its own and no missing value on top of it.
        value.initializer = read_tensor(tensor, named("initializer", tensor.name())).value_or(Tensor());
        value.declared_type = data_type_of_onnx(tensor.data_type());
        value.declared_shape = fixed_dimensions(list_of<std::int64_t>(tensor.dims()));
    }
    for (const auto& tensor : proto.sparse_initializer()) {
        problem("{}: expected a dense tensor, found a sparse one",
                named("initializer", tensor.values().name()));
    }
}

std::optional<Tensor> OnnxGraphReader::read_tensor(const onnx::TensorProto& proto, const std::string& what) {
    const std::string placed = where_ + what;
    try {
        const std::optional<Tensor> stored = reading_.tensors.read(proto, placed);
        if (!stored) return std::nullopt;
        if (stored->type() == DataType::float64) reading_.double_tensors.push_back(proto.name());
        Tensor converted = to_float32(*stored, placed);
        if (converted.data() != stored->data()) stored->release_pages();
        return converted;
    } catch (const Error& error) {
        reading_.problems.emplace_back(error.what());
        return std::nullopt;
    }
}

void OnnxGraphReader::read_node(const onnx::NodeProto& proto) {
    Node node;
    node.name = proto.name();
    node.domain = canonical_domain(proto.domain());
    node.op_type = proto.op_type();
    const auto used = [&](const std::string& name) { return name.empty() ? no_value : use(name); };
    std::transform(proto.input().begin(), proto.input().end(), std::back_inserter(node.inputs), used);
    std::transform(proto.output().begin(), proto.output().end(), std::back_inserter(node.outputs), used);
    check_operator(node);
    if (const auto opset = reading_.opsets.find(node.domain); opset != reading_.opsets.end()) {
        node.opset = opset->second;
    }
    for (const auto& attribute : proto.attribute()) {
        if (node.has_attribute(attribute.name())) {
            problem("{}: attribute '{}' is given twice", label(graph_, node), printable(attribute.name()));
            continue;
        }
        read_attribute(attribute, node);
    }
    graph_.nodes.push_back(std::move(node));
}

void OnnxGraphReader::check_operator(const Node& node) {
    if (node.op_type.empty())
        problem("{}: expected the name of an operator, found none", label(graph_, node));
    if (reading_.functions.contains({node.domain, node.op_type})) {
        const std::string function =
            printable(node.domain.empty() ? node.op_type : fmt::format("{}:{}", node.domain, node.op_type));
        auto& [first, count] = reading_.function_calls[function];
        if (count++ == 0) first = where_ + label(graph_, node);
    } else if (!reading_.opsets.contains(node.domain) &&
               reading_.reported_domains.insert(node.domain).second) {
        problem("{}: expected a domain that the model imports an opset of, found '{}'", label(graph_, node),
                node.domain.empty() ? "ai.onnx" : printable(node.domain));
    }
}

void OnnxGraphReader::read_attribute(const onnx::AttributeProto& proto, Node& node) {
    using Type = onnx::AttributeProto;
    const std::string& name = proto.name();
    const auto refuse = [&](std::string_view found) {
        problem("{}: attribute '{}': expected a number, string, tensor, graph or list, found {}",
                label(graph_, node), printable(name), found);
    };
    if (!proto.ref_attr_name().empty()) return refuse("a reference to a function's attribute");
    switch (kind_of(proto)) {
        case Type::FLOAT:
            node.attributes[name] = proto.f();
            return;
        case Type::INT:
            node.attributes[name] = std::int64_t{proto.i()};
            return;
        case Type::STRING:
            node.attributes[name] = proto.s();
            return;
        case Type::FLOATS:
            node.attributes[name] = list_of<float>(proto.floats());
            return;
        case Type::INTS:
            node.attributes[name] = list_of<std::int64_t>(proto.ints());
            return;
        case Type::STRINGS:
            node.attributes[name] = list_of<std::string>(proto.strings());
            return;
        case Type::GRAPH:
            return read_subgraph(proto, node);
        case Type::TENSOR:
            if (auto tensor = read_tensor(
                    proto.t(), fmt::format("{}, attribute '{}'", label(graph_, node), printable(name)))) {
                node.attributes[name] = std::move(*tensor);
            }
            return;
        case Type::TENSORS:
            return refuse("a list of tensors");
        case Type::GRAPHS:
            return refuse("a list of graphs");
        case Type::SPARSE_TENSOR:
        case Type::SPARSE_TENSORS:
            return refuse("a sparse tensor");
        case Type::TYPE_PROTO:
        case Type::TYPE_PROTOS:
            return refuse("a type");
        case Type::UNDEFINED:
            break;
    }
    refuse("none of them");
}

void OnnxGraphReader::read_subgraph(const onnx::AttributeProto& proto, Node& node) {
    OnnxGraphReader inner(reading_, this,
                          fmt::format("{}{}, {}: ", where_, label(graph_, node), printable(proto.name())));
    auto subgraph = std::make_shared<const Graph>(inner.read(proto.g()));
    for (const auto& [id, name] : subgraph->captures) {
        const ValueId captured = use(name);
        if (std::find(node.captured.begin(), node.captured.end(), captured) == node.captured.end()) {
            node.captured.push_back(captured);
        }
    }
    node.attributes[proto.name()] = std::move(subgraph);
}

ValueId OnnxGraphReader::add_value(const std::string& name) {
    const auto id = static_cast<ValueId>(graph_.values.size());
    graph_.values.emplace_back().name = name;
    graph_.index.emplace(name, id);
    return id;
}

ValueId OnnxGraphReader::use(const std::string& name) {
    const ValueId known = graph_.find(name);
    if (known != no_value) return known;
    const ValueId id = add_value(name);
    if (const Value* outside = find_outside(name)) {
        graph_.values[id].declared_type = outside->declared_type;
        graph_.values[id].declared_shape = outside->declared_shape;
        graph_.captures.emplace_back(id, name);
    }
    return id;
}

const Value* OnnxGraphReader::find_outside(const std::string& name) const {
    for (const OnnxGraphReader* reader = outer_; reader != nullptr; reader = reader->outer_) {
        if (reader->made_.contains(name)) return &reader->graph_.values[reader->graph_.find(name)];
    }
    return nullptr;
}

}  // namespace qcalib
