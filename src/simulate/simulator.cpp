#include "simulate/simulator.h"

#include "base/error.h"
#include "base/text.h"
#include "runtime/kernel_registry.h"
#include "simulate/chain_kernels.h"

namespace qcalib {

Simulator::Simulator(const SimulatedModel& model, std::vector<bool> quantized, std::vector<bool> seen)
    : model_(model), tap_(std::move(quantized), std::move(seen)) {}

Program& Simulator::program(const Quantization* quantization) {
    const bool replaces = quantization != nullptr && !quantization->replaced.empty();
    const IntegerChain* chain = quantization == nullptr ? nullptr : quantization->chain.get();
    const std::string key = chain != nullptr ? fmt::format("chain {}", fmt::ptr(chain))
                            : replaces       ? quantization->digest
                                             : "";
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Program>& program = programs_[key];
    if (program == nullptr) {
        ProgramOptions options = model_.options();
        if (replaces) options.replaced = quantization->replaced;
        program = std::make_unique<Program>(chain == nullptr ? model_.graph() : chain->graph,
                                            chain == nullptr ? builtin_kernels() : chain_kernels(),
                                            std::vector<Tap*>{&tap_}, std::move(options));
    }
    return *program;
}

void Simulator::forget_programs() {
    const std::lock_guard lock(mutex_);
    std::erase_if(programs_, [](const auto& entry) { return !entry.first.empty(); });
}

void Simulator::run(const Quantization* quantization, ValueObserver* observer, std::span<const Tensor> inputs,
                    std::uint64_t number, Frame& frame) {
    const std::shared_ptr<const Plan> plan = program(quantization).plan(inputs);
    tap_.set(quantization, observer);
    frame.run(plan, inputs, number);
    tap_.set(nullptr, nullptr);
}

void CarriedStates::feed(std::size_t run, const SampleStep& step, std::vector<Tensor>& inputs) const {
    if (step.step == 0 || !any()) return;
    const std::vector<Tensor>& state = states_.at(run);
    for (std::size_t i = 0; i < carries_.size(); ++i) inputs[carries_[i].input] = state[i];
}

void CarriedStates::keep(std::size_t run, const Capture& capture, Simulator& simulator) {
    if (!any()) return;
    std::vector<Tensor> state;
    for (const Carry& carry : carries_) {
        const std::span<const Tensor> made = capture.of(carry.output);
        const Tensor* constant = made.empty() ? simulator.constant(carry.output) : nullptr;
        if (made.empty() && constant == nullptr) fail("{}: the output was not made", carry.option);
        const Tensor& source = made.empty() ? *constant : made.back();
        TensorDescriptor descriptor = source.descriptor();
        descriptor.order = MemoryOrder::row_major;
        Tensor copy(std::move(descriptor));
        copy_to_order(source.view(), copy.mutable_view());
        state.push_back(std::move(copy));
    }
    states_[run] = std::move(state);
}

}  // namespace qcalib
