#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "runtime/weight_cache.h"
#include "tensor/tensor.h"

namespace qcalib {

// What is known of a node's input when the plan is made.
struct InputInfo {
    TensorDescriptor descriptor;  // type undefined: the input is left out
    std::optional<Tensor>
        constant;         // its value, row-major, where known; elements may lie unaligned (mapped file)
    bool weight = false;  // the constant hangs on initializers alone: the same in every plan

    bool present() const { return descriptor.type != DataType::undefined; }
};

class BodyPlanner;

// What a kernel is prepared from.
struct NodeContext {
    const Graph& graph;
    const Node& node;
    std::span<const InputInfo> inputs;  // the node's, then what its bodies capture
    WeightCache& weights;  // where reordered and packed weights are kept and shared between plans and workers
    const BodyPlanner* bodies = nullptr;  // plans the node's bodies (runtime/body.h)

    std::size_t input_count() const { return inputs.size(); }
    bool has_input(std::size_t i) const { return i < inputs.size() && inputs[i].present(); }
    const TensorDescriptor& input(std::size_t i) const { return inputs[i].descriptor; }
    // The known numbers of an integer input (a shape, axes, ...); Error naming the node where it is not
    // known.
    std::vector<std::int64_t> integers(std::size_t i) const;
    // The known numbers of a float input; Error naming the node where it is not known.
    std::vector<float> floats(std::size_t i) const;
    // Throws Error "<model's node>: <message>".
    [[noreturn]] void refuse(std::string_view message) const;
};

// A kernel's answer to prepare().
struct Prepared {
    std::vector<TensorDescriptor> outputs;  // one per output of the node, memory orders included
    std::size_t scratch_bytes = 0;          // 64-byte aligned working memory for one run
    std::optional<std::size_t> view_of;     // output 0 has the very bytes of this input: nothing is run
    std::vector<std::size_t> in_place;      // inputs that output 0 may overwrite (same bytes), best first
    std::vector<std::size_t> packed;        // constant inputs that run() does not read: prepare() took a copy
    std::vector<Tensor> known_outputs;  // all output values, where shapes alone decide them: nothing is run
    bool data_dependent = false;  // the outputs' shapes come out of the run: make_outputs() instead of run()
    std::vector<std::size_t> needs_values;  // inputs whose values must be known first: nothing else is said
    std::vector<DataType> rounding;  // per output, or empty: float16 or bfloat16 where the operator makes
                                     // that type (a Cast); the kernel writes float32 and the plan rounds it
};

// What one worker keeps for one prepared kernel, e.g. oneDNN memory objects bound to its buffers.
class KernelState {
  public:
    virtual ~KernelState() = default;
};

struct Workspace {
    std::span<std::byte> scratch;  // at least Prepared::scratch_bytes
    KernelState* state = nullptr;  // what make_state() answered
    std::uint64_t sample = 0;      // the sample in work
};

// One operator of one node for one plan. prepare() does all that costs; run() allocates nothing, locks
// nothing, looks nothing up, and is called from several threads at once.
class Kernel {
  public:
    virtual ~Kernel() = default;

    // The memory order wanted for each input, asked before prepare(), which then gets the inputs in these
    // orders. The descriptors of context.inputs carry the orders the inputs have now. The default is
    // row-major for all.
    virtual std::vector<MemoryOrder> input_orders(const NodeContext& context) const;

    virtual Prepared prepare(const NodeContext& context) = 0;
    virtual std::unique_ptr<KernelState> make_state() const { return nullptr; }

    // Views of inputs that are left out are not present(); outputs that are left out have no data. All are
    // aligned to their elements.
    virtual void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
                     Workspace& workspace) const = 0;

    // One tensor per output of the node, where Prepared::data_dependent says so. May allocate.
    virtual std::vector<Tensor> make_outputs(std::span<const TensorView> inputs, Workspace& workspace) const;
};

// Answers for Kernel::input_orders().
std::vector<MemoryOrder> all_row_major(const NodeContext& context);
// Channels-last for input 0 where its rank is 3 to 5, row-major for the rest (convolution, pooling, resize).
std::vector<MemoryOrder> first_channels_last(const NodeContext& context);
// All inputs of the output's rank in one order: channels-last where any that is no constant and not the same
// in both orders has it, else row-major. Inputs of another rank are left row-major; where such an input is
// not a scalar or a constant, everything is row-major.
std::vector<MemoryOrder> follow_inputs(const NodeContext& context);

}  // namespace qcalib
