#pragma once

#include <string>
#include <vector>

namespace qcalib {

// A table of text for a terminal: columns as wide as their widest cell, numbers to the right.
class Table {
  public:
    enum class Align { left, right };

    Table& column(std::string title, Align align = Align::left);
    Table& row(std::vector<std::string> cells);
    bool empty() const { return rows_.empty(); }

    // The lines, each no wider than `width` characters: the widest left-aligned column gives way, its cells
    // cut in their middle.
    std::string text(std::size_t width) const;

  private:
    struct Column {
        std::string title;
        Align align;
    };
    std::vector<std::size_t> widths(std::size_t width) const;

    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

// A row for each line; the label stands beside the first.
void add_rows(Table& table, const std::string& label, const std::vector<std::string>& lines);

// The text cut to `width` characters (code points), "..." in its middle.
std::string elide_middle(const std::string& text, std::size_t width);

}  // namespace qcalib
