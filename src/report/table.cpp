#include "report/table.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include <fmt/format.h>

namespace qcalib {

namespace {

bool starts_character(char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

std::size_t characters(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

// The byte at which character number `index` starts.
std::size_t byte_of_character(const std::string& text, std::size_t index) {
    std::size_t byte = 0;
    for (; byte < text.size(); ++byte) {
        if (starts_character(text[byte]) && index-- == 0) break;
    }
    return byte;
}

std::string padded(const std::string& text, std::size_t width, Table::Align align) {
    const std::string blanks(width - std::min(width, characters(text)), ' ');
    return align == Table::Align::left ? text + blanks : blanks + text;
}

}  // namespace

std::string elide_middle(const std::string& text, std::size_t width) {
    const std::size_t count = characters(text);
    constexpr std::size_t dots = 3;
    if (count <= width) return text;
    if (width <= dots) return text.substr(0, byte_of_character(text, width));
    const std::size_t head = (width - dots + 1) / 2;
    const std::size_t tail = width - dots - head;
    return text.substr(0, byte_of_character(text, head)) + "..." +
           text.substr(byte_of_character(text, count - tail));
}

Table& Table::column(std::string title, Align align) {
    columns_.push_back({std::move(title), align});
    return *this;
}

Table& Table::row(std::vector<std::string> cells) {
    assert(cells.size() == columns_.size());
    rows_.push_back(std::move(cells));
    return *this;
}

std::vector<std::size_t> Table::widths(std::size_t width) const {
    constexpr std::size_t gap = 2;
    constexpr std::size_t least = 12;
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t widest = characters(columns_[c].title);
        for (const auto& row : rows_) widest = std::max(widest, characters(row[c]));
        widths.push_back(widest);
    }
    const std::size_t total = std::accumulate(widths.begin(), widths.end(), std::size_t{0}) +
                              gap * (columns_.empty() ? 0 : columns_.size() - 1);
    std::size_t give = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        if (columns_[c].align == Align::left && (give == columns_.size() || widths[c] > widths[give]))
            give = c;
    }
    if (total > width && give < columns_.size()) {
        widths[give] =
            std::max(std::min(least, widths[give]), widths[give] - std::min(widths[give], total - width));
    }
    return widths;
}

std::string Table::text(std::size_t width) const {
    const std::vector<std::size_t> column_widths = widths(width);
    std::string text;
    const auto add_line = [&](const auto& cell_of) {
        std::string line;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (c > 0) line += "  ";
            line += padded(elide_middle(cell_of(c), column_widths[c]), column_widths[c], columns_[c].align);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    };
    const bool titled =
        std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.title.empty(); });
    if (titled) add_line([&](std::size_t c) { return columns_[c].title; });
    for (const auto& row : rows_) add_line([&](std::size_t c) { return row[c]; });
    return text;
}

void add_rows(Table& table, const std::string& label, const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) table.row({i == 0 ? label : "", lines[i]});
}

}  // namespace qcalib
