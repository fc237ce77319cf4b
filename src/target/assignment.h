#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "graph/graph.h"
#include "ranges/range_method.h"
#include "statistics/statistics_file.h"
#include "target/base_encodings.h"
#include "target/constant_lookup.h"
#include "target/decision.h"
#include "target/method_table.h"
#include "target/overrides.h"
#include "target/target.h"

namespace qcalib {

// What a user may set for a whole run; unset fields come from the target.
struct AssignmentOptions {
    std::vector<MethodRule> methods;         // of activations
    std::vector<MethodRule> weight_methods;  // of weights
    std::optional<int> activation_bits;
    std::optional<int> weight_bits;
    std::optional<bool> per_channel_weights;
    std::optional<bool> symmetric_weights;
    std::optional<bool> symmetric_activations;
    std::optional<bool> unsigned_symmetric;  // where activations are symmetric
    std::optional<bool> power_of_two;
    std::optional<bool> include_zero;
    std::optional<double> least_range;  // > 0
    std::string least_range_name;       // one of the target's; where set, instead of least_range
    std::optional<int> bias_bits;       // nothing: biases get no encoding
    std::optional<ValuePolicy> nonfinite;
    std::optional<ValuePolicy> masks;
    std::vector<Override> overrides;    // for some tensors
    std::optional<BaseEncodings> base;  // encodings that are kept and completed
};

// Which activation (weight) gets which method in a run for a target.
MethodTable activation_methods(const AssignmentOptions& options, const Target& target);
MethodTable weight_methods(const AssignmentOptions& options, const Target& target);

// An Error where the target's rules are for other operators than the graph has: those of ONNX, or of .circle
// and .tflite files.
void check_form(const Graph& graph, const Target& target);

// Decides which tensor of the graph gets which encoding: every float activation with data that the target has
// a tensor for, and the constants that meet an activation. What holds for a tensor is decided in this order:
//   1. overrides (see OverrideTable for their own order);
//   2. what the target fixes;
//   3. the base;
//   4. what the target shares: the encoding of another tensor;
//   5. the method.
// Remarks name each tensor that gets none though the rules want one (no data), each override that changed
// nothing and each entry of the base that is not kept. A tensor the statistics lack is an Error that names it
// and the flag to count it, as is an override that fits no tensor. Where `decisions` is given, what led to
// each encoding is added to it.
EncodingSet assign_encodings(const Graph& graph, const ConstantLookup& constant,
                             const StatisticsFile& statistics, const Target& target,
                             const AssignmentOptions& options, Remarks& remarks,
                             std::vector<Decision>* decisions = nullptr);

}  // namespace qcalib
