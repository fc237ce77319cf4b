#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/graph.h"
#include "graph/onnx_tensor.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
class TypeProto;
class ValueInfoProto;
}  // namespace onnx

namespace qcalib {

// "" for "ai.onnx", which is the long name of ONNX's own domain.
std::string_view canonical_domain(std::string_view domain);

// What all graphs of one model file share while they are read.
struct OnnxReading {
    OnnxTensorReader& tensors;
    const std::map<std::string, std::int64_t>& opsets;
    std::set<std::pair<std::string, std::string>> functions = {};  // domain and name of the model's own
    std::vector<std::string> problems = {};                        // one sentence each, without the path
    std::vector<std::string> double_tensors = {};                  // names, in order of appearance
    std::set<std::string> reported_domains = {};
    std::map<std::string, std::pair<std::string, std::size_t>> function_calls =
        {};  // first node, number of nodes
};

// Makes a Graph of a GraphProto and, recursively, of its nodes' subgraphs. Faults go to
// OnnxReading::problems.
class OnnxGraphReader {
  public:
    explicit OnnxGraphReader(OnnxReading& reading) : reading_(reading) {}

    Graph read(const onnx::GraphProto& proto);

  private:
    OnnxGraphReader(OnnxReading& reading, OnnxGraphReader* outer, std::string where)
        : reading_(reading), outer_(outer), where_(std::move(where)) {}

    template <typename... Arguments>
    void problem(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        reading_.problems.push_back(where_ + fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    void add_values(const onnx::GraphProto& proto);
    void read_inputs(const onnx::GraphProto& proto);
    void read_outputs(const onnx::GraphProto& proto);
    void read_initializers(const onnx::GraphProto& proto);
    void read_node(const onnx::NodeProto& proto);
    void read_attribute(const onnx::AttributeProto& proto, Node& node);
    void read_subgraph(const onnx::AttributeProto& proto, Node& node);
    void check_operator(const Node& node);
    void declare(const onnx::ValueInfoProto& proto);
    void check_input_type(const onnx::ValueInfoProto& proto);

    // The tensor with float data as float32; nothing where a problem was told.
    std::optional<Tensor> read_tensor(const onnx::TensorProto& proto, const std::string& what);

    ValueId add_value(const std::string& name);
    // The value of that name; made known where it is new, as a capture where an outer graph makes it.
    ValueId use(const std::string& name);
    const Value* find_outside(const std::string& name) const;

    OnnxReading& reading_;
    OnnxGraphReader* outer_ = nullptr;
    std::string where_;
    Graph graph_;
    std::unordered_set<std::string> made_;  // names of inputs, initializers and node outputs
};

}  // namespace qcalib
