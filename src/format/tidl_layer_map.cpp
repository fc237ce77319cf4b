#include "format/tidl_layer_map.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "format/format_reader.h"

namespace qcalib {

TidlLayerMap::TidlLayerMap(const EncodingSet& encodings, const EmittedModel& model)
    : graph_(*model.model.graph), layers_(graph_, model.constant) {
    for (const std::vector<TensorEncoding>* list : {&encodings.activations, &encodings.parameters}) {
        for (const TensorEncoding& one : *list) entries_.emplace(one.tensor, &one);
    }
}

const TensorEncoding* TidlLayerMap::entry(ValueId value) const {
    if (value == no_value) return nullptr;
    const auto found = entries_.find(name_of(value));
    return found == entries_.end() ? nullptr : found->second;
}

const TensorEncoding* TidlLayerMap::output(const TidlLayer& layer, std::size_t index) const {
    if (index >= layer.outputs.size()) return nullptr;
    if (const TensorEncoding* own = entry(layer.outputs[index])) return own;
    const auto place = layers_.making(layer.output());
    if (!place || !layer.passes_scale) return nullptr;
    return entry(layers_.at(layers_.scale_of(*place)).output());
}

const TensorEncoding* TidlLayerMap::weights(const TidlLayer& layer) const {
    return entry(layer.weight);
}

const TidlLayer* TidlLayerMap::find(const std::string& output) const {
    const ValueId value = graph_.find(output);
    if (value == no_value) return nullptr;
    const auto place = layers_.making(value);
    return place ? &layers_.at(*place) : nullptr;
}

std::vector<std::string> layers_with_wide_weights(const EncodingSet& encodings, const EmittedModel& model,
                                                  Remarks& remarks) {
    constexpr int wide_bits = 16;
    const TidlLayerMap map(encodings, model);
    std::vector<std::string> names;
    std::unordered_set<std::string> listed;
    for (const TidlLayer& layer : map.layers().all()) {
        const TensorEncoding* weights = map.weights(layer);
        if (weights == nullptr || weights->width() != wide_bits) continue;
        names.push_back(map.name_of(layer.output()));
        listed.insert(weights->tensor);
    }
    std::vector<std::string> lost;
    for (const TensorEncoding& one : encodings.parameters) {
        if (one.width() == wide_bits && !listed.contains(one.tensor)) lost.push_back(one.tensor);
    }
    if (!lost.empty()) {
        remarks.add(
            fmt::format("tidl-options: {} of 16 bits ({}) {} no layer's weights: left out",
                        lost.size() == 1 ? "one parameter" : fmt::format("{} parameters", lost.size()),
                        name_list(lost), lost.size() == 1 ? "is" : "are"));
    }
    return names;
}

}  // namespace qcalib
