#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/graph.h"
#include "graph/onnx_tensor.h"

namespace onnx {
class AttributeProto;
class FunctionProto;
class GraphProto;
class NodeProto;
class TensorProto;
class TypeProto;
class ValueInfoProto;
}  // namespace onnx

namespace qcalib {

// "" for "ai.onnx", which is the long name of ONNX's own domain.
std::string_view canonical_domain(std::string_view domain);

using Opsets = std::map<std::string, std::int64_t>;  // domain -> version

// A function of the model's own and the opsets it is written in.
struct FunctionDefinition {
    const onnx::FunctionProto* proto = nullptr;
    Opsets opsets;
};

// What all scopes of one model file share while they are read.
struct OnnxReading {
    OnnxTensorReader& tensors;
    std::map<std::pair<std::string, std::string>, FunctionDefinition> functions = {};  // by domain and name
    bool any_inputs = false;  // strings, sequences and optional values, too
    Graph graph = {};
    std::vector<std::string> problems = {};        // one sentence each, without the path
    std::vector<std::string> double_tensors = {};  // names, in order of appearance
    std::set<std::string> reported_domains = {};
    std::unordered_map<std::string, std::size_t> name_uses = {};  // how many scopes make a value of that name
    std::unordered_set<ValueId> unresolved = {};                  // used, but made by nothing in sight
    std::vector<const onnx::FunctionProto*> calls = {};  // the functions in whose calls the reader is
    std::size_t expanded_calls = 0;
};

// Reads the model's graph into OnnxReading::graph: unsorted. Faults go to OnnxReading::problems.
void read_graph(const onnx::GraphProto& proto, const Opsets& opsets, OnnxReading& reading);

// Reads one scope of names: the model's graph, a body, or a function at one of its calls.
class OnnxGraphReader {
  public:
    OnnxGraphReader(OnnxReading& reading, const Opsets& opsets) : reading_(reading), opsets_(&opsets) {}

    // The graph (where it is outermost) or a body.
    Body read(const onnx::GraphProto& proto);

  private:
    using Attributes = std::map<std::string, std::shared_ptr<const onnx::AttributeProto>>;

    OnnxGraphReader(OnnxReading& reading, const OnnxGraphReader* outer, std::string where, std::string prefix)
        : reading_(reading),
          opsets_(outer->opsets_),
          outer_(outer),
          attributes_(outer->attributes_),
          in_function_(outer->in_function_),
          where_(std::move(where)),
          prefix_(std::move(prefix)) {}

    template <typename... Arguments>
    void problem(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        reading_.problems.push_back(where_ + fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    void add_values(const onnx::GraphProto& proto);
    void read_inputs(const onnx::GraphProto& proto);
    void read_outputs(const onnx::GraphProto& proto);
    void read_initializers(const onnx::GraphProto& proto);
    void read_node(const onnx::NodeProto& proto);
    void add_node(Node node);
    void read_attribute(const onnx::AttributeProto& proto, Node& node);
    void read_body(const onnx::AttributeProto& proto, Node& node);
    void check_operator(const Node& node);
    void declare(const onnx::ValueInfoProto& proto);
    void check_input_type(const onnx::ValueInfoProto& proto);

    // Calls of the model's own functions, replaced by the function's nodes.
    bool may_expand(const FunctionDefinition& function, const Node& call);
    void expand(const FunctionDefinition& function, const onnx::NodeProto& proto, const Node& call);
    void bind_inputs(const onnx::FunctionProto& function, const Node& call);
    void bind_outputs(const onnx::FunctionProto& function, const Node& call);
    void take_attributes(const onnx::FunctionProto& function, const onnx::NodeProto& proto,
                         const OnnxGraphReader& caller);
    void add_pass_through(const onnx::FunctionProto& function, const Node& call);
    // The call's attribute or the function's default that `proto` refers to, `proto` itself where it refers
    // to none, or nullptr where nothing is given.
    const onnx::AttributeProto* resolve(const onnx::AttributeProto& proto) const;

    // The tensor with float data as float32; nothing where a problem was told.
    std::optional<Tensor> read_tensor(const onnx::TensorProto& proto, const std::string& what);

    Graph& graph() const { return reading_.graph; }
    ValueId add_value(const std::string& name);
    std::string unique_name(const std::string& name) const;
    // The value of that name, of this scope or one around it; made known where it is new.
    ValueId use(const std::string& name);
    std::optional<ValueId> find_outside(const std::string& name) const;
    // How the names of what lies in `node` begin: "<node or what it makes>/".
    std::string prefix_in(const Node& node) const;

    OnnxReading& reading_;
    const Opsets* opsets_;
    const OnnxGraphReader* outer_ = nullptr;
    Attributes attributes_;  // in a function: what its call gives, and the defaults
    bool in_function_ = false;
    bool sealed_ = false;  // a function: it sees nothing of what is around it
    std::string where_;
    std::string prefix_;  // of names that are not unique, and of all names in a function
    Body body_;
    std::unordered_map<std::string, ValueId> ids_;  // values of this scope by their name in the file
    std::unordered_set<std::string> made_;          // names of inputs, initializers and node outputs
};

}  // namespace qcalib
