#include "format/clip_onnx.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tensor/tensor.h"

namespace qcalib {

namespace {

constexpr std::int64_t first_opset_of_inputs = 11;
constexpr std::int64_t first_ir_of_free_initializers = 4;

void visit_tensors(onnx::GraphProto& graph, const std::function<void(onnx::TensorProto&)>& visit);

void visit_tensors(onnx::NodeProto& node, const std::function<void(onnx::TensorProto&)>& visit) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_t()) visit(*attribute.mutable_t());
        for (onnx::TensorProto& one : *attribute.mutable_tensors()) visit(one);
        if (attribute.has_g()) visit_tensors(*attribute.mutable_g(), visit);
        for (onnx::GraphProto& one : *attribute.mutable_graphs()) visit_tensors(one, visit);
    }
}

// Every tensor that is stored in the graph, in bodies as well.
void visit_tensors(onnx::GraphProto& graph, const std::function<void(onnx::TensorProto&)>& visit) {
    for (onnx::TensorProto& one : *graph.mutable_initializer()) visit(one);
    for (onnx::SparseTensorProto& one : *graph.mutable_sparse_initializer()) {
        visit(*one.mutable_values());
        visit(*one.mutable_indices());
    }
    for (onnx::NodeProto& node : *graph.mutable_node()) visit_tensors(node, visit);
}

// How often each name is read, bodies included.
void count_uses(const onnx::GraphProto& graph, std::map<std::string, std::size_t>& uses) {
    for (const onnx::ValueInfoProto& output : graph.output()) ++uses[output.name()];
    for (const onnx::NodeProto& node : graph.node()) {
        for (const std::string& input : node.input()) ++uses[input];
        for (const onnx::AttributeProto& attribute : node.attribute()) {
            if (attribute.has_g()) count_uses(attribute.g(), uses);
            for (const onnx::GraphProto& one : attribute.graphs()) count_uses(one, uses);
        }
    }
}

bool is_own_domain(const std::string& domain) {
    return domain.empty() || domain == "ai.onnx";
}

template <typename T>
std::string bytes_of(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

// The bits of a number that float16 holds exactly.
std::uint16_t half_bits(float value) {
    constexpr int least_exponent = -14;
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
    const float magnitude = std::abs(value);
    if (std::isinf(value)) return sign | 0x7c00U;
    const int exponent = magnitude > 0 ? std::ilogb(magnitude) : least_exponent - 1;
    if (exponent < least_exponent)
        return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::ldexp(magnitude, 24)));
    const auto mantissa = static_cast<unsigned>(std::ldexp(magnitude, 10 - exponent)) & 0x3ffU;
    return static_cast<std::uint16_t>(sign | (static_cast<unsigned>(exponent - least_exponent + 1) << 10) |
                                      mantissa);
}

// A bound in the type of the tensor that is clipped.
std::string bound_bytes(double value, std::int32_t type) {
    auto number = static_cast<float>(value);
    const auto rounded = [&](DataType half) {
        round_to(half, std::span<float>(&number, 1));
        return number;
    };
    switch (type) {
        case onnx::TensorProto::DOUBLE:
            return bytes_of(value);
        case onnx::TensorProto::FLOAT16:
            return bytes_of(half_bits(rounded(DataType::float16)));
        case onnx::TensorProto::BFLOAT16:
            return bytes_of(
                static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded(DataType::bfloat16)) >> 16));
        default:
            return bytes_of(number);
    }
}

void set_float(onnx::NodeProto& node, const char* name, double value) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.name() == name) return attribute.set_f(static_cast<float>(value));
    }
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(value));
}

// What is declared of a tensor of the graph, or nullptr.
const onnx::ValueInfoProto* declaration(const onnx::GraphProto& graph, const std::string& name) {
    for (const auto* list : {&graph.value_info(), &graph.output()}) {
        for (const onnx::ValueInfoProto& value : *list) {
            if (value.name() == name) return &value;
        }
    }
    return nullptr;
}

template <typename List, typename Predicate>
void remove_if(List& list, Predicate predicate) {
    int kept = 0;
    for (int i = 0; i < list.size(); ++i) {
        if (predicate(list.Get(i))) continue;
        if (kept != i) list.SwapElements(kept, i);
        ++kept;
    }
    list.DeleteSubrange(kept, list.size() - kept);
}

}  // namespace

// A Clip and the node it comes behind.
struct ClippedOnnx::Insertion {
    std::size_t behind = 0;
    onnx::NodeProto clip;
};

ClippedOnnx::ClippedOnnx(const std::filesystem::path& path)
    : path_(path), model_(std::make_unique<onnx::ModelProto>()) {
    const MappedFile file(path);
    const std::size_t size = file.bytes().size();
    if (size > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        fail("{}: expected a model below 2 GiB to put Clip nodes in, found {}", printable(path.string()),
             human_bytes(size));
    if (!model_->ParseFromArray(file.bytes().data(), static_cast<int>(size)) || !model_->has_graph())
        fail("{}: expected an ONNX model, found a file that cannot be parsed as one",
             printable(path.string()));
    for (const auto& import : model_->opset_import()) {
        if (is_own_domain(import.domain())) opset_ = import.version();
    }
    collect_names(model_->graph());
}

ClippedOnnx::~ClippedOnnx() = default;

void ClippedOnnx::collect_names(const onnx::GraphProto& graph) {
    for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()}) {
        for (const onnx::ValueInfoProto& value : *list) names_.insert(value.name());
    }
    for (const onnx::TensorProto& one : graph.initializer()) names_.insert(one.name());
    for (const onnx::NodeProto& node : graph.node()) {
        names_.insert(node.name());
        names_.insert(node.input().begin(), node.input().end());
        names_.insert(node.output().begin(), node.output().end());
        for (const onnx::AttributeProto& attribute : node.attribute()) {
            if (attribute.has_g()) collect_names(attribute.g());
            for (const onnx::GraphProto& one : attribute.graphs()) collect_names(one);
        }
    }
}

std::string ClippedOnnx::unique(std::string name) {
    std::string result = name;
    for (int i = 1; !names_.insert(result).second; ++i) result = fmt::format("{}_{}", name, i);
    return result;
}

std::optional<std::size_t> ClippedOnnx::producer(const std::string& tensor) const {
    const auto& nodes = model_->graph().node();
    for (int i = 0; i < nodes.size(); ++i) {
        const auto& outputs = nodes[i].output();
        if (std::find(outputs.begin(), outputs.end(), tensor) != outputs.end())
            return static_cast<std::size_t>(i);
    }
    return std::nullopt;
}

bool ClippedOnnx::makes(const std::string& tensor) const {
    return producer(tensor).has_value();
}

std::string ClippedOnnx::add_bound(const std::string& name, double value, std::int32_t type) {
    onnx::GraphProto& graph = *model_->mutable_graph();
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(unique(name));
    tensor.set_data_type(type);
    tensor.set_raw_data(bound_bytes(value, type));
    if (model_->ir_version() < first_ir_of_free_initializers) {
        onnx::ValueInfoProto& input = *graph.add_input();
        input.set_name(tensor.name());
        input.mutable_type()->mutable_tensor_type()->set_elem_type(type);
        input.mutable_type()->mutable_tensor_type()->mutable_shape();
    }
    return tensor.name();
}

void ClippedOnnx::set_bounds(onnx::NodeProto& clip, const std::string& tensor, Range bounds,
                             std::int32_t type) {
    if (opset_ < first_opset_of_inputs) {
        set_float(clip, "min", bounds.min);
        set_float(clip, "max", bounds.max);
        return;
    }
    while (clip.input_size() < 3) clip.add_input();
    for (int i = 1; i < 3; ++i) former_bounds_.insert(clip.input(i));
    *clip.mutable_input(1) = add_bound(tensor + "_clip_min", bounds.min, type);
    *clip.mutable_input(2) = add_bound(tensor + "_clip_max", bounds.max, type);
}

void ClippedOnnx::insert(const std::string& tensor, Range bounds, std::int32_t type) {
    const auto place = producer(tensor);
    if (!place)
        fail("{}: '{}': expected a node that makes it, found none", printable(path_.string()),
             printable(tensor));
    onnx::GraphProto& graph = *model_->mutable_graph();
    onnx::NodeProto& node = *graph.mutable_node(static_cast<int>(*place));
    const std::string inner = unique(tensor + "_unclipped");
    std::replace(node.mutable_output()->begin(), node.mutable_output()->end(), tensor, inner);
    if (const onnx::ValueInfoProto* declared = declaration(graph, tensor)) {
        onnx::ValueInfoProto copy = *declared;
        copy.set_name(inner);
        graph.add_value_info()->Swap(&copy);
    }
    Insertion& insertion = insertions_.emplace_back();
    insertion.behind = *place;
    insertion.clip.set_op_type("Clip");
    insertion.clip.set_name(unique(tensor + "_clip"));
    insertion.clip.add_input(inner);
    insertion.clip.add_output(tensor);
    set_bounds(insertion.clip, tensor, bounds, type);
}

void ClippedOnnx::move(const std::string& tensor, Range bounds, std::int32_t type) {
    const auto place = producer(tensor);
    if (!place)
        fail("{}: '{}': expected a Clip that makes it, found none", printable(path_.string()),
             printable(tensor));
    set_bounds(*model_->mutable_graph()->mutable_node(static_cast<int>(*place)), tensor, bounds, type);
}

void ClippedOnnx::replace(const std::string& initializer, const Tensor& data) {
    for (onnx::TensorProto& one : *model_->mutable_graph()->mutable_initializer()) {
        if (one.name() != initializer) continue;
        const std::span<const float> values = data.view().as<float>();
        one.clear_float_data();
        one.clear_external_data();
        one.clear_data_location();
        one.set_raw_data(std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
        return;
    }
}

// Bounds that were replaced and that nothing else reads: initializers and Constant nodes.
void ClippedOnnx::remove_unused() {
    onnx::GraphProto& graph = *model_->mutable_graph();
    std::map<std::string, std::size_t> uses;
    count_uses(graph, uses);
    const auto is_unused = [&](const std::string& name) {
        return !name.empty() && former_bounds_.contains(name) && !uses.contains(name);
    };
    std::set<std::string> removed;
    for (const onnx::TensorProto& one : graph.initializer()) {
        if (is_unused(one.name())) removed.insert(one.name());
    }
    const auto was_removed = [&](const auto& one) { return removed.contains(one.name()); };
    remove_if(*graph.mutable_initializer(), was_removed);
    remove_if(*graph.mutable_input(), was_removed);
    remove_if(*graph.mutable_node(), [&](const onnx::NodeProto& node) {
        return node.op_type() == "Constant" && node.output_size() == 1 && is_unused(node.output(0));
    });
}

// Brings the new Clips to their places, so that the nodes stay in an order in which they can run.
void ClippedOnnx::place_insertions() {
    onnx::GraphProto& graph = *model_->mutable_graph();
    std::stable_sort(insertions_.begin(), insertions_.end(),
                     [](const Insertion& a, const Insertion& b) { return a.behind < b.behind; });
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    nodes.Reserve(graph.node_size() + static_cast<int>(insertions_.size()));
    std::size_t next = 0;
    for (int i = 0; i < graph.node_size(); ++i) {
        nodes.Add()->Swap(graph.mutable_node(i));
        for (; next < insertions_.size() && insertions_[next].behind == static_cast<std::size_t>(i); ++next)
            nodes.Add()->Swap(&insertions_[next].clip);
    }
    graph.mutable_node()->Swap(&nodes);
    insertions_.clear();
}

std::vector<FormattedFile> ClippedOnnx::files(const std::filesystem::path& name) {
    place_insertions();
    remove_unused();
    std::set<std::string> locations;
    const auto visit = [&](onnx::TensorProto& tensor) {
        if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
        for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
            if (entry.key() == "location") locations.insert(entry.value());
        }
    };
    visit_tensors(*model_->mutable_graph(), visit);
    for (onnx::FunctionProto& function : *model_->mutable_functions()) {
        for (onnx::NodeProto& node : *function.mutable_node()) visit_tensors(node, visit);
    }
    std::vector<FormattedFile> files;
    FormattedFile& model = files.emplace_back();
    model.path = name;
    if (!model_->SerializeToString(&model.bytes))
        fail("{}: with Clip nodes it does not fit into 2 GiB", printable(path_.string()));
    for (const std::string& location : locations) {
        const MappedFile data(path_.parent_path() / location);
        files.push_back(
            {location, std::string(reinterpret_cast<const char*>(data.bytes().data()), data.bytes().size())});
    }
    return files;
}

}  // namespace qcalib
