#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mapping/graph_probe.h"
#include "mapping/mapping.h"

namespace qcalib {

// One of the two models while they are mapped.
struct MappedSide {
    MappedSide(std::shared_ptr<const Graph> graph_in, const std::string& label)
        : probe(std::move(graph_in), label), graph(probe.graph()) {}

    GraphProbe probe;
    const Graph& graph;
    std::vector<ProbedValue> values;
    std::vector<std::vector<NodeIndex>> consumers;  // by value
    std::vector<std::size_t> position;              // by value: of its producer in the graph; inputs are 0
    std::vector<std::vector<Tensor>> samples;       // inputs

    void index();  // consumers and positions
    const Node* producer(ValueId value) const;
    bool is_activation(ValueId value) const { return values[value].seen() && !values[value].constant; }
    bool is_constant(ValueId value) const { return values[value].seen() && values[value].constant; }
    const std::string& name(ValueId value) const { return graph.values[value].name; }
};

// A constant that follows from constants of the ONNX model.
struct DerivedConstant {
    Tensor tensor;
    ValueId from = no_value;  // the constant it is mainly made of
    std::string how;          // what was done to it
    Fingerprint print;
};

// One way in which a tensor may lie in another, and how far they differ then.
struct CandidateMap {
    AxisMap map;
    ElementDifference difference;
};

// Two tensors that may be one, and what comparing them found.
struct CandidatePair {
    ValueId circle = no_value;
    ValueId onnx = no_value;
    std::vector<CandidateMap> maps;  // those still possible

    // The likeliest map whose difference is not far above the least.
    const CandidateMap& best() const;
};

// Both models and what is decided so far.
struct MappingState {
    MappedSide circle;
    MappedSide onnx;
    std::vector<DerivedConstant> derived;
    std::vector<std::optional<TensorPair>> pairs;  // by Circle value
    std::vector<std::vector<ValueId>> partners;    // by ONNX value: Circle values, equals included
    // By value: which tensors have the same values. Those of both models share the numbers; 0 is none.
    std::vector<std::size_t> circle_group;
    std::vector<std::size_t> onnx_group;
    std::size_t groups = 0;

    void pair(TensorPair pair);
    bool is_paired_onnx(ValueId value) const { return !partners[value].empty(); }

    // The first tensor with a partner that the tensor leads to, itself the first to be asked; or no_value.
    ValueId paired_behind(ValueId circle_value) const;
    ValueId paired_behind_onnx(ValueId onnx_value) const;
    // The ONNX nodes that do what the operators making a Circle tensor do: back from the tensor's partner
    // over tensors without a partner of their own. Empty for a tensor without a partner.
    std::vector<NodeIndex> region_of(ValueId circle_value) const;
};

// Compares candidates element by element by running both models again, keeping ONNX tensors within the memory
// given. `tolerance.absolute` is a part of the largest |x| of the ONNX tensor. Maps that a sample refutes are
// taken out; with `to_the_end` none is, and squares are summed up.
void compare_candidates(MappingState& state, std::vector<CandidatePair>& candidates,
                        const ElementTolerance& tolerance, std::uint64_t memory);

// The stages, in their order.
void pair_by_value(MappingState& state, std::uint64_t memory);
void pair_constants(MappingState& state);
void pair_by_structure(MappingState& state);
void pair_nearest(MappingState& state, std::uint64_t memory);
// Reasons for what has no partner.
void explain_lone(const MappingState& state, TensorMapping& mapping);

// The constants that converters compute: batch normalizations and scales folded into weights, filters split
// by groups, factors instead of divisors.
std::vector<DerivedConstant> derive_constants(const MappedSide& onnx);

// How much the names speak for a pair, 0 to 3: one name, a part of "a;b;c", or one inside the other.
int name_votes(const std::string& circle_name, const std::string& onnx_name, const std::string& onnx_node);

// How much speaks for two activations of the same values being one: kind of operator, names, place.
double pair_score(const MappingState& state, ValueId circle, ValueId onnx);

}  // namespace qcalib
