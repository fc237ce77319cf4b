#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/program.h"

namespace qcalib::test {

// One operator with its inputs, to be run as a graph of one node through Program, Plan and Frame.
struct OperatorCase {
    std::string op_type;
    std::int64_t opset = 13;
    std::map<std::string, AttributeValue, std::less<>> attributes = {};
    std::vector<std::optional<Tensor>> inputs = {};  // nothing: the input is left out
    std::vector<bool> constant = {};                 // per input: an initializer instead of a graph input
    std::size_t outputs = 1;
    std::string domain = {};
};

// fast_channels_last: graph inputs of rank 3 to 5 arrive channels-last, as from a convolution before.
enum class Kernels { fast, fast_channels_last, fast_row_major, reference, reference_float64 };

// The node's outputs, row-major (reference_float64 takes float32 inputs and gives float64 outputs).
std::vector<Tensor> run_operator(const OperatorCase& test, Kernels kernels);

// The values that `graph` makes for `inputs`, by name, row-major: graph inputs and folded constants included.
std::map<std::string, Tensor> run_graph(const std::shared_ptr<const Graph>& graph,
                                        const std::vector<Tensor>& inputs, Kernels kernels);

// A float32 tensor of pseudo-random numbers in [low, high), the same for the same seed.
Tensor random_tensor(Shape shape, std::uint64_t seed, double low = -1, double high = 1);

// Runs `test` with the reference kernels in float64 and requires all other kinds of kernels to
// agree: |a-b| <= 3e-5 M + 1e-4 |b|, M the largest |b|; integer and bool outputs exactly.
void check_all_kernels_agree(const OperatorCase& test);

// Requires all kinds of float32 kernels to refuse `test` with an Error that says `part`.
void check_refused(const OperatorCase& test, const std::string& part);

}  // namespace qcalib::test
