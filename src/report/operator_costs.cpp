#include "report/operator_costs.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace qcalib {

namespace {

std::string share_of_peak(double amount, double seconds, double peak) {
    return amount > 0 && seconds > 0 && peak > 0 ? fmt::format("{:.0f} %", 100 * amount / seconds / peak)
                                                 : "";
}

std::string rate(double amount, double seconds) {
    return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds * 1e-9) : "";
}

}  // namespace

Table cost_table(const std::string& title, std::span<const CostRow> rows, double samples,
                 const CostPeak& peak) {
    std::vector<CostRow> sorted(rows.begin(), rows.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const CostRow& a, const CostRow& b) { return a.seconds > b.seconds; });
    double all = 0;
    for (const CostRow& row : sorted) all += row.seconds;
    Table table;
    using enum Table::Align;
    table.column(title).column("calls", right).column("ms", right).column("share", right);
    table.column("GB/s", right).column("GFLOP/s", right).column("of peak", right);
    for (const CostRow& row : sorted) {
        const std::string of_peak =
            row.operations > 0 ? share_of_peak(row.operations, row.seconds, peak.operations_per_second)
                               : share_of_peak(row.bytes, row.seconds, peak.bytes_per_second);
        table.row({row.name, row.calls > 0 ? fmt::format("{:.0f}", row.calls / samples) : "",
                   fmt::format("{:.3f}", row.seconds / samples * 1e3),
                   fmt::format("{:.1f} %", all > 0 ? 100 * row.seconds / all : 0),
                   rate(row.bytes, row.seconds), rate(row.operations, row.seconds), of_peak});
    }
    return table;
}

}  // namespace qcalib
