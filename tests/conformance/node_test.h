#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/program.h"
#include "tensor/tensor.h"

namespace qcalib::test {

// What a model file says about itself.
struct ModelFacts {
    std::set<std::string> operators;  // those of subgraphs included; "domain.Name" where not ONNX's own
    std::int64_t opset = 0;           // of ONNX's own operators
};

ModelFacts facts_of(const std::filesystem::path& model_file);

// Writes the model as one of another opset.
void write_with_opset(const std::filesystem::path& model_file, std::int64_t opset,
                      const std::filesystem::path& target);

// One data set of a node test.
struct DataSet {
    std::vector<Tensor> inputs;   // for the model's inputs in order
    std::vector<Tensor> outputs;  // expected
};

// The data sets of a test folder: test_data_set_<k>/input_<i>.pb and output_<i>.pb, with float types as
// float32, as qcalib computes them. Where the graph declares bfloat16 and a file says uint16, the numbers are
// bfloat16 bits.
std::vector<DataSet> read_data_sets(const std::filesystem::path& folder, const Graph& graph);

// The graph with those float inputs as initializers whose values a kernel must know when it is prepared
// (scales, a roi, a ratio): in a model file they are constants. Their tensors are taken out of `inputs`.
std::shared_ptr<const Graph> with_known_floats(const Graph& graph, std::vector<Tensor>& inputs);

// The graph's outputs for `inputs`, in order, row-major.
std::vector<Tensor> run_graph(std::shared_ptr<const Graph> graph, const std::vector<Tensor>& inputs,
                              const ProgramOptions& options);

// What is wrong with `found`: its shape, its type, or the first element that breaks |a - b| <= 1e-7 + 1e-3
// |b|, or differs by more than the last bit where bfloat16 is declared (other types than floats: that differs
// at all); empty where it is right.
std::string difference(const Tensor& found, const Tensor& expected, DataType declared);

}  // namespace qcalib::test
