#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/buffer_layout.h"
#include "runtime/plan.h"
#include "runtime/program.h"

namespace qcalib {

// Makes one plan: walks the nodes in order, prepares their kernels, inserts reorders, decides views and work
// in place, and lays the buffers out. For Program::plan().
class PlanBuilder {
  public:
    PlanBuilder(Program& program, std::span<const Tensor> inputs);
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
    };

    void count_uses();
    void add_graph_inputs(std::span<const Tensor> inputs);
    void add_node(std::size_t index);
    bool fold(std::size_t index, std::vector<InputInfo>& infos, Kernel& kernel);
    void set_known(ValueId value, Tensor tensor, Step& step);
    void add_prepared(std::size_t index, std::span<const InputInfo> infos, std::shared_ptr<Kernel> kernel);
    void add_run(std::size_t index, std::span<const InputInfo> infos, std::shared_ptr<Kernel> kernel,
                 const Prepared& prepared);
    void add_view(std::size_t index, std::span<const InputInfo> infos, const Prepared& prepared);
    void place_outputs(std::size_t index, const Prepared& prepared, Step& step);
    void widen_outputs(std::size_t index);

    std::vector<InputInfo> describe_inputs(const Node& node) const;
    std::int32_t tensor_for(ValueId value, const TensorDescriptor& wanted, bool packed);
    std::int32_t constant_tensor(ValueState& state, const TensorDescriptor& wanted, bool packed);
    const std::byte* copied_constant(const ValueState& state, MemoryOrder order);
    std::int32_t reordered_tensor(ValueId value, const TensorDescriptor& wanted);
    std::int32_t new_tensor(const TensorDescriptor& descriptor, ValueId value);
    std::int32_t alias_tensor(const TensorDescriptor& descriptor, std::int32_t source, ValueId value);
    std::int32_t buffer_to_overwrite(const Node& node, const Prepared& prepared, const Step& step) const;
    DataType declared_type_of(const Node& node, std::size_t output) const;
    void define(ValueId value, std::int32_t tensor, DataType declared);
    void observe(ValueId value, std::int32_t tensor, std::vector<Observation>& observed) const;
    void push(Step step);
    void finish_layout();

    Program& program_;
    const Graph& graph_;
    std::unique_ptr<Plan> plan_;
    std::vector<ValueState> values_;
    std::vector<Buffer> buffers_;
    std::vector<std::int32_t> buffer_of_tensor_;  // -1: fixed memory
    std::vector<std::unique_ptr<Tensor>>
        known_;  // values that became known while planning; ValueState points here
};

}  // namespace qcalib
