#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "graph/graph.h"
#include "statistics/counter.h"
#include "target/assignment.h"
#include "target/fusions.h"
#include "target/method_table.h"
#include "target/target.h"
#include "target/tensor_encoder.h"
#include "target/tidl_tensors.h"
#include "target/weight_channels.h"

namespace qcalib {

// What a run's options and a target's rules come to.
struct ResolvedOptions {
    const OverrideTable* overrides = nullptr;
    const BaseTable* base = nullptr;  // nullptr: none
    MethodTable methods;              // of activations
    MethodTable weight_methods;
    GridRules activations;
    GridRules weights;  // per channel the target may make them symmetric
    bool per_channel_weights = false;
    ValuePolicy nonfinite = ValuePolicy::skip;
    ValuePolicy masks = ValuePolicy::skip;
    std::optional<int> bias_bits = {};
    const TidlTensors* tidl = nullptr;  // of a target with TidlRules
};

// One place where a constant meets an activation.
struct ParameterUse {
    const Node* node = nullptr;
    std::size_t input = 0;
    const WeightRule* weight = nullptr;  // where it is a weight there
    const SkipRule* skip = nullptr;      // where it gets no encoding there
    const Fusion* lost = nullptr;        // where a fusion makes it a part of an operator

    bool skipped() const { return skip != nullptr || lost != nullptr; }
};

// A constant and all its uses, in the order of the nodes.
struct Parameter {
    ValueId value = no_value;
    std::vector<ParameterUse> uses;
};

// Whether one of its uses is as a weight.
bool is_weight(const Parameter& parameter);

// The float constants that are inputs of nodes with an activation among their inputs, in order of first use.
std::vector<Parameter> find_parameters(const Graph& graph, const ConstantLookup& constant,
                                       const std::vector<bool>& activations, const Target& target,
                                       const Fusions& fusions);

// The encoding that an activation came to, or nullptr.
using ActivationLookup = std::function<const TensorEncoding*(ValueId)>;

// Encodes parameters by a target's rules; remarks say what came out otherwise than asked for.
class ParameterEncoder {
  public:
    ParameterEncoder(const Graph& graph, const Target& target, const ResolvedOptions& options,
                     const CounterSettings& counter, Remarks& remarks)
        : graph_(graph),
          target_(target),
          options_(options),
          counter_(counter),
          remarks_(remarks),
          encoder_(target, *options.overrides) {}

    // Nothing where all uses skip the parameter, or where it has no ordinary value.
    Encoded encode(const Parameter& parameter, const Tensor& value, const TensorOverride& given);

    // Adds the remarks that concern several weights at once.
    void finish();

  private:
    struct PerTensorReason {
        std::string reason;
        std::vector<std::string> weights;
    };

    Encoded encode_weight(const Parameter& parameter, const Tensor& value, const TensorOverride& given);
    Encoded encode_constant(const std::string& name, const Tensor& value, const TensorOverride& given);
    std::optional<int> weight_axis(const Parameter& parameter, const Tensor& value);
    std::optional<int> axis_of_use(const std::string& name, const ParameterUse& use, std::size_t rank);
    std::optional<int> channel_axis(const std::string& name, const ParameterUse& use, std::size_t rank) const;
    void look_at_channels(const Parameter& parameter, const Tensor& value, bool per_channel);
    const TensorEncoding* base_of(const std::string& name, const Tensor& value, bool weight);
    GridRules weight_grid(const std::string& name, std::optional<int> axis,
                          const TensorOverride& given) const;
    std::string reason_of(const Parameter& parameter) const;
    void remark_shared(const Parameter& parameter, std::string_view encoded_as);
    void stays_per_tensor(const std::string& name, std::string reason);

    const Graph& graph_;
    const Target& target_;
    const ResolvedOptions& options_;
    CounterSettings counter_;
    Remarks& remarks_;
    TensorEncoder encoder_;
    std::vector<PerTensorReason> per_tensor_;
    ChannelRemarks channels_;
};

// Adds a remark where values of the tensor are left out of its range: NaN, infinite, masked. An Error where
// the run's policy does not allow them.
void check_values(const std::string& name, const TensorStatistics& statistics, const ResolvedOptions& options,
                  Remarks& remarks);

}  // namespace qcalib
