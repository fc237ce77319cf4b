#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/body.h"
#include "runtime/buffer_layout.h"
#include "runtime/plan.h"
#include "runtime/program.h"

namespace qcalib {

// One thing to be planned: a node, or the end of a body that was taken into the plan.
struct WorkItem {
    NodeIndex node = no_node;
    const Body* leave = nullptr;  // its outputs become the node's
};

// A value that what is around a plan has: captured by a body, or made before a part of a plan.
struct OuterValue {
    ValueId value = no_value;
    TensorDescriptor descriptor;
    DataType declared = DataType::undefined;
    std::optional<Tensor> constant;  // where known
    bool weight = false;
};

// What a plan is to be made of.
struct PlanTask {
    std::vector<WorkItem> work;  // the last is done first
    std::vector<ValueId> inputs;
    bool inputs_are_values = false;  // the plan is made for the inputs' values; the taps have seen them
    std::vector<OuterValue> around;  // the plan's external values, in order
    std::vector<ValueId> outputs;    // of a body
    bool body = false;               // runs several times: the inputs' memory is theirs throughout
};

// Makes one plan: walks the nodes in order, prepares their kernels, inserts reorders, decides views and work
// in place, and lays the buffers out. A body that is known to be taken becomes part of the plan.
class PlanBuilder : private BodyPlanner {
  public:
    PlanBuilder(const Program& program, PlanTask task, std::span<const InputInfo> inputs);
    std::unique_ptr<Plan> build();

  private:
    // What is known of a value while the plan is made.
    struct ValueState {
        TensorDescriptor descriptor;              // as made; type undefined until then
        DataType declared = DataType::undefined;  // float16 or bfloat16 where it is rounded, else undefined
        const Tensor* constant = nullptr;         // row-major value where known
        bool weight = false;                      // known from initializers alone
        std::array<std::int32_t, 2> tensors = {-1, -1};  // plan tensor in each memory order
        std::uint32_t uses = 0;                          // inputs of nodes still to come
    };

    // A piece of the arena and the values that live in it.
    struct Buffer {
        BufferLife life;
        std::vector<ValueId> values;
        bool pinned = false;  // in use until the end
    };

    void take_constants();
    void add_outer_values();
    void add_inputs(std::span<const InputInfo> inputs);
    void add_input(std::size_t i, const InputInfo& input);
    void count_uses(const WorkItem& item, std::uint32_t change);
    void add_node(NodeIndex index);
    bool fold(NodeIndex index, std::span<const InputInfo> infos, Kernel& kernel);
    void set_known(ValueId value, Tensor tensor, Step& step);
    bool add_prepared(NodeIndex index, std::span<const InputInfo> infos, std::shared_ptr<Kernel> kernel);
    void add_known_outputs(NodeIndex index, std::vector<Tensor> outputs);
    void add_run(NodeIndex index, std::span<const InputInfo> infos, std::shared_ptr<Kernel> kernel,
                 const Prepared& prepared);
    void place_outputs(NodeIndex index, const Prepared& prepared, Step& step);
    void widen_outputs(NodeIndex index);
    // `value` is the bytes of `source`, as plan tensor `from`.
    void add_view(NodeIndex index, ValueId value, ValueId source, std::int32_t from,
                  const TensorDescriptor& descriptor, DataType declared);

    // Bodies, and the ends of parts (plan_parts.cpp).
    std::shared_ptr<BodyPlans> plans(const Node& node, const Body& body) const override;
    OuterValue outer_value(ValueId value) const;
    void enter_body(NodeIndex index, const Body& body);
    void leave_body(NodeIndex index, const Body& body);
    std::vector<ValueId> unknown_values(NodeIndex index, std::span<const std::size_t> wanted) const;
    void end_before(NodeIndex index, std::vector<ValueId> unknown);
    void end_after(NodeIndex index);
    void end_part(std::vector<ValueId> found, bool as_values);
    void add_body_outputs();
    std::int32_t any_tensor(ValueId value);
    void pin(std::int32_t tensor);

    std::vector<InputInfo> describe_inputs(const Node& node) const;
    std::int32_t tensor_for(ValueId value, const TensorDescriptor& wanted, bool packed);
    std::int32_t constant_tensor(ValueState& state, const TensorDescriptor& wanted, bool packed);
    const std::byte* copied_constant(const ValueState& state, MemoryOrder order);
    std::int32_t reordered_tensor(ValueId value, const TensorDescriptor& wanted);
    std::int32_t new_tensor(const TensorDescriptor& descriptor, ValueId value);
    std::int32_t fixed_tensor(const TensorDescriptor& descriptor, Placement placement);
    std::int32_t alias_tensor(const TensorDescriptor& descriptor, std::int32_t source, ValueId value);
    std::int32_t buffer_to_overwrite(const Node& node, const Prepared& prepared, const Step& step) const;
    DataType declared_type_of(const Node& node, std::size_t output) const;
    void define(ValueId value, std::int32_t tensor, DataType declared);
    void observe(ValueId value, std::int32_t tensor, std::vector<Observation>& observed) const;
    void push(Step step);
    void finish_layout();

    const Program& program_;
    const Graph& graph_;
    PlanTask task_;
    std::unique_ptr<Plan> plan_;
    std::vector<ValueState> values_;
    std::vector<Buffer> buffers_;
    std::vector<std::int32_t> buffer_of_tensor_;  // -1: memory that is not the arena's
    std::vector<std::unique_ptr<Tensor>>
        known_;  // values that became known while planning; ValueState points here
};

// The node's inputs, then what its bodies capture.
std::vector<ValueId> operands_of(const Node& node);

}  // namespace qcalib
