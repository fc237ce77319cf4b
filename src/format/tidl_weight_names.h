#pragma once

#include <string>

#include "encoding/encoding_file.h"
#include "graph/graph.h"
#include "target/tidl_layers.h"

namespace qcalib {

// TIDL's files name weights by the layer that has them; a model has names for them.
class TidlWeightNames {
  public:
    // The graph must outlive this.
    explicit TidlWeightNames(const Graph& graph);

    // The weight of the layer that makes a tensor of that name, or "".
    std::string of_layer(const std::string& output) const;

  private:
    const Graph& graph_;
    TidlLayers layers_;
};

// Gives entries "<layer>.weights" the names that the weights have in the model.
void name_tidl_weights(EncodingFile& file, const Graph& graph);

}  // namespace qcalib
