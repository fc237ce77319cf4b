#include "audit/log_text.h"

#include <cctype>

#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr std::string_view utf8_mark = "\xef\xbb\xbf";
constexpr char escape = '\x1b';

void append_utf8(std::string& text, unsigned code) {
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xc0 | (code >> 6));
        text += static_cast<char>(0x80 | (code & 0x3f));
    } else {
        text += static_cast<char>(0xe0 | (code >> 12));
        text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
        text += static_cast<char>(0x80 | (code & 0x3f));
    }
}

// UTF-16 with a byte order mark as UTF-8 (surrogates stay apart: names in logs have none); else the bytes.
std::string decoded(std::string_view bytes) {
    const bool little = bytes.starts_with("\xff\xfe");
    const bool big = bytes.starts_with("\xfe\xff");
    if (!little && !big) {
        if (bytes.starts_with(utf8_mark)) bytes.remove_prefix(utf8_mark.size());
        return std::string(bytes);
    }
    std::string text;
    for (std::size_t i = 2; i + 1 < bytes.size(); i += 2) {
        const unsigned first = static_cast<unsigned char>(bytes[i]);
        const unsigned second = static_cast<unsigned char>(bytes[i + 1]);
        append_utf8(text, little ? first | (second << 8) : second | (first << 8));
    }
    return text;
}

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_letter(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// The length of the escape sequence at the start of `text` ("\x1b[0;32m"), at least 1.
std::size_t escape_length(std::string_view text) {
    if (text.size() < 2 || text[1] != '[') return 1;
    std::size_t i = 2;
    while (i < text.size() && (is_digit(text[i]) || text[i] == ';')) ++i;
    return i < text.size() && is_letter(text[i]) ? i + 1 : i;
}

std::string without_escapes(std::string text) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] == escape) {
            i += escape_length(std::string_view(text).substr(i));
        } else {
            text[kept++] = text[i++];
        }
    }
    text.resize(kept);
    return text;
}

bool in_a_word(char c) {
    return is_letter(c) || is_digit(c) || c == '_';
}

}  // namespace

LogText::LogText(const std::filesystem::path& path) : LogText(path.string(), read_text_file(path)) {}

LogText::LogText(std::string name, std::string_view bytes)
    : name_(std::move(name)), text_(without_escapes(decoded(bytes))) {
    const std::string_view text = text_;
    std::size_t number = 1;
    std::size_t start = 0;
    while (start < text.size()) {
        const std::size_t end = std::min(text.find_first_of("\r\n", start), text.size());
        if (end > start) lines_.push_back({text.substr(start, end - start), number, end < text.size()});
        if (end < text.size() && text[end] == '\n') ++number;
        start = end + 1;
    }
}

std::string LogText::where(const LogLine& line) const {
    return fmt::format("{}:{}", printable(name_), line.number);
}

std::optional<std::string_view> text_between(std::string_view line, std::string_view before,
                                             std::string_view after) {
    const std::size_t start = line.find(before);
    if (start == std::string_view::npos) return std::nullopt;
    const std::string_view rest = line.substr(start + before.size());
    const std::size_t end = rest.rfind(after);
    if (end == std::string_view::npos) return std::nullopt;
    return trim(rest.substr(0, end));
}

std::optional<PrintedNumber> take_number(std::string_view& line, std::string_view key) {
    std::size_t at = line.find(key);
    while (at != std::string_view::npos && at > 0 && in_a_word(line[at - 1])) at = line.find(key, at + 1);
    if (at == std::string_view::npos) return std::nullopt;
    std::string_view rest = line.substr(at + key.size());
    const std::size_t first = rest.find_first_not_of(" \t:");
    if (first == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(first);
    const std::size_t end = std::min(rest.find_first_of(" \t,;|)]"), rest.size());
    const auto number = parse_printed_number(rest.substr(0, end));
    if (number) line = rest.substr(end);
    return number;
}

std::string quoted(std::string_view line) {
    constexpr std::size_t most = 80;
    const std::string_view text = trim(line);
    if (text.size() <= most) return fmt::format("'{}'", printable(text));
    return fmt::format("'{}...'", printable(text.substr(0, most)));
}

}  // namespace qcalib
