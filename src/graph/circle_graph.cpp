#include "graph/circle_graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "graph/circle_operators.h"

namespace qcalib {

namespace {

// Subgraphs may run each other; a file that does so without end, or nearly, is refused.
constexpr std::size_t body_limit = 1000;
constexpr std::int32_t custom_operator = 32;
// States that start as zeros are made, not read.
constexpr std::size_t zero_byte_limit = std::size_t{1} << 28;

std::string text_of(const flatbuffers::String* text) {
    return text == nullptr ? std::string() : text->str();
}

template <typename Vector>
std::uint32_t size_of_vector(const Vector* vector) {
    return vector == nullptr ? 0 : vector->size();
}

template <typename T>
std::vector<T> elements_of(const flatbuffers::Vector<T>* vector) {
    return vector == nullptr ? std::vector<T>() : std::vector<T>(vector->begin(), vector->end());
}

CircleQuantization quantization_of(const circle::Tensor& tensor) {
    const circle::Quantization* from = tensor.quantization();
    if (from == nullptr) return {};
    return {elements_of(from->min()), elements_of(from->max()), elements_of(from->scale()),
            elements_of(from->zero_point()), from->quantized_dimension()};
}

// Elements in a file; a bool is any byte there, but 0 or 1 in memory.
Tensor booleans(const TensorDescriptor& descriptor, std::span<const std::byte> bytes) {
    Tensor tensor(descriptor);
    std::transform(bytes.begin(), bytes.end(), tensor.mutable_view().data,
                   [](std::byte value) { return static_cast<std::byte>(value != std::byte{0}); });
    return tensor;
}

Tensor zeros(const TensorDescriptor& descriptor, const std::string& what) {
    if (descriptor.elements() > zero_byte_limit / size_of(descriptor.type)) {
        fail("{}: expected a state of at most {} bytes, found {} {}", what, zero_byte_limit,
             name_of(descriptor.type), to_string(descriptor.shape));
    }
    Tensor tensor(descriptor);
    std::fill_n(tensor.mutable_view().data, descriptor.bytes(), std::byte{0});
    return to_float32(tensor, what);
}

// Which subgraphs an operator runs: the attribute of the body and the option that holds the number.
struct BodyOption {
    std::string_view op_type;
    std::string_view body;
    std::string_view option;
};
constexpr std::array body_options = {
    BodyOption{"IF", "then_branch", "then_subgraph_index"},
    BodyOption{"IF", "else_branch", "else_subgraph_index"},
    BodyOption{"WHILE", "cond", "cond_subgraph_index"},
    BodyOption{"WHILE", "body", "body_subgraph_index"},
    BodyOption{"CALL", "body", "subgraph"},
    BodyOption{"CALL_ONCE", "body", "init_subgraph_index"},
};

}  // namespace

void read_circle_graph(CircleReading& reading) {
    const auto* subgraphs = reading.model.subgraphs();
    for (const circle::SubGraph* subgraph : *subgraphs) {
        if (subgraph->tensors() == nullptr) continue;
        for (const circle::Tensor* tensor : *subgraph->tensors())
            ++reading.name_uses[text_of(tensor->name())];
    }
    reading.graph.name = text_of(subgraphs->Get(0)->name());
    Body outermost = CircleGraphReader(reading, 0, nullptr, "", "").read();
    reading.graph.inputs = std::move(outermost.inputs);
    reading.graph.outputs = std::move(outermost.outputs);
}

CircleGraphReader::CircleGraphReader(CircleReading& reading, std::uint32_t subgraph,
                                     const CircleGraphReader* outer, std::string where, std::string prefix)
    : reading_(reading),
      index_(subgraph),
      outer_(outer),
      where_(std::move(where)),
      prefix_(std::move(prefix)),
      subgraph_(reading.model.subgraphs()->Get(subgraph)) {}

Body CircleGraphReader::read() {
    find_made();
    add_tensors();
    const std::string_view kind = outer_ == nullptr ? "graph " : "";
    body_.outputs = uses(subgraph_->outputs(), false, fmt::format("{}outputs", kind));
    for (const ValueId input : uses(subgraph_->inputs(), false, fmt::format("{}inputs", kind))) {
        const bool constant = reading_.graph.values[input].initializer.has_value();
        if (outer_ != nullptr || !constant) body_.inputs.push_back(input);
    }
    for (std::uint32_t i = 0; i < size_of_vector(subgraph_->operators()); ++i) read_operator(i);
    return std::move(body_);
}

void CircleGraphReader::find_made() {
    const std::uint32_t tensors = size_of_vector(subgraph_->tensors());
    made_.assign(tensors, false);
    given_.assign(tensors, false);
    const auto mark = [&](const flatbuffers::Vector<std::int32_t>* indices, std::vector<bool>& marks) {
        if (indices == nullptr) return;
        for (const std::int32_t index : *indices) {
            if (index >= 0 && std::cmp_less(index, tensors)) marks[static_cast<std::size_t>(index)] = true;
        }
    };
    mark(subgraph_->inputs(), given_);
    if (subgraph_->operators() == nullptr) return;
    for (const circle::Operator* one : *subgraph_->operators()) mark(one->outputs(), made_);
}

void CircleGraphReader::add_tensors() {
    first_ = static_cast<ValueId>(reading_.graph.values.size());
    for (std::uint32_t i = 0; i < made_.size(); ++i) add_tensor(i);
}

void CircleGraphReader::add_tensor(std::uint32_t index) {
    const circle::Tensor& tensor = *subgraph_->tensors()->Get(index);
    const std::string name = text_of(tensor.name());
    Value value;
    value.name = unique_name(name, index);
    if (value.name != name) value.file_name = name;
    declare(tensor, value);
    add_facts(tensor, index, name);
    read_constant(tensor, index, value);
    reading_.graph.index.emplace(value.name, static_cast<ValueId>(reading_.graph.values.size()));
    reading_.graph.values.push_back(std::move(value));
}

// The file's own name where nothing else has it, else one that nothing in the file has.
std::string CircleGraphReader::unique_name(const std::string& name, std::uint32_t index) const {
    const std::unordered_map<std::string, std::size_t>& uses = reading_.name_uses;
    const auto free = [&](const std::string& wanted) { return !reading_.graph.index.contains(wanted); };
    const bool shared_in_body = outer_ != nullptr && uses.at(name) > 1;
    if (!name.empty() && !shared_in_body && free(name)) return name;
    std::string wanted = prefix_ + (name.empty() ? fmt::format("tensor_{}", index) : name);
    if (outer_ == nullptr && !name.empty()) wanted = fmt::format("{}_{}", name, index);
    std::string unique = wanted;
    for (std::size_t i = 2; !free(unique) || uses.contains(unique); ++i)
        unique = fmt::format("{}#{}", wanted, i);
    return unique;
}

void CircleGraphReader::declare(const circle::Tensor& tensor, Value& value) {
    value.declared_type = data_type_of_circle(tensor.type());
    if (value.declared_type == DataType::float64) reading_.double_tensors.push_back(value.name);
    if (size_of_vector(tensor.shape()) == 0 && !tensor.has_rank()) return;  // unknown; a constant's is []
    std::vector<Dimension>& dimensions = value.declared_shape.emplace();
    const auto* signature = tensor.shape_signature();
    const bool same_rank = size_of_vector(signature) == size_of_vector(tensor.shape());
    for (std::uint32_t i = 0; i < size_of_vector(tensor.shape()); ++i) {
        const std::int32_t size = same_rank ? signature->Get(i) : tensor.shape()->Get(i);
        Dimension& dimension = dimensions.emplace_back();
        if (size >= 0) dimension.size = size;
    }
}

void CircleGraphReader::add_facts(const circle::Tensor& tensor, std::uint32_t index,
                                  const std::string& name) {
    CircleTensorFacts facts;
    facts.subgraph = index_;
    facts.index = index;
    facts.name = name;
    facts.type_code = tensor.type();
    facts.shape = elements_of(tensor.shape());
    facts.shape_signature = elements_of(tensor.shape_signature());
    facts.buffer = tensor.buffer();
    facts.quantization = quantization_of(tensor);
    facts.is_variable = tensor.is_variable();
    if (tensor.quantization() != nullptr && tensor.quantization()->details_type() != 0) {
        reading_.remarks.push_back(fmt::format("{}: details of its quantization (kind {}) are not read",
                                               named(index), tensor.quantization()->details_type()));
    }
    reading_.tensors.push_back(std::move(facts));
}

std::string CircleGraphReader::named(std::uint32_t index) const {
    const std::string name = text_of(subgraph_->tensors()->Get(index)->name());
    return name.empty() ? fmt::format("tensor {} without a name", index)
                        : fmt::format("tensor '{}'", printable(name));
}

// A tensor is a constant where it has data and nothing makes it; one that keeps a state starts as zeros.
void CircleGraphReader::read_constant(const circle::Tensor& tensor, std::uint32_t index, Value& value) {
    if (made_[index] || (given_[index] && (outer_ != nullptr || tensor.is_variable()))) return;
    const std::string what = where_ + named(index);
    try {
        const std::span<const std::byte> bytes = data_of(tensor, what);
        const auto* shape = tensor.shape();
        const bool no_elements =
            !given_[index] && shape != nullptr && std::find(shape->begin(), shape->end(), 0) != shape->end();
        if (bytes.empty() && !tensor.is_variable() && !no_elements) return;
        value.initializer = make_constant(tensor, what, bytes);
        if (!value.declared_shape) value.declared_shape.emplace();
    } catch (const Error& error) {
        reading_.problems.emplace_back(error.what());
        value.initializer = Tensor();  // no missing value on top of it
    }
}

std::span<const std::byte> CircleGraphReader::data_of(const circle::Tensor& tensor,
                                                      const std::string& what) const {
    const std::uint32_t buffers = size_of_vector(reading_.model.buffers());
    if (tensor.buffer() >= buffers && tensor.buffer() > 0) {
        fail("{}: expected one of {} buffers, found buffer {}", what, buffers, tensor.buffer());
    }
    if (tensor.buffer() >= buffers) return {};
    const circle::Buffer& buffer = *reading_.model.buffers()->Get(tensor.buffer());
    if (buffer.data() != nullptr && buffer.data()->size() > 0) {
        return std::as_bytes(std::span(buffer.data()->data(), buffer.data()->size()));
    }
    if (buffer.offset() <= 1) return {};
    const std::span<const std::byte> all = reading_.file->bytes();
    if (buffer.offset() > all.size() || buffer.size() > all.size() - buffer.offset()) {
        fail("{}: expected its {} bytes of data from byte {} on, found a file of {} bytes", what,
             buffer.size(), buffer.offset(), all.size());
    }
    return all.subspan(buffer.offset(), buffer.size());
}

Tensor CircleGraphReader::make_constant(const circle::Tensor& tensor, const std::string& what,
                                        std::span<const std::byte> bytes) {
    TensorDescriptor descriptor;
    descriptor.type = data_type_of_circle(tensor.type());
    if (tensor.shape() != nullptr) descriptor.shape.assign(tensor.shape()->begin(), tensor.shape()->end());
    if (descriptor.type == DataType::undefined) {
        fail("{}: expected constant numbers of a type qcalib has, found {}", what,
             circle_type_name(tensor.type()));
    }
    if (tensor.sparsity() != nullptr) fail("{}: expected dense data, found sparse data", what);
    if (tensor.compression_type() != 0) {
        fail("{}: expected plain data, found data compressed as kind {}", what, tensor.compression_type());
    }
    try {
        static_cast<void>(descriptor.elements());
    } catch (const Error& error) {
        fail("{}: {}", what, error.what());
    }
    if (descriptor.type == DataType::string) {
        if (descriptor.elements() > bytes.size() / sizeof(std::int32_t)) {  // each has an offset there
            fail("{}: expected {} strings, found {} bytes in buffer {}", what, descriptor.elements(),
                 bytes.size(), tensor.buffer());
        }
        return Tensor(descriptor);
    }
    if (bytes.empty() && tensor.is_variable()) return zeros(descriptor, what);
    const std::size_t size = size_of(descriptor.type);
    if (bytes.size() % size != 0 || bytes.size() / size != descriptor.elements()) {
        fail("{}: expected {} elements of {} bytes for {} {}, found {} bytes in buffer {}", what,
             descriptor.elements(), size, name_of(descriptor.type), to_string(descriptor.shape), bytes.size(),
             tensor.buffer());
    }
    if (descriptor.type == DataType::boolean) return booleans(descriptor, bytes);
    const Tensor stored(descriptor, reading_.file, bytes);
    Tensor converted = to_float32(stored, what);
    if (converted.data() != stored.data()) stored.release_pages();
    return converted;
}

std::vector<ValueId> CircleGraphReader::uses(const flatbuffers::Vector<std::int32_t>* indices,
                                             bool may_be_absent, std::string_view what) {
    std::vector<ValueId> values;
    for (std::uint32_t i = 0; i < size_of_vector(indices); ++i) {
        const std::int32_t index = indices->Get(i);
        if (index == -1 && may_be_absent) {
            values.push_back(no_value);
        } else if (index < 0 || std::cmp_greater_equal(index, made_.size())) {
            problem("{}: expected one of {} tensors, found tensor {}", what, made_.size(), index);
        } else {
            values.push_back(first_ + static_cast<ValueId>(index));
        }
    }
    return values;
}

void CircleGraphReader::read_operator(std::uint32_t index) {
    const circle::Operator& from = *subgraph_->operators()->Get(index);
    Node node;
    node.domain = circle_domain;
    const std::optional<std::int32_t> code = read_code(from, index, node);
    const std::string what = fmt::format("operator {} ({})", index, node.op_type);
    node.inputs = uses(from.inputs(), true, what + ", inputs");
    node.outputs = uses(from.outputs(), true, what + ", outputs");
    if (!code) return;
    const std::span<const std::byte> file = reading_.file->bytes();
    CircleOptions options{
        from.options_type(), nullptr, {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}};
    if (from.options() != nullptr) options.table = reinterpret_cast<const std::uint8_t*>(from.options());
    try {
        read_circle_options(*code, options, node);
    } catch (const Error& error) {
        problem("{}: {}", what, error.what());
        return;
    }
    add_quantization(node);
    read_bodies(node);
    const auto place = static_cast<NodeIndex>(reading_.graph.nodes.size());
    for (const Body& body : node.bodies) {
        for (const NodeIndex inner : body.nodes) reading_.graph.nodes[inner].owner = place;
    }
    reading_.graph.nodes.push_back(std::move(node));
    body_.nodes.push_back(place);
}

// Sets the operator's name and version. The code stands in one byte in old files, and where that is too small
// in a field of its own.
std::optional<std::int32_t> CircleGraphReader::read_code(const circle::Operator& from, std::uint32_t index,
                                                         Node& node) {
    const auto* codes = reading_.model.operator_codes();
    if (from.opcode_index() >= size_of_vector(codes)) {
        problem("operator {}: expected one of {} operator codes, found code {}", index, size_of_vector(codes),
                from.opcode_index());
        return std::nullopt;
    }
    const circle::OperatorCode& entry = *codes->Get(from.opcode_index());
    const std::int32_t code = entry.code() != 0 ? entry.code() : entry.short_code();
    node.op_type = circle_operator_name(code);
    node.opset = std::max(entry.version(), 1);
    if (code == custom_operator) node.attributes["custom_code"] = text_of(entry.custom_code());
    return code;
}

// What Quantize and Dequantize compute is not in their options but in their tensors.
void CircleGraphReader::add_quantization(Node& node) const {
    if (node.op_type != "QUANTIZE" && node.op_type != "DEQUANTIZE") return;
    const auto add = [&](const std::vector<ValueId>& values, const std::string& side) {
        if (values.size() != 1 || values[0] == no_value) return;
        const CircleQuantization& quantization = reading_.tensors[values[0]].quantization;
        if (quantization.scale.empty()) return;
        node.attributes[side + "_scale"] = quantization.scale;
        node.attributes[side + "_zero_point"] = quantization.zero_point;
        node.attributes[side + "_axis"] = std::int64_t{quantization.quantized_dimension};
    };
    add(node.inputs, "input");
    add(node.outputs, "output");
}

void CircleGraphReader::read_bodies(Node& node) {
    for (const BodyOption& option : body_options) {
        if (node.op_type == option.op_type) read_body(node, option.body, option.option);
    }
}

void CircleGraphReader::read_body(Node& node, std::string_view attribute, std::string_view option) {
    const std::int64_t subgraph = node.attribute<std::int64_t>(option, 0);
    const std::string what = label(reading_.graph, node);
    if (subgraph < 0 || std::cmp_greater_equal(subgraph, reading_.model.subgraphs()->size())) {
        return problem("{}: {}: expected one of {} subgraphs, found {}", what, option,
                       reading_.model.subgraphs()->size(), subgraph);
    }
    const auto index = static_cast<std::uint32_t>(subgraph);
    for (const CircleGraphReader* reader = this; reader != nullptr; reader = reader->outer_) {
        if (reader->index_ == index) {
            return problem("{}: {}: expected a subgraph that does not run this one, found {}", what, option,
                           subgraph);
        }
    }
    if (++reading_.bodies > body_limit) {
        if (reading_.bodies == body_limit + 1)
            problem("{}: subgraphs run more than {} others", what, body_limit);
        return;
    }
    const std::string prefix = node.outputs.empty() || node.outputs[0] == no_value
                                   ? prefix_ + node.op_type
                                   : reading_.graph.values[node.outputs[0]].name;
    CircleGraphReader inner(reading_, index, this, fmt::format("{}{}, {}: ", where_, what, attribute),
                            fmt::format("{}/{}/", prefix, attribute));
    Body body = inner.read();
    body.attribute = attribute;
    node.bodies.push_back(std::move(body));
}

}  // namespace qcalib
