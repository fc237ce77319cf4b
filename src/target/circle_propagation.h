#pragma once

#include <optional>
#include <vector>

#include "base/remarks.h"
#include "target/circle_arithmetic.h"
#include "target/circle_graph.h"
#include "target/decision.h"

namespace qcalib {

// The encodings of a graph while ONE's steps change them, by ValueId.
struct CircleEncodings {
    explicit CircleEncodings(std::size_t values)
        : of(values), kept(values), coding(values, CircleCoding::own) {}

    const Encoding* first(ValueId value) const;  // nullptr: none

    std::vector<Encoded> of;
    std::vector<bool> kept;  // by an override or the base: no step changes it
    std::vector<CircleCoding> coding;
};

// The steps of luci's quantizer that hand encodings on. Each goes over the whole graph, and their order is a
// part of the result: inputs from outputs, [constants,] fixed outputs, outputs from inputs.
class CirclePropagation {
  public:
    CirclePropagation(const CircleGraph& graph, const Target& target, int bits, CircleEncodings& encodings,
                      Remarks& remarks)
        : graph_(graph), target_(target), bits_(bits), encodings_(encodings), remarks_(remarks) {}

    // From the outputs of the graph to its inputs: to_inputs and to_padding.
    void to_inputs();
    // Fixed outputs and steps of whole numbers.
    void fix_outputs();
    // to_outputs until nothing changes; where the rules want an executable model, the equal rules with it.
    void to_outputs();

  private:
    void to_inputs_of(const Node& node);
    void remark_far_apart(const Node& node);
    void to_padding_of(const Node& node, const CircleHandRule& rule);
    bool to_outputs_of(const Node& node);
    bool equalize(const Node& node);
    bool equalize_all(const Node& node, const CircleHandRule& rule);
    void fix(const Node& node, ValueId output);
    void make_whole(const Node& node, ValueId output);
    // Whether something changed.
    bool hand(ValueId from, ValueId to, const Node& node, const Evidence& evidence);
    std::vector<ValueId> inputs_of(const Node& node, const CircleHandRule& rule) const;
    bool lacks(ValueId value) const { return encodings_.first(value) == nullptr; }

    const CircleGraph& graph_;
    const Target& target_;
    int bits_;
    CircleEncodings& encodings_;
    Remarks& remarks_;
};

}  // namespace qcalib
