#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/activation.h"
#include "runtime/isa.h"
#include "runtime/kernel.h"
#include "runtime/kernels/window.h"

// The one door to oneDNN: nothing of the library's own types shows here, and only src/runtime/onednn*.cpp
// include them. Makers and execute() want SingleThreadGuard and DenormalGuard in force (plan and frame see to
// that).
namespace qcalib::onednn {

// True while this thread is inside a call of the library: its own allocations can be told from ours.
bool inside_library();

// Holds the library to an instruction set; false where it has been used already and cannot be held any more.
bool limit_isa(Isa isa);

// The buffers of one run; 64-byte aligned, as a frame's are.
struct Operands {
    const std::byte* source = nullptr;
    const std::byte* weights = nullptr;  // second operand; not read where it is a constant
    const std::byte* bias = nullptr;     // where the primitive was made with one
    std::byte* target = nullptr;
};

// One prepared operation with its packed constant weights. Immutable and shared by the workers.
class Primitive {
  public:
    struct Parts;
    explicit Primitive(std::unique_ptr<Parts> parts);
    ~Primitive();

    // The library's name for what it chose, e.g. "brgconv:avx512_core".
    const std::string& implementation() const;
    // Whether run-time weights are ignored: a constant was packed when the primitive was made.
    bool has_packed_weights() const;
    std::size_t scratch_bytes() const;
    // One worker's memory objects, for Workspace::state.
    std::unique_ptr<KernelState> make_state() const;
    // Runs on the operands, whose addresses may change from call to call; allocates nothing of ours. The
    // workspace holds at least scratch_bytes() and a state that make_state() of this primitive made.
    void execute(const Operands& operands, Workspace& workspace) const;

  private:
    std::unique_ptr<Parts> parts_;
};

// What the makers need to know of weights: constant ones are packed, shared through the cache where they hang
// on initializers alone; others are reordered in each run.
struct Weights {
    const InputInfo& info;
    WeightCache& cache;
};

// A convolution, or its transpose. Weights in ONNX's order: [M, C/groups, kernel...], transposed [C,
// M/groups, kernel...], where C are the input's channels and M the output's.
struct ConvolutionShape {
    TensorDescriptor input;
    TensorDescriptor output;
    Shape weights;
    Window window;
    std::int64_t groups = 1;
    bool bias = false;
    bool transposed = false;
    std::vector<Activation> activations;  // done to the output, in this order
    // How many elements apart the weights lie along each of their dimensions; empty: row-major.
    std::vector<std::int64_t> weight_strides;
};

// A product of matrices: [batch..., M, K] by [batch..., K, N] gives [batch..., M, N]; all of one rank; a
// batch dimension of 1 is repeated. A transposed operand has its last two dimensions swapped in memory.
// `bias` is [N].
struct MatMulShape {
    Shape first;   // as lying in memory
    Shape second;  // as lying in memory
    Shape output;
    bool first_transposed = false;
    bool second_transposed = false;
    bool bias = false;
};

enum class PoolingKind : std::uint8_t { max, average_counting_pads, average };

// Pooling windows; pads behind the input may be more than the window says where the output extents ask for
// it.
struct PoolingShape {
    TensorDescriptor input;
    TensorDescriptor output;
    Window window;
    PoolingKind kind = PoolingKind::max;
};

// Float32 primitives. Each answers nullptr where the library has nothing but its slow reference code, or
// nothing at all, for the shape.
std::unique_ptr<Primitive> make_convolution(const ConvolutionShape& shape, const Weights& weights);
std::unique_ptr<Primitive> make_matmul(const MatMulShape& shape, const Weights& weights);
std::unique_ptr<Primitive> make_pooling(const PoolingShape& shape);

}  // namespace qcalib::onednn
