#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "graph/graph.h"
#include "ranges/range_method.h"
#include "statistics/statistics_file.h"
#include "target/decision.h"
#include "target/method_table.h"
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
    std::optional<ValuePolicy> nonfinite;
    std::optional<ValuePolicy> masks;
};

// Which activation (weight) gets which method in a run for a target.
MethodTable activation_methods(const AssignmentOptions& options, const Target& target);
MethodTable weight_methods(const AssignmentOptions& options, const Target& target);

// The float32 value of a constant (initializer, or folded from initializers), or nullptr.
using ConstantLookup = std::function<const Tensor*(ValueId)>;

// Decides which tensor of the graph gets which encoding: every float activation with data, and the constants
// that meet an activation, by the target's rules. Remarks name each tensor that gets none though the rules
// want one (no data). A tensor the statistics lack is an Error that names it and the flag to count it. Where
// `decisions` is given, what led to each encoding is added to it.
EncodingSet assign_encodings(const Graph& graph, const ConstantLookup& constant,
                             const StatisticsFile& statistics, const Target& target,
                             const AssignmentOptions& options, Remarks& remarks,
                             std::vector<Decision>* decisions = nullptr);

}  // namespace qcalib
