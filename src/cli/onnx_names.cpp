#include "cli/onnx_names.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/base_file.h"
#include "graph/model_file.h"
#include "mapping/transfer.h"

namespace qcalib {

namespace {

std::vector<OverrideTarget> targets_of(std::span<const Emission> emissions) {
    std::vector<OverrideTarget> targets;
    for (const Emission& emission : emissions) {
        const Target& target = emission.target;
        const bool known = std::any_of(targets.begin(), targets.end(),
                                       [&](const OverrideTarget& one) { return one.name == target.name; });
        if (!known) targets.push_back({target.name, target.scale_is_multiplier});
    }
    return targets;
}

// The names of tensors whose range alone counts, as the Circle model has them.
std::unordered_set<std::string> carried_names(const TensorMapping& mapping,
                                              const std::unordered_set<std::string>& names) {
    std::unordered_set<std::string> carried;
    for (const std::string& name : names) {
        const ValueId onnx = mapping.onnx->find(name);
        if (onnx == no_value) carried.insert(name);
        if (onnx == no_value) continue;
        for (const TensorPair* pair : mapping.of_onnx(onnx))
            carried.insert(mapping.circle->values[pair->circle].name);
    }
    return carried;
}

}  // namespace

void take_onnx_names(const std::string& onnx, const std::string& base, const Graph& graph,
                     std::span<const Emission> emissions, AssignmentOptions& options, Remarks& remarks) {
    const Model model = read_model(onnx);
    MappingRequest request;
    request.circle = std::shared_ptr<const Graph>(std::shared_ptr<void>(), &graph);
    request.onnx = model.graph;
    request.circle_label = "the model";
    request.onnx_label = printable(onnx);
    const TensorMapping mapping = map_tensors(request);
    for (const std::string& remark : mapping.remarks) remarks.add(remark);
    if (mapping.first_change) {
        const TensorPair& first = mapping.pairs[*mapping.first_change];
        remarks.add(fmt::format(
            "the conversion from {} changed the numbers, first of '{}': by up to {:.3g} of {:.3g} "
            "(qcalib map lists all)",
            printable(onnx), printable(graph.values[first.circle].name), first.difference, first.largest));
    }
    options.overrides = carry_overrides(mapping, options.overrides, targets_of(emissions), remarks);
    if (base.empty()) return;
    options.base = read_base(base, *model.graph, remarks);
    options.base->set = carry_encodings(mapping, options.base->set, printable(base), remarks);
    options.base->ranges_alone = carried_names(mapping, options.base->ranges_alone);
}

}  // namespace qcalib
