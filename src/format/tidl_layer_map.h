#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "format/format.h"
#include "target/tidl_layers.h"

namespace qcalib {

// The layers that TIDL makes of a model, and the encodings of what they make and of their weights.
class TidlLayerMap {
  public:
    TidlLayerMap(const EncodingSet& encodings, const EmittedModel& model);

    const TidlLayers& layers() const { return layers_; }
    const Graph& graph() const { return graph_; }
    const std::string& name_of(ValueId value) const { return graph_.values[value].name; }
    // Of output `index` of a layer: its own, else that of the layer whose scale it passes on; or nullptr.
    const TensorEncoding* output(const TidlLayer& layer, std::size_t index) const;
    // Of the layer's weights, or nullptr.
    const TensorEncoding* weights(const TidlLayer& layer) const;
    // The layer whose first output has that name, or nullptr.
    const TidlLayer* find(const std::string& output) const;

  private:
    const TensorEncoding* entry(ValueId value) const;

    const Graph& graph_;
    TidlLayers layers_;
    std::unordered_map<std::string, const TensorEncoding*> entries_;
};

// The names of the layers whose weights have 16 bits; weights of none are remarked.
std::vector<std::string> layers_with_wide_weights(const EncodingSet& encodings, const EmittedModel& model,
                                                  Remarks& remarks);

}  // namespace qcalib
