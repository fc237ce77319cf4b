#include "format/text_proto.h"

#include <cctype>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr int deepest_message = 50;

bool is_name_start(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_name_part(char c) {
    return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_number_start(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.';
}

std::optional<int> digit_of(char c, int base) {
    int value = 99;
    if (c >= '0' && c <= '9') value = c - '0';
    if (c >= 'a' && c <= 'f') value = c - 'a' + 10;
    if (c >= 'A' && c <= 'F') value = c - 'A' + 10;
    return value < base ? std::optional<int>(value) : std::nullopt;
}

// Reads a text front to back.
class TextProtoParser {
  public:
    TextProtoParser(std::string_view text, const std::filesystem::path& path) : text_(text), path_(path) {}

    TextProtoMessage parse() {
        TextProtoMessage message = fields('\0', 0);
        return message;
    }

  private:
    bool at_end() const { return at_ >= text_.size(); }
    char here() const { return at_end() ? '\0' : text_[at_]; }

    [[noreturn]] void refuse(std::string_view expected) {
        constexpr std::size_t most = 24;
        std::string found = "the end of the file";
        if (!at_end()) {
            const std::string_view rest = text_.substr(at_, text_.find_first_of("\r\n", at_) - at_);
            found = rest.empty() ? "the end of the line"
                                 : fmt::format("'{}{}'", printable(rest.substr(0, most)),
                                               rest.size() > most ? "..." : "");
        }
        fail("{}:{}: expected {}, found {}", printable(path_.string()), line_, expected, found);
    }

    void step() {
        if (here() == '\n') ++line_;
        ++at_;
    }

    // Blanks and comments.
    void skip() {
        while (!at_end()) {
            if (std::isspace(static_cast<unsigned char>(here())) != 0) {
                step();
            } else if (here() == '#') {
                while (!at_end() && here() != '\n') step();
            } else {
                return;
            }
        }
    }

    bool take(char c) {
        if (at_end() || here() != c) return false;
        step();
        return true;
    }

    // Up to `closing`, or to the end of the text where that is '\0'.
    TextProtoMessage fields(char closing, int depth) {
        if (depth > deepest_message) refuse(fmt::format("at most {} nested messages", deepest_message));
        TextProtoMessage message;
        message.begin = at_;
        message.line = line_;
        for (;;) {
            skip();
            message.end = at_;
            if (closing == '\0' ? at_end() : here() == closing) {
                take(closing);
                return message;
            }
            message.fields.push_back(field(depth));
        }
    }

    TextProtoField field(int depth) {
        TextProtoField result;
        result.begin = at_;
        result.line = line_;
        result.name = name();
        skip();
        const bool colon = take(':');
        skip();
        if (here() == '{' || here() == '<') {
            result.messages.push_back(message(depth));
        } else if (!colon) {
            refuse(fmt::format("':' or '{{' behind '{}'", printable(result.name)));
        } else if (here() == '[') {
            list(result, depth);
        } else {
            result.scalars.push_back(scalar());
        }
        result.end = at_;
        skip();
        if (here() == ',' || here() == ';') step();
        return result;
    }

    std::string name() {
        const std::size_t begin = at_;
        if (take('[')) {
            while (!at_end() && here() != ']' && here() != '\n') step();
            if (!take(']')) refuse("']' behind the name of an extension");
        } else if (is_name_start(here())) {
            while (is_name_part(here())) step();
        } else {
            refuse("the name of a field");
        }
        return std::string(text_.substr(begin, at_ - begin));
    }

    TextProtoMessage message(int depth) {
        const char closing = here() == '{' ? '}' : '>';
        step();
        return fields(closing, depth + 1);
    }

    void list(TextProtoField& result, int depth) {
        step();
        skip();
        while (!take(']')) {
            if (here() == '{' || here() == '<') {
                result.messages.push_back(message(depth));
            } else {
                result.scalars.push_back(scalar());
            }
            skip();
            if (!take(',') && here() != ']') refuse("',' or ']' in a list");
            skip();
        }
    }

    TextProtoScalar scalar() {
        TextProtoScalar result;
        result.begin = at_;
        result.line = line_;
        if (here() == '"' || here() == '\'') {
            result.kind = TextProtoScalar::Kind::text;
            result.text = quoted_text();
        } else if (is_name_start(here())) {
            while (is_name_part(here())) step();
        } else if (is_number_start(here())) {
            result.kind = TextProtoScalar::Kind::number;
            while (is_name_part(here()) || is_number_start(here())) step();
        } else {
            refuse("a value");
        }
        result.end = last_;
        if (result.kind != TextProtoScalar::Kind::text) {
            result.end = at_;
            result.text = text_.substr(result.begin, at_ - result.begin);
        }
        return result;
    }

    // Pieces that follow one another are one text.
    std::string quoted_text() {
        std::string result;
        while (here() == '"' || here() == '\'') {
            const char quote = here();
            step();
            while (here() != quote) {
                if (at_end() || here() == '\n') refuse(fmt::format("{} at the end of a text", quote));
                if (here() == '\\') {
                    step();
                    escape(result);
                } else {
                    result += here();
                    step();
                }
            }
            step();
            last_ = at_;
            skip();
        }
        return result;
    }

    void escape(std::string& result) {
        constexpr std::string_view letters = "abfnrtv\\'\"?";
        constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\'\"?";
        const std::size_t place = letters.find(here());
        if (!at_end() && place != std::string_view::npos) {
            result += meanings[place];
            step();
            return;
        }
        const bool hexadecimal = here() == 'x' || here() == 'X';
        if (hexadecimal) step();
        const int base = hexadecimal ? 16 : 8;
        int value = 0;
        int digits = 0;
        while (digits < (hexadecimal ? 2 : 3)) {
            const std::optional<int> digit = digit_of(here(), base);
            if (!digit) break;
            value = value * base + *digit;
            ++digits;
            step();
        }
        if (digits == 0) refuse("an escape such as \\n, \\x41 or \\101 behind a backslash");
        result += static_cast<char>(value);
    }

    std::string_view text_;
    const std::filesystem::path& path_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
    std::size_t last_ = 0;  // behind the last quoted text
};

}  // namespace

std::optional<double> TextProtoScalar::number() const {
    if (kind == Kind::text) return std::nullopt;
    std::string_view digits = text;
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    const double sign = negative ? -1 : 1;
    if (digits == "inf" || digits == "infinity") return sign * std::numeric_limits<double>::infinity();
    if (digits == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (digits.ends_with('f') || digits.ends_with('F')) digits.remove_suffix(1);
    if (digits.empty() || digits.starts_with('-')) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return sign * value;
}

TextProtoMessage parse_text_proto(std::string_view text, const std::filesystem::path& path) {
    return TextProtoParser(text, path).parse();
}

}  // namespace qcalib
