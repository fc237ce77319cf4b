#include "report/statistics_summary.h"

#include <fmt/format.h>

#include "base/text.h"

namespace qcalib {

StatisticsSummary summarize_statistics(const StatisticsFile& file) {
    StatisticsSummary summary;
    summary.samples = file.rows();
    for (std::size_t row = 0; file.header().sequences && row < file.rows(); ++row) {
        if (file.row_number(row) % step_number(1, 0) == 0) ++summary.sequences;
    }
    summary.skipped = file.skipped().size();
    const std::vector<TensorInfo>& tensors = file.header().tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorStatistics& statistics = file.tensor(i);
        const std::string& name = tensors[i].name;
        (tensors[i].constant ? summary.constants : summary.activations) += 1;
        if (statistics.nans > 0) summary.with_nan.push_back(name);
        if (statistics.positive_infinities + statistics.negative_infinities > 0)
            summary.with_infinity.push_back(name);
        if (statistics.positive_masks + statistics.negative_masks > 0) summary.with_masks.push_back(name);
        summary.masks += statistics.positive_masks + statistics.negative_masks;
        if (tensors[i].constant) continue;
        if (!statistics.extremes) {
            summary.without_data.push_back(name);
        } else if (statistics.extremes->min == 0 && statistics.extremes->max == 0) {
            summary.all_zero.push_back(name);
        }
    }
    return summary;
}

std::string count_and_names(const std::vector<std::string>& names, std::size_t most) {
    if (names.empty()) return "none";
    std::string text = fmt::format("{} (", names.size());
    for (std::size_t i = 0; i < names.size() && i < most; ++i) {
        text += (i > 0 ? ", " : "") + printable(names[i]);
    }
    return text + (names.size() > most ? ", ...)" : ")");
}

}  // namespace qcalib
