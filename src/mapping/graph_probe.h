#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "mapping/fingerprint.h"
#include "runtime/frame.h"
#include "runtime/program.h"

namespace qcalib {

// What is known of a value of a model that was run.
struct ProbedValue {
    std::vector<Fingerprint> samples;  // one a sample, or one of a constant; empty: never seen, or no float
    Shape shape;
    bool constant = false;  // hangs on initializers alone
    bool repeated = false;  // made more than once a sample (a loop's body)
    bool poor = false;      // see is_poor()
    float largest = 0;      // |x| over all samples

    bool seen() const { return !samples.empty(); }
};

// A model made ready to have its float values looked at. Not for several threads.
class GraphProbe {
  public:
    // `label` is what messages call the model. Error where an operator is missing.
    GraphProbe(std::shared_ptr<const Graph> graph, std::string label);
    ~GraphProbe();

    const Graph& graph() const { return *graph_; }
    const std::string& label() const { return label_; }

    using Visit = std::function<void(ValueId value, TensorView row_major)>;
    // Runs one sample and shows each float value outside of constants, row-major. Errors start with the
    // model's label.
    void run(std::span<const Tensor> inputs, const Visit& visit);

    // A constant's value (float32, aligned), or nullptr.
    const Tensor* constant(ValueId value) const;

    // Runs all samples and takes fingerprints; those of constants, too.
    std::vector<ProbedValue> take_fingerprints(std::span<const std::vector<Tensor>> samples);

  private:
    class ProbeTap;

    void align_constants();

    std::shared_ptr<const Graph> graph_;
    std::string label_;
    std::unique_ptr<ProbeTap> tap_;
    std::unique_ptr<Program> program_;
    Frame frame_;
    std::unordered_map<ValueId, Tensor> aligned_;  // copies of constants that lie unaligned in a file
};

}  // namespace qcalib
