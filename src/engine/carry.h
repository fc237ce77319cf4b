#pragma once

#include <span>
#include <string>
#include <vector>

#include <tbb/enumerable_thread_specific.h>

#include "base/remarks.h"
#include "dataset/input_spec.h"
#include "graph/graph.h"
#include "runtime/program.h"
#include "runtime/tap.h"

namespace qcalib {

// A graph output that is fed back as a graph input in the next step of a sequence.
struct Carry {
    std::size_t input = 0;  // index into Graph::inputs
    ValueId output = no_value;
    std::string option;  // "--carry stateN=state", for messages
};

// Reads "stateN=state" options (OUTPUT=INPUT), checks names, types and declared shapes, and marks the inputs
// as carried. An input without a value of its own (--input) starts with zeros; what its shape leaves open is
// bound by dimensions of the same name in other inputs, else taken as 1 with a remark. To be called after
// apply_shape() and apply_value().
std::vector<Carry> parse_carries(const Graph& graph, std::span<const std::string> options,
                                 std::vector<InputSpec>& inputs, Remarks& remarks);

// Keeps what carried outputs were in the run that each thread did last.
class CarryTap : public Tap {
  public:
    explicit CarryTap(std::vector<Carry> carries) : carries_(std::move(carries)) {}

    TapRight right(const Graph& graph, ValueId value) const override;
    void on_value(ValueId value, std::uint64_t sample, MutableTensorView view) override;

    // Puts the outputs of this thread's last run, row-major, in the place of the inputs they are fed back to.
    // Throws Error where one has a shape or type that its input does not take.
    void feed_back(const Program& program, std::span<const InputSpec> specs, std::span<Tensor> inputs);

  private:
    std::vector<Carry> carries_;
    tbb::enumerable_thread_specific<std::vector<Tensor>> latest_;  // parallel to carries_
};

}  // namespace qcalib
