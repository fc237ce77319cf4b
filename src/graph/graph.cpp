#include "graph/graph.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

bool Node::has_attribute(std::string_view attribute_name) const {
    return attributes.find(attribute_name) != attributes.end();
}

const Body* Node::body(std::string_view attribute_name) const {
    const auto found = std::find_if(bodies.begin(), bodies.end(),
                                    [&](const Body& one) { return one.attribute == attribute_name; });
    return found == bodies.end() ? nullptr : &*found;
}

std::vector<NodeIndex> Graph::outermost_nodes() const {
    std::vector<NodeIndex> outermost;
    for (NodeIndex index = 0; index < nodes.size(); ++index) {
        if (nodes[index].owner == no_node) outermost.push_back(index);
    }
    return outermost;
}

ValueId Graph::find(std::string_view value_name) const {
    const auto found = index.find(std::string(value_name));
    return found == index.end() ? no_value : found->second;
}

bool makes_something(const Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [](ValueId output) { return output != no_value; });
}

std::string label(const Graph& graph, const Node& node) {
    std::string type = node.op_type.empty() ? std::string("node") : node.op_type;
    const auto custom = node.attributes.find("custom_code");  // of .circle and .tflite files
    const bool is_custom =
        custom != node.attributes.end() && std::holds_alternative<std::string>(custom->second);
    if (is_custom && node.domain == "circle")
        type += fmt::format("({})", std::get<std::string>(custom->second));
    const std::string operation = printable(
        node.domain.empty() || node.domain == "circle" ? type : fmt::format("{}:{}", node.domain, type));
    if (!node.name.empty()) return fmt::format("{} '{}'", operation, printable(node.name));
    const auto made = std::find_if(node.outputs.begin(), node.outputs.end(),
                                   [&](ValueId output) { return output < graph.values.size(); });
    if (made == node.outputs.end()) return fmt::format("{} without name and outputs", operation);
    return fmt::format("{} making '{}'", operation, printable(graph.values[*made].name));
}

std::string to_string(const std::optional<std::vector<Dimension>>& shape) {
    if (!shape) return "unknown shape";
    std::vector<std::string> parts;
    for (const Dimension& dimension : *shape) {
        parts.push_back(dimension.size           ? fmt::format("{}", *dimension.size)
                        : dimension.name.empty() ? std::string("?")
                                                 : printable(dimension.name));
    }
    return fmt::format("[{}]", join(parts, ","));
}

namespace {

std::string_view kind_of(const AttributeValue& value) {
    struct Namer {
        std::string_view operator()(std::int64_t) const { return "an integer"; }
        std::string_view operator()(float) const { return "a float"; }
        std::string_view operator()(const std::string&) const { return "a string"; }
        std::string_view operator()(const Tensor&) const { return "a tensor"; }
        std::string_view operator()(const std::vector<std::int64_t>&) const { return "a list of integers"; }
        std::string_view operator()(const std::vector<float>&) const { return "a list of floats"; }
        std::string_view operator()(const std::vector<std::string>&) const { return "a list of strings"; }
    };
    return std::visit(Namer{}, value);
}

}  // namespace

void throw_wrong_attribute(const Node& node, std::string_view attribute_name) {
    const auto found = node.attributes.find(attribute_name);
    const std::string who = node.name.empty()
                                ? printable(node.op_type)
                                : fmt::format("{} '{}'", printable(node.op_type), printable(node.name));
    fail("{}: attribute '{}': expected another type than {}", who, printable(attribute_name),
         found == node.attributes.end() ? std::string_view("nothing") : kind_of(found->second));
}

}  // namespace qcalib
