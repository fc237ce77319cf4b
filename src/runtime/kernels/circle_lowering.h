#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/kernel_registry.h"

namespace qcalib {

// What a Circle operator is made of: kernels of ONNX operators, run one after the other, and the tensors
// between them, which belong to the kernel and are nobody's values.
struct LoweredProgram {
    using Operand = std::size_t;  // an index into the operands
    static constexpr Operand absent = std::numeric_limits<Operand>::max();

    // One kernel to run, or without a kernel, a copy into another memory order.
    struct Step {
        std::unique_ptr<Kernel> kernel;
        std::vector<Operand> inputs;
        std::vector<Operand> outputs;
        std::size_t scratch_bytes = 0;
        std::vector<std::size_t> in_place = {};  // as Prepared says it
        std::vector<std::size_t> packed = {};
        std::vector<DataType> rounding = {};
    };

    // Where the elements of operands are.
    struct Storage {
        std::size_t input = absent;      // of the node
        std::optional<Tensor> constant;  // made while preparing
        std::size_t bytes = 0;           // of what a step makes
    };

    struct OperandInfo {
        TensorDescriptor descriptor;
        std::size_t storage = absent;
        std::optional<Tensor> constant;  // its value, row-major, where known
        bool weight = false;
        ValueId name = no_value;  // the value that messages call it by
    };

    std::vector<OperandInfo> operands;
    std::vector<Storage> storages;
    std::vector<Step> steps;
    std::vector<Operand> results;  // per output of the node

    Operand new_operand(const TensorDescriptor& descriptor);
    // The last step that reads the storage, or the number of steps where none does.
    std::size_t last_use(std::size_t storage) const;
    // How many inputs of the step are in the storage.
    std::size_t uses(const Step& step, std::size_t storage) const;
};

// Writes a LoweredProgram while the kernel of its node is prepared. Circle's tensors are row-major with their
// channels last; as() shows the very same bytes to ONNX's kernels as a tensor whose channels are second and
// lie last in memory.
class CircleLowering {
  public:
    using Operand = LoweredProgram::Operand;
    using OperandInfo = LoweredProgram::OperandInfo;
    using Step = LoweredProgram::Step;
    static constexpr Operand absent = LoweredProgram::absent;
    using Attributes = std::map<std::string, AttributeValue, std::less<>>;

    // Thrown where the node must be prepared with the values of inputs.
    struct NeedsValues {
        std::vector<std::size_t> inputs;
    };

    // `reference`: plain kernels instead of fast ones.
    CircleLowering(const NodeContext& context, LoweredProgram& program, bool reference);

    const NodeContext& context() const { return context_; }
    const Node& node() const { return context_.node; }

    // The node's input; absent where it is left out.
    Operand input(std::size_t i) const;
    // The node's input, which must be there.
    Operand required_input(std::size_t i) const;
    // The same elements under another descriptor of as many bytes.
    Operand as(Operand operand, Shape shape, MemoryOrder order = MemoryOrder::row_major);
    // Weights that a kernel finds by strides: told in another shape, their known value as it lies.
    Operand told_as(Operand weights, Shape shape);
    Operand constant(Tensor tensor);
    Operand integers(const std::vector<std::int64_t>& numbers);  // int64, rank 1
    // One number of the operand's type, of shape [].
    Operand number_like(Operand operand, double number);
    const TensorDescriptor& of(Operand operand) const { return program_.operands[operand].descriptor; }
    const OperandInfo& info(Operand operand) const { return program_.operands[operand]; }

    // [N, spatial, C] row-major as [N, C, spatial] channels-last, and back (a copy where it lies otherwise).
    Operand channels_second(Operand operand);
    Operand channels_last(Operand operand);

    // ONNX's operator of that opset on the operands; the answer is its first output.
    Operand run(std::string_view op_type, const std::vector<Operand>& inputs, Attributes attributes = {},
                std::int64_t opset = newest_opset, std::string_view domain = "");
    std::vector<Operand> run_all(std::string_view op_type, const std::vector<Operand>& inputs,
                                 std::size_t outputs, Attributes attributes = {},
                                 std::int64_t opset = newest_opset, std::string_view domain = "");
    // A kernel of our own on the operands; `op_type` for messages.
    std::vector<Operand> run_kernel(std::unique_ptr<Kernel> kernel, std::string_view op_type,
                                    const std::vector<Operand>& inputs, std::size_t outputs,
                                    Attributes attributes = {});

    // What the node's output is; row-major.
    void result(std::size_t output, Operand operand);
    // The same behind the node's fused activation.
    void activated_result(Operand operand);

    bool reference() const { return reference_; }
    static constexpr std::int64_t newest_opset = 24;

  private:
    Node inner_node(std::string_view domain, std::string_view op_type, std::int64_t opset,
                    std::size_t outputs, Attributes attributes) const;
    std::vector<Operand> add_step(std::unique_ptr<Kernel> kernel, Node inner, std::vector<Operand> inputs);
    std::vector<Operand> add_constants(std::vector<Tensor> tensors);
    std::vector<Operand> add_prepared(std::unique_ptr<Kernel> kernel, const NodeContext& inner,
                                      std::vector<Operand> inputs, Prepared prepared);
    Operand in_order(Operand operand, MemoryOrder order);
    Operand activated(Operand operand);

    const NodeContext& context_;
    LoweredProgram& program_;
    bool reference_;
};

using CircleRule = void (*)(CircleLowering&);

// The kernel of a lowered operator.
class LoweredKernel : public Kernel {
  public:
    LoweredKernel(CircleRule rule, bool reference) : rule_(rule), reference_(reference) {}

    Prepared prepare(const NodeContext& context) override;
    std::unique_ptr<KernelState> make_state() const override;
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override;

  private:
    // Where a storage's elements are in a run.
    struct Place {
        enum class Kind : std::uint8_t { none, input, output, constant, scratch };
        Kind kind = Kind::none;
        std::size_t index = 0;  // of the input or output; bytes into the scratch memory
    };
    struct State;

    bool take_known_outputs(Prepared& prepared) const;
    void copy_shown_results();
    void place_storages(const NodeContext& context, Prepared& prepared);
    void place_temporaries(std::size_t& scratch_bytes);
    void share_output(const LoweredProgram::Step& step, std::size_t index);
    std::vector<std::size_t> overwritable_inputs(const NodeContext& context) const;
    std::vector<std::size_t> packed_inputs(const NodeContext& context) const;
    std::vector<DataType> rounding() const;
    bool lies_in_first_output(LoweredProgram::Operand operand) const;
    const std::byte* address(LoweredProgram::Operand operand, std::span<const TensorView> inputs,
                             std::span<const MutableTensorView> outputs, std::byte* scratch) const;

    CircleRule rule_;
    bool reference_;
    LoweredProgram program_;
    std::vector<Place> places_;  // by storage
    std::size_t arena_bytes_ = 0;
};

// Adds an operator of Circle that `rule` lowers.
template <CircleRule rule>
void add_circle_operator(KernelRegistry& registry, std::string_view op_type, std::string_view summary,
                         std::vector<std::size_t> value_inputs = {}, bool needs_shapes_only = false) {
    OperatorEntry entry;
    entry.domain = "circle";
    entry.op_type = op_type;
    entry.summary = summary;
    entry.value_inputs = std::move(value_inputs);
    entry.needs_shapes_only = needs_shapes_only;
    entry.make = []() -> std::unique_ptr<Kernel> { return std::make_unique<LoweredKernel>(rule, false); };
    entry.make_reference = []() -> std::unique_ptr<Kernel> {
        return std::make_unique<LoweredKernel>(rule, true);
    };
    registry.add(std::move(entry));
}

}  // namespace qcalib
