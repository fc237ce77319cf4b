#include "runtime/kernels/circle_lowering.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "runtime/fold.h"
#include "runtime/kernel_registry.h"

namespace qcalib {

namespace {

using Operand = CircleLowering::Operand;

// [a, spatial, b] as [a, b, spatial].
Shape with_channels_second(Shape shape) {
    std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
    return shape;
}

Shape with_channels_last(Shape shape) {
    std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    return shape;
}

Tensor with_shape(const Tensor& tensor, const TensorDescriptor& descriptor) {
    if (tensor.descriptor() == descriptor) return tensor;
    Tensor copy(descriptor);
    std::memcpy(copy.mutable_view().data, tensor.data(), descriptor.bytes());
    return copy;
}

}  // namespace

Operand LoweredProgram::new_operand(const TensorDescriptor& descriptor) {
    operands.push_back({descriptor, storages.size(), std::nullopt, false, no_value});
    storages.push_back({absent, std::nullopt, descriptor.bytes()});
    return operands.size() - 1;
}

std::size_t LoweredProgram::uses(const Step& step, std::size_t storage) const {
    return static_cast<std::size_t>(std::count_if(
        step.inputs.begin(), step.inputs.end(),
        [&](Operand operand) { return operand != absent && operands[operand].storage == storage; }));
}

std::size_t LoweredProgram::last_use(std::size_t storage) const {
    std::size_t last = steps.size();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (uses(steps[i], storage) > 0) last = i;
    }
    return last;
}

CircleLowering::CircleLowering(const NodeContext& context, LoweredProgram& program, bool reference)
    : context_(context), program_(program), reference_(reference) {
    program = {};
    program.results.assign(context.node.outputs.size(), absent);
    for (std::size_t i = 0; i < context.node.inputs.size(); ++i) {
        const InputInfo& from = context.inputs[i];
        program.storages.push_back({i, std::nullopt, 0});
        program.operands.push_back({from.descriptor, i, from.constant, from.weight, context.node.inputs[i]});
    }
}

Operand CircleLowering::input(std::size_t i) const {
    return i < node().inputs.size() && context_.has_input(i) ? i : absent;
}

Operand CircleLowering::required_input(std::size_t i) const {
    if (input(i) == absent) context_.refuse(fmt::format("expected input {}, which is left out", i));
    return i;
}

Operand CircleLowering::as(Operand operand, Shape shape, MemoryOrder order) {
    OperandInfo info = program_.operands[operand];
    assert(element_count(shape) == static_cast<std::int64_t>(info.descriptor.elements()));
    if (info.descriptor.shape == shape && info.descriptor.order == order) return operand;
    info.descriptor.shape = std::move(shape);
    info.descriptor.order = order;
    // A known value is row-major; big ones are no index lists or bounds that somebody must know.
    constexpr std::size_t most_copied = 1024;
    if (info.constant && order == MemoryOrder::row_major && info.descriptor.elements() <= most_copied) {
        info.constant = with_shape(*info.constant, info.descriptor);
    } else {
        info.constant.reset();
        info.weight = false;
    }
    program_.operands.push_back(std::move(info));
    return program_.operands.size() - 1;
}

Operand CircleLowering::told_as(Operand weights, Shape shape) {
    OperandInfo told = info(weights);
    told.descriptor.shape = std::move(shape);
    program_.operands.push_back(std::move(told));
    return program_.operands.size() - 1;
}

Operand CircleLowering::constant(Tensor tensor) {
    program_.operands.push_back({tensor.descriptor(), program_.storages.size(), tensor, false, no_value});
    program_.storages.push_back({absent, std::move(tensor), 0});
    return program_.operands.size() - 1;
}

Operand CircleLowering::integers(const std::vector<std::int64_t>& numbers) {
    return constant(
        Tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, std::span(numbers)));
}

Operand CircleLowering::number_like(Operand operand, double number) {
    const auto one = [&]<typename T>(T value) {
        return constant(Tensor::of<T>({}, std::span<const T>(&value, 1)));
    };
    switch (of(operand).type) {
        case DataType::float64:
            return one(number);
        case DataType::int32:
            return one(static_cast<std::int32_t>(number));
        case DataType::int64:
            return one(static_cast<std::int64_t>(number));
        case DataType::int16:
            return one(static_cast<std::int16_t>(number));
        case DataType::int8:
            return one(static_cast<std::int8_t>(number));
        case DataType::uint8:
            return one(static_cast<std::uint8_t>(number));
        default:
            return one(static_cast<float>(number));
    }
}

Operand CircleLowering::channels_second(Operand operand) {
    const std::size_t rank = of(operand).rank();
    if (rank < 3 || rank > 5) {
        context_.refuse(fmt::format("expected a tensor [N, spatial, C] of rank 3 to 5, found {}",
                                    to_string(of(operand).shape)));
    }
    return as(operand, with_channels_second(of(operand).shape), MemoryOrder::channels_last);
}

Operand CircleLowering::channels_last(Operand operand) {
    const Operand ordered = in_order(operand, MemoryOrder::channels_last);
    return as(ordered, with_channels_last(of(ordered).shape));
}

Operand CircleLowering::in_order(Operand operand, MemoryOrder order) {
    if (of(operand).order == order) return operand;
    TensorDescriptor wanted = of(operand);
    wanted.order = order;
    if (same_in_both_orders(wanted.shape)) {
        OperandInfo same = info(operand);
        same.descriptor = wanted;
        program_.operands.push_back(std::move(same));
        return program_.operands.size() - 1;
    }
    Step copy;
    copy.inputs = {operand};
    copy.outputs = {program_.new_operand(wanted)};
    program_.steps.push_back(std::move(copy));
    return program_.steps.back().outputs[0];
}

Operand CircleLowering::run(std::string_view op_type, const std::vector<Operand>& inputs,
                            Attributes attributes, std::int64_t opset, std::string_view domain) {
    return run_all(op_type, inputs, 1, std::move(attributes), opset, domain).front();
}

std::vector<Operand> CircleLowering::run_all(std::string_view op_type, const std::vector<Operand>& inputs,
                                             std::size_t outputs, Attributes attributes, std::int64_t opset,
                                             std::string_view domain) {
    const OperatorEntry* entry = builtin_kernels().find(domain, op_type, opset);
    assert(entry != nullptr);
    return add_step(reference_ ? entry->make_reference() : entry->make(),
                    inner_node(domain, op_type, opset, outputs, std::move(attributes)), inputs);
}

std::vector<Operand> CircleLowering::run_kernel(std::unique_ptr<Kernel> kernel, std::string_view op_type,
                                                const std::vector<Operand>& inputs, std::size_t outputs,
                                                Attributes attributes) {
    return add_step(std::move(kernel), inner_node("", op_type, 1, outputs, std::move(attributes)), inputs);
}

// Its outputs have the name of the node's, for messages.
Node CircleLowering::inner_node(std::string_view domain, std::string_view op_type, std::int64_t opset,
                                std::size_t outputs, Attributes attributes) const {
    Node inner;
    inner.domain = domain;
    inner.op_type = op_type;
    inner.opset = opset;
    inner.attributes = std::move(attributes);
    const std::vector<ValueId>& own = node().outputs;
    inner.outputs.assign(
        outputs, *std::find_if(own.begin(), own.end(), [](ValueId output) { return output != no_value; }));
    return inner;
}

std::vector<Operand> CircleLowering::add_step(std::unique_ptr<Kernel> kernel, Node inner,
                                              std::vector<Operand> inputs) {
    while (!inputs.empty() && inputs.back() == absent) inputs.pop_back();
    std::vector<InputInfo> infos;
    for (const Operand operand : inputs) {
        InputInfo& given = infos.emplace_back();
        inner.inputs.push_back(no_value);
        if (operand == absent) continue;
        const OperandInfo& from = info(operand);
        inner.inputs.back() = from.name == no_value ? inner.outputs[0] : from.name;
        given = {from.descriptor, from.constant, from.weight};
    }
    const NodeContext inner_context{context_.graph, inner, infos, context_.weights, nullptr};
    const bool all_known = std::all_of(infos.begin(), infos.end(), [](const InputInfo& given) {
        return !given.present() || given.constant.has_value();
    });
    try {
        if (all_known && !infos.empty()) return add_constants(fold_node(inner_context, *kernel));
        const std::vector<MemoryOrder> orders = kernel->input_orders(inner_context);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (inputs[i] == absent) continue;
            inputs[i] = in_order(inputs[i], orders[i]);
            infos[i].descriptor = of(inputs[i]);
        }
        Prepared prepared = kernel->prepare(inner_context);
        return add_prepared(std::move(kernel), inner_context, std::move(inputs), std::move(prepared));
    } catch (const Error& error) {
        const std::string prefix = label(context_.graph, inner) + ": ";
        const std::string_view message = error.what();
        context_.refuse(message.starts_with(prefix) ? message.substr(prefix.size()) : message);
    }
}

std::vector<Operand> CircleLowering::add_constants(std::vector<Tensor> tensors) {
    std::vector<Operand> made;
    for (Tensor& tensor : tensors) made.push_back(constant(std::move(tensor)));
    return made;
}

std::vector<Operand> CircleLowering::add_prepared(std::unique_ptr<Kernel> kernel, const NodeContext& inner,
                                                  std::vector<Operand> inputs, Prepared prepared) {
    if (!prepared.needs_values.empty()) {
        NeedsValues needs;
        for (const std::size_t i : prepared.needs_values) {
            if (inputs[i] < node().inputs.size()) needs.inputs.push_back(inputs[i]);
        }
        throw needs;
    }
    if (prepared.data_dependent) inner.refuse("its shape comes out of the run");
    if (!prepared.known_outputs.empty()) return add_constants(std::move(prepared.known_outputs));
    if (prepared.view_of) {
        const TensorDescriptor& shown = prepared.outputs[0];
        return {as(inputs[*prepared.view_of], shown.shape, shown.order)};
    }
    Step step;
    step.kernel = std::move(kernel);
    step.inputs = std::move(inputs);
    for (const TensorDescriptor& output : prepared.outputs)
        step.outputs.push_back(program_.new_operand(output));
    step.scratch_bytes = prepared.scratch_bytes;
    step.in_place = std::move(prepared.in_place);
    step.packed = std::move(prepared.packed);
    step.rounding = std::move(prepared.rounding);
    program_.steps.push_back(std::move(step));
    return program_.steps.back().outputs;
}

void CircleLowering::result(std::size_t output, Operand operand) {
    program_.results[output] = in_order(operand, MemoryOrder::row_major);
}

void CircleLowering::activated_result(Operand operand) {
    result(0, activated(operand));
}

Operand CircleLowering::activated(Operand operand) {
    const auto function = node().attribute<std::string>("fused_activation_function", "NONE");
    if (function == "NONE") return operand;
    if (function == "TANH") return run("Tanh", {operand});
    if (function == "RELU") return run("Relu", {operand});
    if (function != "RELU6" && function != "RELU_N1_TO_1") {
        context_.refuse(fmt::format("the fused activation {} is not supported", function));
    }
    const double low = function == "RELU6" ? 0 : -1;
    const double high = function == "RELU6" ? 6 : 1;
    return run("Clip", {operand, number_like(operand, low), number_like(operand, high)});
}

struct LoweredKernel::State : KernelState {
    struct BoundStep {
        std::unique_ptr<KernelState> state;
        std::vector<TensorView> inputs;
        std::vector<MutableTensorView> outputs;
    };
    std::vector<BoundStep> steps;
};

Prepared LoweredKernel::prepare(const NodeContext& context) {
    CircleLowering lowering(context, program_, reference_);
    Prepared prepared;
    try {
        rule_(lowering);
    } catch (const CircleLowering::NeedsValues& needs) {
        if (needs.inputs.empty()) context.refuse("what its shape hangs on cannot be known before the run");
        prepared.needs_values = needs.inputs;
        return prepared;
    }
    for (const Operand result : program_.results) {
        assert(result != LoweredProgram::absent);
        prepared.outputs.push_back(lowering.of(result));
    }
    if (take_known_outputs(prepared)) return prepared;
    const std::size_t first = program_.operands[program_.results[0]].storage;
    if (program_.results.size() == 1 && program_.storages[first].input != LoweredProgram::absent) {
        prepared.view_of = program_.storages[first].input;
        return prepared;
    }
    copy_shown_results();
    place_storages(context, prepared);
    return prepared;
}

bool LoweredKernel::take_known_outputs(Prepared& prepared) const {
    std::vector<Tensor> known;
    for (const Operand result : program_.results) {
        const LoweredProgram::OperandInfo& info = program_.operands[result];
        const std::optional<Tensor>& constant = program_.storages[info.storage].constant;
        if (!constant) return false;
        known.push_back(with_shape(*constant, info.descriptor));
    }
    prepared.known_outputs = std::move(known);
    return true;
}

// Each output has elements of its own, so a result that is an input, a constant, or another result too is
// copied.
void LoweredKernel::copy_shown_results() {
    std::vector<std::size_t> taken;
    for (Operand& result : program_.results) {
        const std::size_t storage = program_.operands[result].storage;
        const LoweredProgram::Storage& from = program_.storages[storage];
        const bool made = from.input == LoweredProgram::absent && !from.constant;
        if (!made || std::find(taken.begin(), taken.end(), storage) != taken.end()) {
            LoweredProgram::Step copy;
            copy.inputs = {result};
            copy.outputs = {program_.new_operand(program_.operands[result].descriptor)};
            result = copy.outputs[0];
            program_.steps.push_back(std::move(copy));
        }
        taken.push_back(program_.operands[result].storage);
    }
}

void LoweredKernel::place_storages(const NodeContext& context, Prepared& prepared) {
    places_.assign(program_.storages.size(), {});
    for (std::size_t i = 0; i < places_.size(); ++i) {
        if (program_.storages[i].input != LoweredProgram::absent) {
            places_[i] = {Place::Kind::input, program_.storages[i].input};
        } else if (program_.storages[i].constant) {
            places_[i] = {Place::Kind::constant, i};
        }
    }
    for (std::size_t output = 0; output < program_.results.size(); ++output) {
        if (context.node.outputs[output] == no_value) continue;
        places_[program_.operands[program_.results[output]].storage] = {Place::Kind::output, output};
    }
    place_temporaries(prepared.scratch_bytes);
    prepared.in_place = overwritable_inputs(context);
    prepared.packed = packed_inputs(context);
    prepared.rounding = rounding();
}

// What is between the steps shares the output's memory where a step works in place, and lies in the scratch
// memory else.
void LoweredKernel::place_temporaries(std::size_t& scratch_bytes) {
    constexpr std::size_t alignment = 64;
    arena_bytes_ = 0;
    std::size_t most = 0;
    for (std::size_t i = program_.steps.size(); i-- > 0;) {
        const LoweredProgram::Step& step = program_.steps[i];
        most = std::max(most, step.scratch_bytes);
        for (const Operand output : step.outputs) {
            Place& place = places_[program_.operands[output].storage];
            if (place.kind != Place::Kind::none) continue;
            place = {Place::Kind::scratch, arena_bytes_};
            arena_bytes_ +=
                (program_.operands[output].descriptor.bytes() + alignment - 1) / alignment * alignment;
        }
        share_output(step, i);
    }
    scratch_bytes = arena_bytes_ + most;
}

void LoweredKernel::share_output(const LoweredProgram::Step& step, std::size_t index) {
    const std::size_t made = program_.operands[step.outputs[0]].storage;
    for (const std::size_t j : step.in_place) {
        const std::size_t source = program_.operands[step.inputs[j]].storage;
        const bool dies = places_[source].kind == Place::Kind::none && program_.last_use(source) == index &&
                          program_.uses(step, source) == 1;
        if (!dies || program_.storages[source].bytes != program_.storages[made].bytes) continue;
        places_[source] = places_[made];
        return;
    }
}

bool LoweredKernel::lies_in_first_output(Operand operand) const {
    const Place& place = places_[program_.operands[operand].storage];
    return place.kind == Place::Kind::output && place.index == 0;
}

// Inputs of the very size of output 0 that nothing reads after its memory is written first, but for a step
// that may work in place.
std::vector<std::size_t> LoweredKernel::overwritable_inputs(const NodeContext& context) const {
    if (context.node.outputs[0] == no_value) return {};
    const auto writes = [&](const LoweredProgram::Step& step) {
        return std::any_of(step.outputs.begin(), step.outputs.end(),
                           [&](Operand output) { return lies_in_first_output(output); });
    };
    const auto first = std::find_if(program_.steps.begin(), program_.steps.end(), writes);
    const auto position = static_cast<std::size_t>(first - program_.steps.begin());
    std::vector<std::size_t> inputs;
    for (std::size_t i = 0; i < context.node.inputs.size(); ++i) {
        const std::size_t last = program_.last_use(i);
        if (!context.has_input(i) || last > position || last == program_.steps.size()) continue;
        if (context.input(i).bytes() != program_.operands[program_.results[0]].descriptor.bytes()) continue;
        const bool in_place =
            last < position ||
            (program_.uses(*first, i) == 1 && lies_in_first_output(first->outputs[0]) &&
             std::any_of(first->in_place.begin(), first->in_place.end(),
                         [&](std::size_t j) { return program_.operands[first->inputs[j]].storage == i; }));
        if (in_place) inputs.push_back(i);
    }
    return inputs;
}

std::vector<std::size_t> LoweredKernel::packed_inputs(const NodeContext& context) const {
    std::vector<std::size_t> packed;
    for (std::size_t input = 0; input < context.node.inputs.size(); ++input) {
        if (!context.has_input(input) || !context.inputs[input].constant) continue;
        const bool read =
            std::any_of(program_.steps.begin(), program_.steps.end(), [&](const LoweredProgram::Step& step) {
                std::size_t of_packed = 0;
                for (const std::size_t j : step.packed) {
                    if (program_.operands[step.inputs[j]].storage == input) ++of_packed;
                }
                return program_.uses(step, input) > of_packed;
            });
        if (!read) packed.push_back(input);
    }
    return packed;
}

std::vector<DataType> LoweredKernel::rounding() const {
    std::vector<DataType> types;
    for (const LoweredProgram::Step& step : program_.steps) {
        for (std::size_t i = 0; i < step.rounding.size(); ++i) {
            const auto result = std::find(program_.results.begin(), program_.results.end(), step.outputs[i]);
            if (result == program_.results.end() || step.rounding[i] == DataType::undefined) continue;
            types.resize(program_.results.size(), DataType::undefined);
            types[static_cast<std::size_t>(result - program_.results.begin())] = step.rounding[i];
        }
    }
    return types;
}

std::unique_ptr<KernelState> LoweredKernel::make_state() const {
    auto state = std::make_unique<State>();
    for (const LoweredProgram::Step& step : program_.steps) {
        State::BoundStep& bound = state->steps.emplace_back();
        if (step.kernel) bound.state = step.kernel->make_state();
        for (const Operand operand : step.inputs) {
            TensorView& view = bound.inputs.emplace_back();
            if (operand != LoweredProgram::absent) view.descriptor = &program_.operands[operand].descriptor;
        }
        for (const Operand operand : step.outputs) {
            bound.outputs.push_back({&program_.operands[operand].descriptor, nullptr});
        }
    }
    return state;
}

const std::byte* LoweredKernel::address(Operand operand, std::span<const TensorView> inputs,
                                        std::span<const MutableTensorView> outputs,
                                        std::byte* scratch) const {
    const std::size_t storage = program_.operands[operand].storage;
    const Place& place = places_[storage];
    switch (place.kind) {
        case Place::Kind::input:
            return inputs[place.index].data;
        case Place::Kind::output:
            return outputs[place.index].data;
        case Place::Kind::constant:
            return program_.storages[storage].constant->data();
        case Place::Kind::scratch:
            return scratch + place.index;
        case Place::Kind::none:
            break;
    }
    return nullptr;
}

void LoweredKernel::run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
                        Workspace& workspace) const {
    auto& state = static_cast<State&>(*workspace.state);
    std::byte* scratch = workspace.scratch.data();
    for (std::size_t i = 0; i < state.steps.size(); ++i) {
        const LoweredProgram::Step& step = program_.steps[i];
        State::BoundStep& bound = state.steps[i];
        for (std::size_t j = 0; j < step.inputs.size(); ++j) {
            if (step.inputs[j] == LoweredProgram::absent) continue;
            bound.inputs[j].data = address(step.inputs[j], inputs, outputs, scratch);
        }
        for (std::size_t j = 0; j < step.outputs.size(); ++j) {
            bound.outputs[j].data =
                const_cast<std::byte*>(address(step.outputs[j], inputs, outputs, scratch));  // NOLINT
        }
        if (step.kernel) {
            Workspace inner{workspace.scratch.subspan(arena_bytes_, step.scratch_bytes), bound.state.get(),
                            workspace.sample};
            step.kernel->run(bound.inputs, bound.outputs, inner);
        } else {
            copy_to_order(bound.inputs[0], bound.outputs[0]);
        }
    }
}

}  // namespace qcalib
