#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <circle_schema_generated.h>

#include "base/files.h"
#include "graph/circle_file.h"
#include "graph/graph.h"

namespace qcalib {

// A file whose flatbuffer is verified, and what is read of it so far.
struct CircleReading {
    const circle::Model& model;
    std::shared_ptr<const MappedFile> file;
    Graph graph = {};
    std::vector<CircleTensorFacts> tensors = {};  // by ValueId
    std::vector<std::string> problems = {};
    std::vector<std::string> remarks = {};
    std::vector<std::string> double_tensors = {};
    std::unordered_map<std::string, std::size_t> name_uses = {};  // in all subgraphs
    std::size_t bodies = 0;
};

// Fills the graph with the first subgraph and, as bodies of the nodes that run them, others. What is wrong is
// added to the problems.
void read_circle_graph(CircleReading& reading);

// Reads one use of a subgraph: the model's own graph, or a body of a node.
class CircleGraphReader {
  public:
    // `where` begins the problems, `prefix` the names of values whose own name something else has too.
    CircleGraphReader(CircleReading& reading, std::uint32_t subgraph, const CircleGraphReader* outer,
                      std::string where, std::string prefix);

    Body read();

  private:
    template <typename... Arguments>
    void problem(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        reading_.problems.push_back(where_ + fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    void find_made();
    void add_tensors();
    void add_tensor(std::uint32_t index);
    std::string unique_name(const std::string& name, std::uint32_t index) const;
    void declare(const circle::Tensor& tensor, Value& value);
    void add_facts(const circle::Tensor& tensor, std::uint32_t index, const std::string& name);
    std::string named(std::uint32_t index) const;
    void read_constant(const circle::Tensor& tensor, std::uint32_t index, Value& value);
    std::span<const std::byte> data_of(const circle::Tensor& tensor, const std::string& what) const;
    Tensor make_constant(const circle::Tensor& tensor, const std::string& what,
                         std::span<const std::byte> bytes);
    std::vector<ValueId> uses(const flatbuffers::Vector<std::int32_t>* indices, bool may_be_absent,
                              std::string_view what);
    void read_operator(std::uint32_t index);
    std::optional<std::int32_t> read_code(const circle::Operator& from, std::uint32_t index, Node& node);
    void add_quantization(Node& node) const;
    void read_bodies(Node& node);
    void read_body(Node& node, std::string_view attribute, std::string_view option);

    CircleReading& reading_;
    std::uint32_t index_;
    const CircleGraphReader* outer_;
    std::string where_;
    std::string prefix_;
    const circle::SubGraph* subgraph_ = nullptr;
    ValueId first_ = 0;        // the ValueId of tensor 0
    std::vector<bool> made_;   // per tensor: an output of an operator
    std::vector<bool> given_;  // per tensor: an input of the subgraph
    Body body_;
};

}  // namespace qcalib
