#pragma once

#include <span>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "graph/graph.h"
#include "statistics/statistics_file.h"
#include "target/assignment.h"
#include "target/constant_lookup.h"
#include "target/decision.h"
#include "target/target.h"
#include "target/tidl_tensors.h"

namespace qcalib {

// What a run for TIDL came to.
struct TidlRun {
    const Graph& graph;
    const ConstantLookup& constant;
    const StatisticsFile& statistics;
    const Target& target;
    const AssignmentOptions& options;
    const TidlTensors& tensors;
    const EncodingSet& set;
};

// What will surprise the user of such encodings, each with advice, as remarks and as notes of decisions:
//   - scales that TIDL makes coarser than the ranges ask for, by how many bits and why; biases that do not
//   fit;
//   - of models with Clips of quantization-aware training: layers that lack one, ranges that are no powers of
//     two, Clips that TIDL refuses, one range for very different layers, a Clip on the network's input,
//     weights off their grid, 16 bits;
//   - inputs of a Concat that share its scale though their values do not.
void add_tidl_findings(const TidlRun& run, std::vector<Decision>& decisions, Remarks& remarks);

// Those on the Clips of the model.
void add_tidl_clip_findings(const TidlRun& run, std::span<const Decision> decisions, Remarks& remarks);

// "'a' and 3 more".
std::string tidl_names(std::span<const std::string> names);

}  // namespace qcalib
