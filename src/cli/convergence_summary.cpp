#include "cli/convergence_summary.h"

#include "base/text.h"
#include "report/convergence.h"

namespace qcalib {

namespace {

// Of the tensors whose method needs extremes alone. The summary starts with what moves minmax, and tails.
RangeChooser chooser_of(const MethodTable& methods) {
    return [&methods](const StatisticsFile& file, std::size_t tensor) -> std::optional<Range> {
        const MethodChoice& choice = methods.of(file.header().tensors[tensor].name);
        if (choice.needs_histogram() || choice.method->name() == "minmax") return std::nullopt;
        return choice.choose(TensorSamples(file, tensor), {});
    };
}

}  // namespace

std::vector<std::string> convergence_summary(const StatisticsFile& file, std::span<const Emission> emissions,
                                             const AssignmentOptions& options) {
    std::vector<std::string> lines = convergence_lines(convergence_of(file));
    for (const Emission& emission : emissions) {
        const MethodTable methods = activation_methods(options, emission.target);
        const ChosenMovement movement = movement_of_chosen(file, chooser_of(methods));
        if (movement.tensors == 0) continue;
        const std::string share = share_of_tensors(movement.moved, movement.tensors);
        lines.insert(lines.end() - 1,
                     fmt::format("ranges of {} by {}: {}", emission.target.name, methods.describe(), share));
    }
    return lines;
}

}  // namespace qcalib
