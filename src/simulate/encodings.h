#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "simulate/model.h"
#include "target/simulation_rule.h"
#include "tensor/range.h"

namespace qcalib {

// The encoding that a simulation gives a value of the graph.
struct SimulatedEncoding {
    enum class Kind : std::uint8_t { activation, weight, constant };
    ValueId value = no_value;
    Kind kind = Kind::activation;
    TensorEncoding encoding;
    std::optional<TensorEncoding> clip;  // grids to whose ends a weight is clipped before
};

// In the order of the graph, constants before the node that reads them first.
using SimulatedEncodings = std::vector<SimulatedEncoding>;

// What activations were in float on the converter's own samples.
using MeasuredRanges = std::unordered_map<ValueId, Range>;

// The encodings of a file by the values of a graph.
struct GivenEncodings {
    std::unordered_map<ValueId, TensorEncoding> by_value;
    std::vector<ValueId> unencoded;  // activations the target has a tensor for and the file no entry
};

// The grid of TIDL for values up to `limit`: a step of limit / 2^bits, or limit / 2^(bits - 1) with a sign;
// with `power_of_two` the limit is raised to one.
Encoding tidl_grid(double limit, int bits, bool is_signed, bool power_of_two);

// Puts the encodings of these activations, of which the range alone is known, on TIDL's grid where the target
// has an integer chain.
void put_on_grid(EncodingSet& set, const std::unordered_set<std::string>& ranges, const Target& target);

// Finds the graph's values for the entries: by name, or by the name converters make of it. Entries that are
// for no value become remarks with the nearest name; an Error where all are.
GivenEncodings match_encodings(const SimulatedModel& model, const EncodingSet& set, Remarks& remarks);

// What each value is encoded as under these switches:
// - activations: the given encoding; where there is none, what the target fixes or shares, else the measured
//   range; else none. With InputRanges::list the values near the inputs are measured.
// - weights and constants: as WeightSource says; those without an entry by the target's rules.
// What the target fuses away and what the rules skip has none.
SimulatedEncodings resolve_encodings(const SimulatedModel& model, const GivenEncodings& given,
                                     const SimulationSwitches& switches, const MeasuredRanges& measured);

// The same encoding on `bits` bits: of the same range, and half a step more where the old grid was nudged.
TensorEncoding with_bits(const TensorEncoding& encoding, int bits, const Target& target);

}  // namespace qcalib
