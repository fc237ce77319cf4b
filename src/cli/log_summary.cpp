#include "cli/log_summary.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/table.h"

namespace qcalib {

namespace {

std::string printed(const std::optional<PrintedNumber>& number) {
    return number ? fmt::format("{:.7g}", number->value) : "-";
}

void add_row(const FoundTensor& tensor, Table& table) {
    std::string bits = tensor.data_type.empty() ? "-" : printable(tensor.data_type);
    std::vector<std::string> cells = {printable(tensor.name), bits, "-", "-", "-"};
    if (!tensor.encodings.empty()) {
        const FoundEncoding& first = tensor.encodings.front();
        cells[1] = std::to_string(first.bits);
        cells[2] = printed(first.min);
        cells[3] = printed(first.max);
        cells[4] = tensor.tidl ? printed(tensor.tidl->scale) : fmt::format("{:.7g}", first.step());
    }
    table.row(std::move(cells));
}

}  // namespace

std::string log_summary(const ConverterReport& report, const std::string& pattern, std::size_t width) {
    using enum Table::Align;
    Table table;
    bool multipliers = false;
    for (const FoundTensor& tensor : report.tensors) multipliers |= tensor.tidl.has_value();
    table.column("tensor").column("bits", right).column("codes from", right).column("to", right);
    table.column(multipliers ? "scale (multiplier)" : "step", right);
    std::string words;
    for (const FoundTensor& tensor : report.tensors) {
        if (!glob_match(pattern, tensor.name)) continue;
        add_row(tensor, table);
        if (tensor.tidl)
            words +=
                fmt::format("{} ({}): {}\n", printable(tensor.name), tensor.where, tidl_words(*tensor.tidl));
    }
    for (const auto& [tensor, text] : report.tidl_weights)
        words += fmt::format("{}: {}\n", printable(tensor), text);
    std::string names;
    if (report.tensors.empty()) {
        for (const auto& [id, name] : report.tidl_names)
            names += fmt::format("data {}: {}\n", id, printable(name));
    }
    const std::string rows = table.empty() ? "" : table.text(width);
    return rows + (words.empty() ? "" : "\n" + words) + names;
}

}  // namespace qcalib
