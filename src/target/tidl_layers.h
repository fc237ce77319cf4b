#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "target/constant_lookup.h"
#include "tensor/range.h"

namespace qcalib {

// What a layer of TIDL does to its sums last.
struct TidlActivation {
    enum class Kind : std::uint8_t { none, relu, relu6, clip };
    Kind kind = Kind::none;
    Range bounds;  // of relu6 and clip; an end that the model leaves open is infinite

    // Whether it gives its layer a range: relu6, and a clip that is open at neither end.
    bool has_range() const;
    // Whether it lets no negative value through: what makes TIDL's codes unsigned.
    bool is_unsigned() const;
    bool operator==(const TidlActivation&) const = default;
};

// One layer of the network that TIDL's import makes of a model.
struct TidlLayer {
    std::string_view type;              // "TIDL_ConvolutionLayer"; "" where TIDL has none for the operator
    std::vector<NodeIndex> nodes;       // in order, the one that gives the type first; none: data
    std::vector<ValueId> outputs;       // the first one gives the layer its name
    std::vector<ValueId> input_values;  // activations, in the order of the first node's inputs
    std::vector<std::size_t> inputs;    // the layers that make them
    TidlActivation activation;
    NodeIndex norm = no_node;        // a batch normalization that was folded into it
    ValueId weight = no_value;       // a constant
    ValueId bias = no_value;         // a constant
    bool is_unsigned = false;        // its codes: by the graph, whatever the data
    bool passes_scale = false;       // codes, sign and scale are those of its first input
    bool stands_alone = false;       // a batch norm of weight 1 and bias 0, made for a Relu or Clip
    std::vector<NodeIndex> refused;  // Clips whose bounds TIDL does not take: they stay on the ARM

    ValueId output() const { return outputs.front(); }
    // Whether it is an input's data or a constant operand's.
    bool is_data() const { return nodes.empty(); }
    // Whether it makes TIDL collect statistics though a range is given for all others: it is none of data,
    // pad, conversion or plain batch norm, and ends in no Clip. Layers that pass a scale on do as well, but
    // have no range of their own.
    bool lacks_range() const;
};

// Which layers TIDL's import makes of an ONNX model: a batch normalization, Relus and Clips go into the layer
// whose output they alone read, Clips in a row become one that lets through what all do; a Relu or Clip with
// no such layer becomes a batch norm of weight 1. A Clip that is not from 0 or less to more than 0 is
// refused. What is computed of constants alone is no layer, nor are Identity and Dropout; a constant operand
// of an elementwise operator is one, unless it has one number a channel: then the operator is a batch norm.
// Bodies of If, Loop and Scan are left out: TIDL runs none.
class TidlLayers {
  public:
    TidlLayers(const Graph& graph, const ConstantLookup& constant);

    // Data layers of the float inputs first, then in the order of their nodes.
    const std::vector<TidlLayer>& all() const { return all_; }
    const TidlLayer& at(std::size_t layer) const { return all_[layer]; }
    // The layer whose output the value is, or (around) inside which it lies, or nothing.
    std::optional<std::size_t> making(ValueId value) const;
    std::optional<std::size_t> around(ValueId value) const;
    // The layer that a node belongs to, or nothing.
    std::optional<std::size_t> of_node(NodeIndex node) const;
    // The layer whose codes' scale is that of `layer`'s: itself, unless it passes a scale on.
    std::size_t scale_of(std::size_t layer) const;
    // The layers that read an output of `layer`, in order.
    std::vector<std::size_t> readers(std::size_t layer) const;

  private:
    std::vector<TidlLayer> all_;
    std::vector<std::optional<std::size_t>> made_;    // by ValueId
    std::vector<std::optional<std::size_t>> around_;  // by ValueId
    std::vector<std::optional<std::size_t>> node_;    // by NodeIndex
};

// The bounds of a Relu or Clip, infinite where it is open; nothing where they are not constant, or for
// another operator. Also of Min and Max with one constant number.
std::optional<Range> clip_bounds(const Node& node, const ConstantLookup& constant);

// Whether TIDL takes a Clip of such bounds: from 0 or less to more than 0.
bool tidl_takes_clip(Range bounds);

}  // namespace qcalib
