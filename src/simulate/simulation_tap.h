#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tbb/enumerable_thread_specific.h>

#include "runtime/tap.h"
#include "simulate/comparison.h"
#include "simulate/quantization.h"

namespace qcalib {

// Sees the values of one run, on one thread, quantized ones after they were quantized.
class ValueObserver {
  public:
    virtual ~ValueObserver() = default;
    // `sums` is nullptr where the value is not quantized in this run.
    virtual void see(ValueId value, TensorView view, const QuantizationSums* sums) = 0;
};

// Quantizes values as they are made. One tap serves all programs of a simulation, and each run says what is
// quantized in it: the kernels are the same whatever that is, and a run that quantizes nothing is the float
// run, bit by bit.
class SimulationTap : public Tap {
  public:
    // `quantized`: values that some run quantizes; `seen`: others that observers want.
    SimulationTap(std::vector<bool> quantized, std::vector<bool> seen);

    // For this thread's next runs; both may be nullptr and must outlive the runs.
    void set(const Quantization* quantization, ValueObserver* observer);

    TapRight right(const Graph& graph, ValueId value) const override;
    void on_value(ValueId value, std::uint64_t sample, MutableTensorView view) override;

  private:
    struct Run {
        const Quantization* quantization = nullptr;
        ValueObserver* observer = nullptr;
    };

    std::vector<bool> quantized_;
    std::vector<bool> seen_;
    tbb::enumerable_thread_specific<Run> runs_;
};

// Keeps copies of values of one run: floats alone, in the memory order they are made in. What a body makes
// several times is kept as often. Memory is reused from run to run.
class Capture : public ValueObserver {
  public:
    explicit Capture(std::size_t values) : places_(values) {}

    // Which values the next run keeps; nullptr: all that are seen.
    void begin(const std::vector<bool>* wanted);
    void see(ValueId value, TensorView view, const QuantizationSums* sums) override;

    // The copies of a value, in the order they were made.
    std::span<const Tensor> of(ValueId value) const;

  private:
    struct Place {
        std::vector<Tensor> tensors;
        std::size_t used = 0;
    };
    const std::vector<bool>* wanted_ = nullptr;
    std::vector<Place> places_;
};

// What a simulated run made of one value, beside the float run.
struct ValueErrors {
    ErrorSums error;
    QuantizationSums quantized;
    std::uint64_t misfits = 0;  // times its shape was another than in the float run
};

// Compares each value with a run that was kept.
class Comparer : public ValueObserver {
  public:
    // Errors are kept by value; `next`, where given, sees all values as well.
    Comparer(const Capture& reference, std::span<ValueErrors> errors, ValueObserver* next = nullptr);
    void see(ValueId value, TensorView view, const QuantizationSums* sums) override;

  private:
    const Capture& reference_;
    std::span<ValueErrors> errors_;
    ValueObserver* next_;
    std::vector<std::uint32_t> times_;
};

}  // namespace qcalib
