#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/tensor.h"

namespace qcalib {

struct Graph;

// Index into Graph::values. An optional input or output that a node leaves out is no_value.
using ValueId = std::uint32_t;
constexpr ValueId no_value = std::numeric_limits<ValueId>::max();

// Index into Graph::nodes.
using NodeIndex = std::uint32_t;
constexpr NodeIndex no_node = std::numeric_limits<NodeIndex>::max();

// One dimension of a declared shape: fixed, named ("N"), or unknown (no size and no name).
struct Dimension {
    std::optional<std::int64_t> size;
    std::string name;
};

// A tensor of the model as the file declares it, whether the graph itself or a body makes it.
struct Value {
    // Any bytes, never empty, unique in the model. A body's value whose name something else in the file has
    // too, and every value inside a function, has the labels of the nodes it lies in before its name:
    // "if_1/then_branch/x".
    std::string name;
    // Undefined where neither the file says it nor the operators that lead to it (infer_types).
    DataType declared_type = DataType::undefined;
    std::optional<std::vector<Dimension>> declared_shape;
    std::optional<Tensor>
        initializer;  // float16, bfloat16 and double data come as float32, see declared_type
    NodeIndex producer = no_node;
    std::string file_name = {};  // where a .circle or .tflite file has another: "", or one of several tensors
};

using AttributeValue = std::variant<std::int64_t, float, std::string, Tensor, std::vector<std::int64_t>,
                                    std::vector<float>, std::vector<std::string>>;

// Nodes that another node runs: a branch of an If, the body of a Loop or Scan.
struct Body {
    std::string attribute;         // of the node it belongs to: "then_branch", "body", ...
    std::vector<ValueId> inputs;   // what its node gives it
    std::vector<ValueId> outputs;  // its own values, or any from outside
    std::vector<NodeIndex> nodes;  // in an order in which every input is made before it is used
};

struct Node {
    std::string name;    // as in the file, may be empty: use label() for messages
    std::string domain;  // "" for ONNX's own operators
    std::string op_type;
    std::int64_t opset = 0;         // the version of `domain` the model imports
    std::vector<ValueId> inputs;    // no_value for one left out
    std::vector<ValueId> outputs;   // no_value for one left out
    std::vector<ValueId> captured;  // what its bodies read from outside, initializers left out
    std::map<std::string, AttributeValue, std::less<>> attributes;
    std::vector<Body> bodies;
    NodeIndex owner = no_node;  // the node in whose body this one is

    // The attribute as `T`, or `otherwise` where it is not given. Throws Error naming the node where it has
    // another type.
    template <typename T>
    T attribute(std::string_view attribute_name, T otherwise) const;
    bool has_attribute(std::string_view attribute_name) const;
    // The body of that attribute, or nullptr.
    const Body* body(std::string_view attribute_name) const;
};

// A model's graph: a view of the user's file. All values and nodes are in one list each, those of bodies too;
// calls of the model's own functions are replaced by what they do. Nodes are in an order in which every input
// is made before it is used, those of a body right before the node it belongs to.
struct Graph {
    std::string name;
    std::vector<Value> values;
    std::vector<Node> nodes;
    std::vector<ValueId> inputs;  // without those that have an initializer
    std::vector<ValueId> outputs;

    // The nodes that are in no body, in order.
    std::vector<NodeIndex> outermost_nodes() const;

    // The value of that name, or no_value.
    ValueId find(std::string_view value_name) const;
    std::unordered_map<std::string, ValueId> index;  // name -> value
};

// What kind of file a model came in. Nodes of circle and tflite have the domain "circle".
enum class ModelForm : std::uint8_t { onnx, circle, tflite };

// A model file and what identifies it.
struct Model {
    std::string path;
    ModelForm form = ModelForm::onnx;
    std::int64_t ir_version = 0;
    std::string producer;
    std::map<std::string, std::int64_t> opsets;  // domain -> version
    std::shared_ptr<const Graph> graph;
    std::string hash;  // hex SHA-256 over the model file, then its external data files in order of first use
    std::vector<std::string> remarks;  // e.g. that double tensors are computed as float
};

// False for a node that leaves all its outputs out: there is nothing to run.
bool makes_something(const Node& node);

// "Conv 'conv1'" or "Conv making 'y'" for a node without a name: how messages name a node.
std::string label(const Graph& graph, const Node& node);

// "[1,3,H,?]" or "unknown shape".
std::string to_string(const std::optional<std::vector<Dimension>>& shape);

[[noreturn]] void throw_wrong_attribute(const Node& node, std::string_view attribute_name);

template <typename T>
T Node::attribute(std::string_view attribute_name, T otherwise) const {
    const auto found = attributes.find(attribute_name);
    if (found == attributes.end()) return otherwise;
    const T* value = std::get_if<T>(&found->second);
    if (value == nullptr) throw_wrong_attribute(*this, attribute_name);
    return *value;
}

}  // namespace qcalib
