#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/carry.h"
#include "runtime/frame.h"
#include "runtime/program.h"
#include "simulate/model.h"
#include "simulate/quantization.h"
#include "simulate/sample_runs.h"
#include "simulate/simulation_tap.h"

namespace qcalib {

// The programs of a simulation: the float model, and one for each set of replaced constants. They share
// their tap, so that all compute alike.
class Simulator {
  public:
    // `quantized` and `seen` as SimulationTap takes them. `model` must outlive this.
    Simulator(const SimulatedModel& model, std::vector<bool> quantized, std::vector<bool> seen);

    const SimulatedModel& model() const { return model_; }
    SimulationTap& tap() { return tap_; }
    // Of the float model where `quantization` is nullptr. Made on demand, kept, thread-safe.
    Program& program(const Quantization* quantization);
    // Forgets the programs of replaced constants. Not while samples run.
    void forget_programs();
    // A graph output that hangs on constants alone, or nullptr.
    const Tensor* constant(ValueId value) { return program(nullptr).constant(value); }

    // Runs one sample on this thread; observers see its values as SimulationTap says. Plans are of `frame`.
    void run(const Quantization* quantization, ValueObserver* observer, std::span<const Tensor> inputs,
             std::uint64_t number, Frame& frame);

  private:
    const SimulatedModel& model_;
    SimulationTap tap_;
    std::mutex mutex_;
    // By Quantization::digest, or the place of the integer chain; "": the float one.
    std::map<std::string, std::unique_ptr<Program>> programs_;
};

// What carried inputs are, in each of the runs that a worker does side by side.
class CarriedStates {
  public:
    explicit CarriedStates(std::span<const Carry> carries) : carries_(carries) {}

    bool any() const { return !carries_.empty(); }
    // Puts the state of a run in the place of its carried inputs, but in a sequence's first step.
    void feed(std::size_t run, const SampleStep& step, std::vector<Tensor>& inputs) const;
    // Keeps what the run made of them.
    void keep(std::size_t run, const Capture& capture, Simulator& simulator);

  private:
    std::span<const Carry> carries_;
    std::map<std::size_t, std::vector<Tensor>> states_;
};

}  // namespace qcalib
