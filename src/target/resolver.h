#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "graph/graph.h"
#include "statistics/statistics_file.h"
#include "target/counted_values.h"
#include "target/decision.h"
#include "target/fusions.h"
#include "target/parameters.h"
#include "target/sharing.h"

namespace qcalib {

// Why an activation gets no encoding where nothing else is to blame.
constexpr const char* without_value = "no sample gave it a finite value that is no mask";

// All that decides on the encodings of a graph. Everything referred to must outlive the resolver.
struct ResolverInputs {
    const Graph& graph;
    const ConstantLookup& constant;
    const StatisticsFile& statistics;
    const Target& target;
    const ResolvedOptions& options;
    const CountedValues& values;
    const Fusions& fusions;
    const std::vector<Parameter>& parameters;
};

// What came out.
struct Resolution {
    EncodingSet set;
    std::vector<Decision> decisions;                       // activations, then parameters
    std::vector<std::string> without_data;                 // activations
    std::unordered_map<std::string, std::string> reasons;  // of tensors without an encoding, by name
};

// Decides on every tensor of a graph: the order of precedence is that of assign_encodings().
class Resolver {
  public:
    Resolver(const ResolverInputs& inputs, Remarks& remarks);

    Resolution resolve();

    // After resolve(): a remark for each override that changed nothing, and why.
    std::vector<std::string> unheeded_overrides();

  private:
    enum class State : std::uint8_t { open, busy, done };
    // One encoding for all members of a Sharing::Group.
    struct SharedRange {
        Range range;
        ValueId output = no_value;
    };

    bool is_activation(ValueId value) const;
    const std::string& name_of(ValueId value) const { return in_.graph.values[value].name; }
    const Encoded& final(ValueId value);
    // What a tensor comes to with such overrides; `parameters` encodes what is a parameter.
    Encoded decide(ValueId value, const TensorOverride& given, Remarks& remarks,
                   ParameterEncoder& parameters);
    // The encoding of a bias, where the run asks for it and all uses are as biases; else `none`.
    Encoded bias(const Parameter& parameter, Encoded none, Remarks& remarks);
    Encoded copied(ValueId value, const TensorOverride& given);
    void check_copy(ValueId value, const TensorEncoding& entry, const std::string& from,
                    const std::string& label) const;
    Encoded shared(ValueId value, const Encoded& source) const;
    Encoded own(ValueId value, const TensorOverride& given, Remarks& remarks) const;
    void ask_tidl(ValueId value, const TensorStatistics* statistics, TensorTask& task) const;
    bool follows(ValueId value, const TensorOverride& given) const;
    void share_range(const Sharing::Group& group);
    void remark_own_encoding(ValueId value, const Encoded& decided);
    std::string why_unheeded(std::size_t index) const;

    ResolverInputs in_;
    Remarks& remarks_;
    TensorEncoder encoder_;
    ParameterEncoder parameter_encoder_;
    Sharing sharing_;
    std::vector<State> states_;
    std::vector<Encoded> results_;
    std::vector<ValueId> path_;  // what is being decided, for cycles
    std::unordered_map<ValueId, const Parameter*> parameter_of_;
    std::unordered_map<ValueId, SharedRange> shared_ranges_;
};

}  // namespace qcalib
