#include "format/tidl_weight_names.h"

#include <string_view>

#include "format/tidl_params.h"
#include "target/constant_lookup.h"

namespace qcalib {

TidlWeightNames::TidlWeightNames(const Graph& graph) : graph_(graph), layers_(graph, constants_of(graph)) {}

std::string TidlWeightNames::of_layer(const std::string& output) const {
    const ValueId value = graph_.find(output);
    if (value == no_value) return "";
    const auto layer = layers_.making(value);
    if (!layer || layers_.at(*layer).weight == no_value) return "";
    return graph_.values[layers_.at(*layer).weight].name;
}

void name_tidl_weights(EncodingFile& file, const Graph& graph) {
    const TidlWeightNames names(graph);
    const std::string suffix = tidl_weights_name("");
    for (FileEntry& entry : file.entries) {
        std::string& tensor = entry.encoding.tensor;
        if (entry.section != Section::parameter || !tensor.ends_with(suffix)) continue;
        if (graph.find(tensor) != no_value) continue;
        const std::string name = names.of_layer(tensor.substr(0, tensor.size() - suffix.size()));
        if (!name.empty()) tensor = name;
    }
}

}  // namespace qcalib
