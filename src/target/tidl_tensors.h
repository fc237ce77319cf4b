#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "graph/graph.h"
#include "target/constant_lookup.h"
#include "target/overrides.h"
#include "target/target.h"
#include "target/tidl_layers.h"
#include "tensor/grid.h"
#include "tensor/tensor.h"

namespace qcalib {

// What TIDL's layers say of the tensors of a model. Everything given must outlive it.
class TidlTensors {
  public:
    TidlTensors(const Graph& graph, const ConstantLookup& constant, const Target& target);

    const TidlLayers& layers() const { return layers_; }
    // The output of the layer inside which the value lies, or no_value: TIDL has no tensor for it.
    ValueId swallowed_by(ValueId value) const;
    // "TIDL_ConvolutionLayer of Conv 'a' and Relu 'b'".
    std::string describe(std::size_t layer) const;

    // The run's grid with what TIDL's layers ask for: codes with or without a sign, a network's input.
    GridRules grid(ValueId value, GridRules run) const;
    // The range that the model itself gives the value: that of the Clip or Relu6 its layer ends in.
    std::optional<Range> carried(ValueId value) const;
    // Whether it is an input of the network, for which TIDL takes the extremes over all frames.
    bool is_input(ValueId value) const;
    // A weight with the batch normalization behind it taken in; nothing where there is none.
    std::optional<Tensor> folded(ValueId weight) const;

  private:
    const Graph& graph_;
    const ConstantLookup& constant_;
    const Target& target_;
    TidlLayers layers_;
};

// "TIDL's scale 32 (code = round(value * 32)), unsigned 8 bit (u8)".
std::string tidl_scale_text(const Encoding& encoding);

// Overrides as TIDL's layers take them: one for a tensor inside a layer is for its output; a width is that of
// the layer whose codes are handed on, and of all that meets in a Concat. What is moved or added is remarked.
// An Error for asymmetric codes where the target has none.
std::vector<Override> tidl_overrides(std::span<const Override> overrides, const Graph& graph,
                                     const TidlTensors& tensors, const Target& target, int run_bits,
                                     Remarks& remarks);

}  // namespace qcalib
