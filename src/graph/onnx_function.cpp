// Calls of a model's own functions: OnnxGraphReader replaces each by the function's nodes.
#include <algorithm>

#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include "base/text.h"
#include "graph/onnx_graph.h"

namespace qcalib {

namespace {

constexpr std::size_t deepest_call = 64;
// A few functions that call each other several times make an endless model of a small file.
constexpr std::size_t most_calls = 100'000;
constexpr std::size_t most_nodes = 1'000'000;
// FunctionProto.attribute_proto: newer than the oldest protobuf definitions qcalib is built with.
constexpr int attribute_proto_field = 11;

std::string name_of(const onnx::FunctionProto& function) {
    const std::string domain(canonical_domain(function.domain()));
    return printable(domain.empty() ? function.name() : fmt::format("{}:{}", domain, function.name()));
}

// The attributes of a function that have defaults.
std::vector<onnx::AttributeProto> defaults_of(const onnx::FunctionProto& function) {
    std::vector<onnx::AttributeProto> defaults;
    const google::protobuf::UnknownFieldSet& fields = function.unknown_fields();
    for (int i = 0; i < fields.field_count(); ++i) {
        const google::protobuf::UnknownField& field = fields.field(i);
        if (field.number() != attribute_proto_field ||
            field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
            continue;
        }
        onnx::AttributeProto attribute;
        if (attribute.ParseFromString(field.length_delimited())) defaults.push_back(std::move(attribute));
    }
    return defaults;
}

}  // namespace

bool OnnxGraphReader::may_expand(const FunctionDefinition& function, const Node& call) {
    const std::string who = label(graph(), call);
    const std::string name = name_of(*function.proto);
    const auto& calls = reading_.calls;
    if (std::find(calls.begin(), calls.end(), function.proto) != calls.end()) {
        problem("{}: expected functions that do not call themselves, found that '{}' does", who, name);
    } else if (calls.size() == deepest_call) {
        problem("{}: expected calls nested at most {} deep, found a call of '{}' in the last", who,
                deepest_call, name);
    } else if (call.inputs.size() > static_cast<std::size_t>(function.proto->input_size()) ||
               call.outputs.size() > static_cast<std::size_t>(function.proto->output_size())) {
        problem("{}: expected at most the {} inputs and {} outputs of function '{}', found {} and {}", who,
                function.proto->input_size(), function.proto->output_size(), name, call.inputs.size(),
                call.outputs.size());
    } else if (reading_.expanded_calls == most_calls || graph().nodes.size() > most_nodes) {
        if (reading_.expanded_calls <= most_calls) {
            problem("{}: expected at most {} calls of functions and {} nodes, found more", who, most_calls,
                    most_nodes);
        }
        reading_.expanded_calls = most_calls + 1;  // said once
    } else {
        return reading_.expanded_calls <= most_calls;
    }
    return false;
}

void OnnxGraphReader::expand(const FunctionDefinition& function, const onnx::NodeProto& proto,
                             const Node& call) {
    ++reading_.expanded_calls;
    reading_.calls.push_back(function.proto);
    OnnxGraphReader inner(reading_, this, fmt::format("{}{}: ", where_, label(graph(), call)),
                          prefix_in(call));
    inner.opsets_ = &function.opsets;
    inner.in_function_ = true;
    inner.sealed_ = true;
    inner.take_attributes(*function.proto, proto, *this);
    inner.bind_inputs(*function.proto, call);
    inner.bind_outputs(*function.proto, call);
    for (const auto& node : function.proto->node()) inner.read_node(node);
    inner.add_pass_through(*function.proto, call);
    body_.nodes.insert(body_.nodes.end(), inner.body_.nodes.begin(), inner.body_.nodes.end());
    reading_.calls.pop_back();
}

void OnnxGraphReader::take_attributes(const onnx::FunctionProto& function, const onnx::NodeProto& proto,
                                      const OnnxGraphReader& caller) {
    attributes_.clear();
    for (const auto& attribute : proto.attribute()) {
        const onnx::AttributeProto* given = caller.resolve(attribute);
        if (given != nullptr) {
            attributes_.emplace(attribute.name(), std::make_shared<const onnx::AttributeProto>(*given));
        }
    }
    for (onnx::AttributeProto& attribute : defaults_of(function)) {
        std::string name = attribute.name();
        attributes_.emplace(std::move(name),
                            std::make_shared<const onnx::AttributeProto>(std::move(attribute)));
    }
}

// An input that the call leaves out is no_value: whoever uses it leaves it out too.
void OnnxGraphReader::bind_inputs(const onnx::FunctionProto& function, const Node& call) {
    for (int i = 0; i < function.input_size(); ++i) {
        const auto position = static_cast<std::size_t>(i);
        const ValueId given = position < call.inputs.size() ? call.inputs[position] : no_value;
        ids_.emplace(function.input(i), given);
        made_.insert(function.input(i));
    }
}

void OnnxGraphReader::bind_outputs(const onnx::FunctionProto& function, const Node& call) {
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
        const std::string& name = function.output(static_cast<int>(i));
        if (call.outputs[i] != no_value && made_.insert(name).second) ids_.emplace(name, call.outputs[i]);
    }
    for (const auto& node : function.node()) {
        for (const auto& output : node.output()) {
            if (!output.empty() && made_.insert(output).second) ids_.emplace(output, add_value(output));
        }
    }
}

// Outputs of the call that no node of the function makes: an input that is handed through, or another output.
void OnnxGraphReader::add_pass_through(const onnx::FunctionProto& function, const Node& call) {
    constexpr std::int64_t oldest_opset = 13;
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
        const std::string& name = function.output(static_cast<int>(i));
        const ValueId source = use(name);
        if (call.outputs[i] == no_value || source == call.outputs[i]) continue;
        if (source == no_value) {
            problem("output '{}' is an input that the call leaves out", printable(name));
            continue;
        }
        Node identity;
        identity.name = prefix_ + "Identity";
        identity.op_type = "Identity";
        const auto opset = opsets_->find("");
        identity.opset = opset == opsets_->end() ? oldest_opset : opset->second;
        identity.inputs = {source};
        identity.outputs = {call.outputs[i]};
        add_node(std::move(identity));
    }
}

const onnx::AttributeProto* OnnxGraphReader::resolve(const onnx::AttributeProto& proto) const {
    if (proto.ref_attr_name().empty()) return &proto;
    const auto found = attributes_.find(proto.ref_attr_name());
    return found == attributes_.end() ? nullptr : found->second.get();
}

}  // namespace qcalib
