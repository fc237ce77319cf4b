#include "runtime/kernels/iteration.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "runtime/fold.h"
#include "runtime/plan_runner.h"

namespace qcalib {

namespace {

std::size_t positive(std::int64_t axis, std::size_t rank) {
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

// Copies between element `position` along `axis` of a row-major `whole` and `element`, whose shape lacks that
// axis.
struct StepCopy {
    StepCopy(const TensorDescriptor& whole, std::size_t axis) {
        for (std::size_t d = 0; d < axis; ++d) rows *= static_cast<std::size_t>(whole.shape[d]);
        for (std::size_t d = axis + 1; d < whole.rank(); ++d)
            row_bytes *= static_cast<std::size_t>(whole.shape[d]);
        row_bytes *= size_of(whole.type);
        stride = row_bytes * static_cast<std::size_t>(whole.shape[axis]);
    }

    void take(const std::byte* whole, std::size_t position, std::byte* element) const {
        for (std::size_t row = 0; row < rows; ++row) {
            std::memcpy(element + row * row_bytes, whole + row * stride + position * row_bytes, row_bytes);
        }
    }
    void put(const std::byte* element, std::size_t position, std::byte* whole) const {
        for (std::size_t row = 0; row < rows; ++row) {
            std::memcpy(whole + row * stride + position * row_bytes, element + row * row_bytes, row_bytes);
        }
    }

    std::size_t rows = 1;
    std::size_t row_bytes = 1;
    std::size_t stride = 0;
};

TensorDescriptor without_axis(TensorDescriptor whole, std::size_t axis) {
    whole.shape.erase(whole.shape.begin() + static_cast<std::ptrdiff_t>(axis));
    whole.order = MemoryOrder::row_major;
    return whole;
}

TensorDescriptor with_axis(TensorDescriptor element, std::int64_t axis, std::int64_t length) {
    const std::size_t place = positive(axis, element.rank() + 1);
    element.shape.insert(element.shape.begin() + static_cast<std::ptrdiff_t>(place), length);
    element.order = MemoryOrder::row_major;
    return element;
}

std::size_t place_in(const SequenceAxis& sequence, std::int64_t iteration, std::int64_t length) {
    return static_cast<std::size_t>(sequence.reverse ? length - 1 - iteration : iteration);
}

bool first_byte(TensorView view) {
    return std::to_integer<int>(*view.data) != 0;
}

InputInfo info_of(TensorDescriptor descriptor) {
    InputInfo info;
    info.descriptor = std::move(descriptor);
    return info;
}

// Elements of several iterations as one tensor. `empty` is what no iteration gives.
Tensor put_together(const std::vector<Tensor>& elements, const SequenceAxis& sequence,
                    const TensorDescriptor& empty) {
    if (elements.empty()) return Tensor(empty);
    const auto length = static_cast<std::int64_t>(elements.size());
    const TensorDescriptor& element = elements.front().descriptor();
    Tensor whole(with_axis(element, sequence.axis, length));
    const StepCopy copy(whole.descriptor(), positive(sequence.axis, whole.descriptor().rank()));
    for (std::int64_t i = 0; i < length; ++i) {
        const Tensor& one = elements[static_cast<std::size_t>(i)];
        if (one.shape() != element.shape) {
            fail("expected elements of one shape to put together, found {} after {}", to_string(one.shape()),
                 to_string(element.shape));
        }
        copy.put(one.data(), place_in(sequence, i, length), whole.mutable_view().data);
    }
    return whole;
}

}  // namespace

struct IterationKernel::FixedState : KernelState {
    std::optional<BoundPlan> body;
};

struct IterationKernel::FreeState : KernelState {
    PlanRunner runner;
};

std::unique_ptr<KernelState> IterationKernel::make_state() const {
    if (plans_ != nullptr) return std::make_unique<FreeState>();
    return std::make_unique<FixedState>();
}

std::vector<MemoryOrder> IterationKernel::input_orders(const NodeContext& context) const {
    std::vector<MemoryOrder> orders = present_orders(context);
    std::fill_n(orders.begin(), context.node.inputs.size(), MemoryOrder::row_major);
    return orders;
}

Prepared IterationKernel::prepare(const NodeContext& context) {
    form_ = form_of(context);
    first_captured_ = context.node.inputs.size();
    const Body& body = *context.node.body("body");
    std::shared_ptr<BodyPlans> plans = context.bodies->plans(context.node, body);
    const std::vector<InputInfo> inputs = body_inputs(context);
    body_ = BodyMemory(plans->plan(inputs));

    Prepared prepared;
    if (fixed_shapes(inputs)) {
        std::optional<std::int64_t> count = known_count(context, body_.plan(), prepared.needs_values);
        if (form_.collected.empty()) {  // no shape hangs on the count
            prepared.needs_values.clear();
            count = 0;
        }
        if (!prepared.needs_values.empty()) return prepared;
        if (count) {
            prepare_fixed(context, inputs, *count, prepared);
            return prepared;
        }
    }
    plans_ = std::move(plans);
    for (std::size_t i = 0; i < form_.collected.size(); ++i)
        nothing_.push_back(nothing_collected(context, i));
    prepared.data_dependent = true;
    return prepared;
}

// The body's inputs in the first iteration.
std::vector<InputInfo> IterationKernel::body_inputs(const NodeContext& context) const {
    std::vector<InputInfo> inputs;
    if (form_.lead_inputs > 0) {
        inputs.push_back(info_of({DataType::int64, {}, MemoryOrder::row_major}));
        inputs.push_back(info_of({DataType::boolean, {}, MemoryOrder::row_major}));
    }
    for (std::size_t i = 0; i < form_.states; ++i)
        inputs.push_back(info_of(context.input(form_.first_state + i)));
    for (std::size_t i = 0; i < form_.taken.size(); ++i) {
        const TensorDescriptor& whole = context.input(form_.first_state + form_.states + i);
        inputs.push_back(info_of(without_axis(whole, positive(form_.taken[i].axis, whole.rank()))));
    }
    return inputs;
}

// Whether every iteration has the shapes of the first.
bool IterationKernel::fixed_shapes(std::span<const InputInfo> inputs) const {
    const Plan& plan = body_.plan();
    if (plan.continues()) return false;
    for (std::size_t i = 0; i < form_.states; ++i) {
        if (plan.output_descriptor(form_.lead_outputs + i).shape !=
            inputs[form_.lead_inputs + i].descriptor.shape) {
            return false;
        }
    }
    return true;
}

void IterationKernel::prepare_fixed(const NodeContext& context, std::span<const InputInfo> inputs,
                                    std::int64_t count, Prepared& prepared) {
    const Plan& plan = body_.plan();
    const Body& body = *context.node.body("body");
    std::size_t staging_bytes = 0;
    for (std::size_t i = 0; i < context.node.outputs.size(); ++i) {
        const std::size_t output = form_.lead_outputs + i;
        const TensorDescriptor& made = plan.output_descriptor(output);
        prepared.rounding.push_back(plan.declared_type(body.outputs[output]));
        if (i < form_.states) {
            prepared.outputs.push_back(inputs[form_.lead_inputs + i].descriptor);
            prepared.outputs.back().type = made.type;
        } else {
            const SequenceAxis& sequence = form_.collected[i - form_.states];
            prepared.outputs.push_back(with_axis(made, sequence.axis, count));
        }
    }
    for (std::size_t i = 0; i < form_.states; ++i) {
        const Plan::Output& output = plan.outputs()[form_.lead_outputs + i];
        const auto own = static_cast<std::int32_t>(form_.lead_inputs + i);
        if (output.input_buffer < 0 || output.input_buffer == own) continue;
        staged_.push_back(i);
        staging_bytes += plan.output_descriptor(form_.lead_outputs + i).bytes();
    }
    prepared.scratch_bytes = body_.bytes() + staging_bytes;
}

void IterationKernel::run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
                          Workspace& workspace) const {
    auto& state = static_cast<FixedState&>(*workspace.state);
    if (!state.body) {
        body_.bind(state.body, workspace.scratch.data(), addresses_of(inputs.subspan(first_captured_)));
    }
    BoundPlan& body = *state.body;
    for (std::size_t i = 0; i < form_.states; ++i)
        body.set_input(form_.lead_inputs + i, inputs[form_.first_state + i]);
    Course course = start(inputs);
    for (std::int64_t iteration = 0; iteration < course.count && course.go; ++iteration) {
        if (form_.lead_inputs > 0) {
            body.input(0).as<std::int64_t>()[0] = iteration;
            body.input(1).as<std::uint8_t>()[0] = 1;
        }
        give_elements(inputs, iteration, body);
        body.run(workspace.sample);
        if (form_.lead_outputs > 0) course.go = first_byte(body.output(0));
        collect_elements(body, iteration, outputs);
        carry_states(body, workspace.scratch.data() + body_.bytes());
    }
    for (std::size_t i = 0; i < std::min(form_.states, outputs.size()); ++i) {
        if (outputs[i].data != nullptr) copy_to_order(body.input(form_.lead_inputs + i), outputs[i]);
    }
}

void IterationKernel::give_elements(std::span<const TensorView> inputs, std::int64_t iteration,
                                    const BoundPlan& body) const {
    for (std::size_t i = 0; i < form_.taken.size(); ++i) {
        const TensorView whole = inputs[form_.first_state + form_.states + i];
        const MutableTensorView element = body.input(form_.lead_inputs + form_.states + i);
        const std::size_t axis = positive(form_.taken[i].axis, whole.descriptor->rank());
        const std::size_t place = place_in(form_.taken[i], iteration, whole.descriptor->shape[axis]);
        StepCopy(*whole.descriptor, axis).take(whole.data, place, element.data);
    }
}

void IterationKernel::collect_elements(const BoundPlan& body, std::int64_t iteration,
                                       std::span<const MutableTensorView> outputs) const {
    for (std::size_t i = form_.states; i < outputs.size(); ++i) {
        if (outputs[i].data == nullptr) continue;
        const SequenceAxis& sequence = form_.collected[i - form_.states];
        const TensorDescriptor& whole = *outputs[i].descriptor;
        const std::size_t axis = positive(sequence.axis, whole.rank());
        const std::size_t place = place_in(sequence, iteration, whole.shape[axis]);
        StepCopy(whole, axis).put(body.output(form_.lead_outputs + i).data, place, outputs[i].data);
    }
}

// What the body made of the states becomes its inputs. A state that lies in the memory of another's input is
// copied aside first.
void IterationKernel::carry_states(const BoundPlan& body, std::byte* staging) const {
    std::byte* place = staging;
    for (const std::size_t i : staged_) {
        const TensorView made = body.output(form_.lead_outputs + i);
        std::memcpy(place, made.data, made.descriptor->bytes());
        place += made.descriptor->bytes();
    }
    place = staging;
    for (std::size_t i = 0; i < form_.states; ++i) {
        TensorView made = body.output(form_.lead_outputs + i);
        if (std::find(staged_.begin(), staged_.end(), i) != staged_.end()) {
            made = {made.descriptor, place};
            place += made.descriptor->bytes();
        }
        body.set_input(form_.lead_inputs + i, made);
    }
}

std::vector<Tensor> IterationKernel::inputs_of_iteration(std::span<const TensorView> inputs,
                                                         std::span<const Tensor> states,
                                                         std::int64_t iteration) const {
    std::vector<Tensor> given;
    if (form_.lead_inputs > 0) {
        given.push_back(Tensor::of<std::int64_t>({}, std::span<const std::int64_t>(&iteration, 1)));
        given.emplace_back(TensorDescriptor{DataType::boolean, {}, MemoryOrder::row_major});
        given.back().mutable_view().as<std::uint8_t>()[0] = 1;
    }
    given.insert(given.end(), states.begin(), states.end());
    for (std::size_t i = 0; i < form_.taken.size(); ++i) {
        const TensorView whole = inputs[form_.first_state + form_.states + i];
        const std::size_t axis = positive(form_.taken[i].axis, whole.descriptor->rank());
        const std::size_t place = place_in(form_.taken[i], iteration, whole.descriptor->shape[axis]);
        Tensor& element = given.emplace_back(without_axis(*whole.descriptor, axis));
        StepCopy(*whole.descriptor, axis).take(whole.data, place, element.mutable_view().data);
    }
    return given;
}

std::vector<Tensor> IterationKernel::make_outputs(std::span<const TensorView> inputs,
                                                  Workspace& workspace) const {
    PlanRunner& runner = static_cast<FreeState&>(*workspace.state).runner;
    const std::vector<const std::byte*> captured = addresses_of(inputs.subspan(first_captured_));
    std::vector<Tensor> states;
    for (std::size_t i = 0; i < form_.states; ++i)
        states.push_back(row_major_copy(inputs[form_.first_state + i]));
    std::vector<std::vector<Tensor>> collected(form_.collected.size());
    Course course = start(inputs);
    for (std::int64_t iteration = 0; iteration < course.count && course.go; ++iteration) {
        const std::vector<Tensor> given = inputs_of_iteration(inputs, states, iteration);
        std::vector<InputInfo> infos;
        std::vector<TensorView> views;
        for (const Tensor& tensor : given) {
            infos.push_back(info_of(tensor.descriptor()));
            views.push_back(tensor.view());
        }
        runner.run(plans_->plan(infos), views, captured, workspace.sample);
        if (form_.lead_outputs > 0) course.go = first_byte(runner.output(0));
        for (std::size_t i = 0; i < form_.states; ++i)
            states[i] = row_major_copy(runner.output(form_.lead_outputs + i));
        for (std::size_t i = 0; i < collected.size(); ++i) {
            collected[i].push_back(row_major_copy(runner.output(form_.lead_outputs + form_.states + i)));
        }
    }
    std::vector<Tensor> outputs = std::move(states);
    for (std::size_t i = 0; i < collected.size(); ++i)
        outputs.push_back(put_together(collected[i], form_.collected[i], nothing_[i]));
    return outputs;
}

// The shape that no iteration gives, as far as it can be told: that of the first one, or the declared one.
TensorDescriptor IterationKernel::nothing_collected(const NodeContext& context, std::size_t output) const {
    const std::size_t place = form_.lead_outputs + form_.states + output;
    const std::int64_t axis = form_.collected[output].axis;
    if (!body_.plan().continues()) return with_axis(body_.plan().output_descriptor(place), axis, 0);
    const Value& value = context.graph.values[context.node.body("body")->outputs[place]];
    const DataType type = is_floating(value.declared_type) ? DataType::float32 : value.declared_type;
    TensorDescriptor element{type, {}, MemoryOrder::row_major};
    if (value.declared_shape) {
        for (const Dimension& dimension : *value.declared_shape)
            element.shape.push_back(dimension.size.value_or(0));
    }
    return with_axis(std::move(element), element.rank() == 0 ? 0 : axis, 0);
}

}  // namespace qcalib
