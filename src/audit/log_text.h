#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "audit/printed_number.h"

namespace qcalib {

struct LogLine {
    std::string_view text;  // without the end of line
    std::size_t number = 0;
    bool complete = true;  // false: the file ends in the middle of it
};

// The lines of a log: LF or CRLF, lone carriage returns (progress bars), escape sequences for colours left
// out, UTF-16 with a byte order mark (a Windows shell's redirection). Any bytes are taken.
class LogText {
  public:
    explicit LogText(const std::filesystem::path& path);  // Error where it cannot be read
    LogText(std::string name, std::string_view bytes);
    LogText(const LogText&) = delete;
    LogText& operator=(const LogText&) = delete;

    const std::string& name() const { return name_; }
    std::string_view text() const { return text_; }
    std::span<const LogLine> lines() const { return lines_; }
    // "file:12"
    std::string where(const LogLine& line) const;

  private:
    std::string name_;
    std::string text_;
    std::vector<LogLine> lines_;
};

// The text between two markers that follow one another in a line, trimmed, or nothing.
std::optional<std::string_view> text_between(std::string_view line, std::string_view before,
                                             std::string_view after);

// The number right behind the first `key` that stands at the start of a word ("min: -1.5," has -1.5 for
// "min:"), or nothing. Where several keys are read in turn, `line` is cut off behind the number.
std::optional<PrintedNumber> take_number(std::string_view& line, std::string_view key);

// A line as messages quote it: printable, at most some 80 characters.
std::string quoted(std::string_view line);

}  // namespace qcalib
