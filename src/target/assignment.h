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
#include "target/target.h"

namespace qcalib {

// What a user may set for a whole run; unset fields come from the target.
struct AssignmentOptions {
    std::optional<MethodChoice> method;
    std::optional<int> activation_bits;
    std::optional<int> weight_bits;
    std::optional<bool> per_channel_weights;
    std::optional<bool> symmetric_weights;
    std::optional<bool> symmetric_activations;
};

// The float32 value of a constant (initializer, or folded from initializers), or nullptr.
using ConstantLookup = std::function<const Tensor*(ValueId)>;

// Decides which tensor of the graph gets which encoding: every float activation with data, and the constants
// that meet an activation, by the target's rules. Remarks name each tensor that gets none though the rules
// want one (no data). A tensor the statistics lack is an Error that names it and the flag to count it.
EncodingSet assign_encodings(const Graph& graph, const ConstantLookup& constant,
                             const StatisticsFile& statistics, const Target& target,
                             const AssignmentOptions& options, Remarks& remarks);

}  // namespace qcalib
