#pragma once

#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "graph/graph.h"
#include "ranges/range_method.h"
#include "statistics/statistics_file.h"
#include "target/circle_propagation.h"
#include "target/decision.h"
#include "target/parameters.h"

namespace qcalib {

// What decides on the encodings of a graph of a .circle or .tflite file.
struct CircleInputs {
    const Graph& graph;
    const Target& target;            // with CircleRules
    const ResolvedOptions& options;  // with overrides and base
    // The range that a float tensor which is no constant of the file gets before any step, or nothing.
    std::function<std::optional<Range>(ValueId)> range;
    std::function<std::string(ValueId)> method;  // what chose it
};

// The steps of ONE's quantizer in their order: ranges, overrides and the base become encodings; to the
// inputs; operands; fixed outputs; to the outputs; weights; biases. What overrides and the base say is kept
// by every step and handed on.
CircleEncodings circle_encodings(const CircleInputs& inputs, Remarks& remarks);

// The same with ranges by method from statistics: what assign_encodings() does for such a graph. Every float
// tensor gets an entry, in the order of the file: activations, then constants.
EncodingSet assign_circle_encodings(const Graph& graph, const StatisticsFile& statistics,
                                    const Target& target, const ResolvedOptions& options, Remarks& remarks,
                                    std::vector<Decision>* decisions);

// The settings of a run that Circle has no place for, each an Error that says why; weights take the width of
// activations.
void check_circle_options(const AssignmentOptions& options, const Target& target);

// The weights of a graph as their codes stand for them, by ValueId: what one-quantize records activations
// with (ProgramOptions::replaced).
std::map<ValueId, Tensor> circle_fake_quantized_weights(const Graph& graph, const Target& target,
                                                        const AssignmentOptions& options);

}  // namespace qcalib
