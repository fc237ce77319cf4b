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

// The type that values have in the graph, undefined where there is none for them.
DataType declared_type_of(const onnx::TypeProto& type) {
    if (type.has_tensor_type()) return data_type_of_onnx(type.tensor_type().elem_type());
    if (type.has_sequence_type()) return DataType::sequence;
    if (type.has_optional_type()) return DataType::optional;
    return DataType::undefined;
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

void count_names(const onnx::GraphProto& graph, std::unordered_map<std::string, std::size_t>& uses) {
    std::unordered_set<std::string> made;
    for (const auto& input : graph.input()) made.insert(input.name());
    for (const auto& initializer : graph.initializer()) made.insert(initializer.name());
    for (const auto& node : graph.node()) {
        made.insert(node.output().begin(), node.output().end());
        for (const auto& attribute : node.attribute()) {
            if (attribute.has_g()) count_names(attribute.g(), uses);
        }
    }
    for (const std::string& name : made) ++uses[name];
}

// Fills Node::captured of a node whose inner nodes have theirs.
void find_captured(const Graph& graph, const std::unordered_set<ValueId>& unresolved, Node& node) {
    std::unordered_set<ValueId> known;  // made inside, or listed already
    for (const Body& body : node.bodies) {
        known.insert(body.inputs.begin(), body.inputs.end());
        for (const NodeIndex inner : body.nodes) {
            known.insert(graph.nodes[inner].outputs.begin(), graph.nodes[inner].outputs.end());
        }
    }
    const auto use = [&](ValueId value) {
        if (value == no_value || graph.values[value].initializer || unresolved.contains(value)) return;
        if (known.insert(value).second) node.captured.push_back(value);
    };
    for (const Body& body : node.bodies) {
        for (const NodeIndex inner : body.nodes) {
            const Node& user = graph.nodes[inner];
            std::for_each(user.inputs.begin(), user.inputs.end(), use);
            std::for_each(user.captured.begin(), user.captured.end(), use);
        }
        std::for_each(body.outputs.begin(), body.outputs.end(), use);
    }
}

}  // namespace

std::string_view canonical_domain(std::string_view domain) {
    return domain == "ai.onnx" ? "" : domain;
}

void read_graph(const onnx::GraphProto& proto, const Opsets& opsets, OnnxReading& reading) {
    count_names(proto, reading.name_uses);
    Graph& graph = reading.graph;
    graph.name = proto.name();
    Body outermost = OnnxGraphReader(reading, opsets).read(proto);
    graph.inputs = std::move(outermost.inputs);
    graph.outputs = std::move(outermost.outputs);
    // Nodes of bodies were read before the node they belong to.
    for (Node& node : graph.nodes) find_captured(graph, reading.unresolved, node);
}

Body OnnxGraphReader::read(const onnx::GraphProto& proto) {
    add_values(proto);
    for (const auto& info : proto.value_info()) declare(info);
    for (const auto& info : proto.input()) declare(info);
    for (const auto& info : proto.output()) declare(info);
    read_initializers(proto);
    read_inputs(proto);
    for (const auto& node : proto.node()) read_node(node);
    read_outputs(proto);
    return std::move(body_);
}

// All names this graph makes, known before any use is resolved: nodes come in any order.
void OnnxGraphReader::add_values(const onnx::GraphProto& proto) {
    const auto add_made = [&](const std::string& name) {
        if (!name.empty() && made_.insert(name).second) ids_.emplace(name, add_value(name));
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
        const ValueId id = ids_.at(input.name());
        if (!graph().values[id].initializer) {
            body_.inputs.push_back(id);
            if (outer_ == nullptr) check_input_type(input);
        } else if (outer_ != nullptr) {
            problem("{}: expected an input of a body without an initializer",
                    named("initializer", input.name()));
        }
    }
}

void OnnxGraphReader::check_input_type(const onnx::ValueInfoProto& proto) {
    const std::string what = named("graph input", proto.name());
    if (reading_.any_inputs && declared_type_of(proto.type()) != DataType::undefined) return;
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
        body_.outputs.push_back(use(output.name()));
        declare(output);
    }
}

void OnnxGraphReader::declare(const onnx::ValueInfoProto& proto) {
    const auto found = ids_.find(proto.name());
    if (found == ids_.end()) return;
    Value& value = graph().values[found->second];
    if (!proto.type().has_tensor_type()) {
        if (value.declared_type == DataType::undefined) value.declared_type = declared_type_of(proto.type());
        return;
    }
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
        Value& value = graph().values[ids_.at(tensor.name())];
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
    node.name = in_function_ && !proto.name().empty() ? prefix_ + proto.name() : proto.name();
    node.domain = canonical_domain(proto.domain());
    node.op_type = proto.op_type();
    const auto used = [&](const std::string& name) { return name.empty() ? no_value : use(name); };
    std::transform(proto.input().begin(), proto.input().end(), std::back_inserter(node.inputs), used);
    std::transform(proto.output().begin(), proto.output().end(), std::back_inserter(node.outputs), used);
    const auto function = reading_.functions.find({node.domain, node.op_type});
    if (function != reading_.functions.end()) {
        if (may_expand(function->second, node)) expand(function->second, proto, node);
        return;
    }
    check_operator(node);
    if (const auto opset = opsets_->find(node.domain); opset != opsets_->end()) node.opset = opset->second;
    for (const auto& attribute : proto.attribute()) {
        if (node.has_attribute(attribute.name()) || node.body(attribute.name()) != nullptr) {
            problem("{}: attribute '{}' is given twice", label(graph(), node), printable(attribute.name()));
            continue;
        }
        read_attribute(attribute, node);
    }
    add_node(std::move(node));
}

void OnnxGraphReader::add_node(Node node) {
    const auto index = static_cast<NodeIndex>(graph().nodes.size());
    for (const Body& body : node.bodies) {
        for (const NodeIndex inner : body.nodes) graph().nodes[inner].owner = index;
    }
    graph().nodes.push_back(std::move(node));
    body_.nodes.push_back(index);
}

void OnnxGraphReader::check_operator(const Node& node) {
    if (node.op_type.empty())
        problem("{}: expected the name of an operator, found none", label(graph(), node));
    if (!opsets_->contains(node.domain) && reading_.reported_domains.insert(node.domain).second) {
        problem("{}: expected a domain that the {} imports an opset of, found '{}'", label(graph(), node),
                in_function_ ? "function" : "model",
                node.domain.empty() ? "ai.onnx" : printable(node.domain));
    }
}

void OnnxGraphReader::read_attribute(const onnx::AttributeProto& proto, Node& node) {
    using Type = onnx::AttributeProto;
    const std::string& name = proto.name();
    const auto refuse = [&](std::string_view found) {
        problem("{}: attribute '{}': expected a number, string, tensor, graph or list, found {}",
                label(graph(), node), printable(name), found);
    };
    const onnx::AttributeProto* given = resolve(proto);
    if (given == nullptr) {
        if (!in_function_) refuse("a reference to a function's attribute");
        return;
    }
    switch (kind_of(*given)) {
        case Type::FLOAT:
            node.attributes[name] = given->f();
            return;
        case Type::INT:
            node.attributes[name] = std::int64_t{given->i()};
            return;
        case Type::STRING:
            node.attributes[name] = given->s();
            return;
        case Type::FLOATS:
            node.attributes[name] = list_of<float>(given->floats());
            return;
        case Type::INTS:
            node.attributes[name] = list_of<std::int64_t>(given->ints());
            return;
        case Type::STRINGS:
            node.attributes[name] = list_of<std::string>(given->strings());
            return;
        case Type::GRAPH:
            if (given != &proto) return refuse("a graph that the function's call gives");
            return read_body(proto, node);
        case Type::TENSOR:
            if (auto tensor = read_tensor(
                    given->t(), fmt::format("{}, attribute '{}'", label(graph(), node), printable(name)))) {
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

void OnnxGraphReader::read_body(const onnx::AttributeProto& proto, Node& node) {
    OnnxGraphReader inner(reading_, this,
                          fmt::format("{}{}, {}: ", where_, label(graph(), node), printable(proto.name())),
                          fmt::format("{}{}/", prefix_in(node), proto.name()));
    Body body = inner.read(proto.g());
    body.attribute = proto.name();
    node.bodies.push_back(std::move(body));
}

ValueId OnnxGraphReader::add_value(const std::string& name) {
    const auto id = static_cast<ValueId>(graph().values.size());
    std::string unique = unique_name(name);
    graph().index.emplace(unique, id);
    graph().values.emplace_back().name = std::move(unique);
    return id;
}

std::string OnnxGraphReader::unique_name(const std::string& name) const {
    const auto uses = reading_.name_uses.find(name);
    const bool shared = outer_ != nullptr && uses != reading_.name_uses.end() && uses->second > 1;
    const std::string wanted = shared || in_function_ ? prefix_ + name : name;
    std::string unique = wanted;
    for (std::size_t i = 2; graph().index.contains(unique); ++i) unique = fmt::format("{}#{}", wanted, i);
    return unique;
}

ValueId OnnxGraphReader::use(const std::string& name) {
    if (const auto known = ids_.find(name); known != ids_.end()) return known->second;
    if (const std::optional<ValueId> outside = find_outside(name)) return *outside;
    const ValueId id = add_value(name);
    ids_.emplace(name, id);
    reading_.unresolved.insert(id);
    return id;
}

std::optional<ValueId> OnnxGraphReader::find_outside(const std::string& name) const {
    for (const OnnxGraphReader* reader = this; !reader->sealed_ && reader->outer_ != nullptr;) {
        reader = reader->outer_;
        if (reader->made_.contains(name)) return reader->ids_.at(name);
    }
    return std::nullopt;
}

std::string OnnxGraphReader::prefix_in(const Node& node) const {
    // In a function, the node's name has the prefix already; so has a value's name that needs it.
    if (!node.name.empty()) return (in_function_ ? "" : prefix_) + node.name + "/";
    const auto made = std::find_if(node.outputs.begin(), node.outputs.end(),
                                   [](ValueId output) { return output != no_value; });
    return (made == node.outputs.end() ? prefix_ + node.op_type : graph().values[*made].name) + "/";
}

}  // namespace qcalib
