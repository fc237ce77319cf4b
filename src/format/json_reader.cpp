#include "format/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr int deepest = 64;  // nesting; encodings need five

class Parser {
  public:
    Parser(std::string_view text, const std::filesystem::path& file, std::vector<JsonRepetition>& repetitions)
        : text_(text), file_(file), repetitions_(repetitions) {}

    JsonValue document() {
        skip_blanks();
        JsonValue root = value(0);
        skip_blanks();
        if (at_ < text_.size()) expected("the end of the file");
        return root;
    }

  private:
    [[noreturn]] void fault(const std::string& text) const;
    [[noreturn]] void expected(std::string_view what) const;
    void skip_blanks();
    bool take(char c);
    JsonValue value(int depth);
    void object(JsonValue& result, int depth);
    void array(JsonValue& result, int depth);
    std::string quoted();
    void escape(std::string& result);
    std::uint32_t hexadecimal();
    void number(JsonValue& result);
    bool word(std::string_view word);
    void note_repetitions(const JsonValue& object, const std::vector<std::size_t>& places);

    std::string_view text_;
    const std::filesystem::path& file_;
    std::vector<JsonRepetition>& repetitions_;
    std::vector<std::string_view> path_;
    std::size_t at_ = 0;
};

void Parser::fault(const std::string& text) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = at_ - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
    fail("{}:{}:{}: {}", printable(file_.string()), line, column, text);
}

void Parser::expected(std::string_view what) const {
    if (at_ >= text_.size()) fault(fmt::format("expected {}, found the end of the file", what));
    constexpr std::size_t most = 20;
    const std::string_view rest = text_.substr(at_, most);
    fault(fmt::format("expected {}, found '{}'", what,
                      printable(rest.substr(0, rest.find_first_of("\r\n", 1)))));
}

void Parser::skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
        ++at_;
    }
}

bool Parser::take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
}

bool Parser::word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
}

JsonValue Parser::value(int depth) {
    if (depth > deepest) fault(fmt::format("expected at most {} levels of nesting, found more", deepest));
    JsonValue result;
    result.begin = at_;
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    if (first == '{') {
        object(result, depth);
    } else if (first == '[') {
        array(result, depth);
    } else if (first == '"') {
        result.kind = JsonValue::Kind::string;
        result.string = quoted();
    } else if (word("null")) {
        result.kind = JsonValue::Kind::null;
    } else if (first == 't' && word("true")) {
        result.kind = JsonValue::Kind::boolean;
        result.boolean = true;
    } else if (first == 'f' && word("false")) {
        result.kind = JsonValue::Kind::boolean;
    } else {
        number(result);
    }
    result.end = at_;
    return result;
}

void Parser::object(JsonValue& result, int depth) {
    result.kind = JsonValue::Kind::object;
    std::vector<std::size_t> places;
    ++at_;
    skip_blanks();
    if (take('}')) return;
    while (true) {
        if (at_ >= text_.size() || text_[at_] != '"') expected("a key in double quotes");
        places.push_back(at_);
        result.keys.push_back(quoted());
        skip_blanks();
        if (!take(':')) expected("':'");
        skip_blanks();
        path_.emplace_back(result.keys.back());
        result.items.push_back(value(depth + 1));
        path_.pop_back();
        skip_blanks();
        if (take('}')) break;
        if (!take(',')) expected("',' or '}'");
        skip_blanks();
    }
    note_repetitions(result, places);
}

void Parser::note_repetitions(const JsonValue& object, const std::vector<std::size_t>& places) {
    if (object.keys.size() < 2) return;
    std::vector<std::size_t> order(object.keys.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const int compared = object.keys[a].compare(object.keys[b]);
        return compared != 0 ? compared < 0 : a < b;
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (object.keys[order[i]] != object.keys[order[i - 1]]) continue;
        repetitions_.push_back(
            {{path_.begin(), path_.end()}, object.keys[order[i]], places[order[i - 1]], places[order[i]]});
    }
}

void Parser::array(JsonValue& result, int depth) {
    result.kind = JsonValue::Kind::array;
    ++at_;
    skip_blanks();
    if (take(']')) return;
    path_.emplace_back("");
    while (true) {
        result.items.push_back(value(depth + 1));
        skip_blanks();
        if (take(']')) break;
        if (!take(',')) expected("',' or ']'");
        skip_blanks();
    }
    path_.pop_back();
}

std::string Parser::quoted() {
    std::string result;
    ++at_;
    while (true) {
        const std::size_t end = text_.find_first_of("\"\\\n\r", at_);
        if (end == std::string_view::npos || text_[end] == '\n' || text_[end] == '\r') {
            at_ = std::min(end, text_.size());
            expected("'\"' at the end of a string");
        }
        result.append(text_.substr(at_, end - at_));
        at_ = end + 1;
        if (text_[end] == '"') return result;
        escape(result);
    }
}

void append_utf8(std::string& text, std::uint32_t code) {
    const auto byte = [&](std::uint32_t value) {
        text += static_cast<char>(static_cast<unsigned char>(value));
    };
    if (code < 0x80) {
        byte(code);
    } else if (code < 0x800) {
        byte(0xc0 | (code >> 6));
        byte(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        byte(0xe0 | (code >> 12));
        byte(0x80 | ((code >> 6) & 0x3f));
        byte(0x80 | (code & 0x3f));
    } else {
        byte(0xf0 | (code >> 18));
        byte(0x80 | ((code >> 12) & 0x3f));
        byte(0x80 | ((code >> 6) & 0x3f));
        byte(0x80 | (code & 0x3f));
    }
}

std::uint32_t Parser::hexadecimal() {
    std::uint32_t code = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || end != digits.data() + 4) expected("four hexadecimal digits");
    at_ += 4;
    return code;
}

void Parser::escape(std::string& result) {
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
    const char letter = at_ < text_.size() ? text_[at_] : '\0';
    if (const std::size_t known = letters.find(letter); letter != '\0' && known != std::string_view::npos) {
        result += meant[known];
        ++at_;
        return;
    }
    if (letter != 'u') expected("an escape sequence of JSON");
    ++at_;
    std::uint32_t code = hexadecimal();
    if (code >= 0xd800 && code < 0xdc00 && word("\\u")) {
        const std::uint32_t low = hexadecimal();
        if (low < 0xdc00 || low > 0xdfff)
            fault("expected the second half of a surrogate pair, found another");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code >= 0xd800 && code < 0xe000) fault("expected a surrogate pair, found half of one");
    append_utf8(result, code);
}

// -?digits[.digits][e[+-]digits]: how many characters of `text` are such a number.
std::size_t number_length(std::string_view text) {
    std::size_t at = 0;
    const auto digits = [&] {
        const std::size_t start = at;
        while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
        return at > start;
    };
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (!digits()) return 0;
    if (at < text.size() && text[at] == '.') {
        ++at;
        digits();
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
        if (!digits()) return 0;
    }
    return at;
}

// What a number beyond double's range stands for: infinity, or zero where its exponent is negative.
double beyond_range(std::string_view digits) {
    const std::size_t exponent = digits.find_first_of("eE");
    const bool small = exponent != std::string_view::npos
                           ? digits[exponent + 1] == '-'
                           : digits.find_first_of("123456789") > digits.find('.');
    const double magnitude = small ? 0.0 : std::numeric_limits<double>::infinity();
    return digits[0] == '-' ? -magnitude : magnitude;
}

void Parser::number(JsonValue& result) {
    result.kind = JsonValue::Kind::number;
    if (word("NaN") || word("nan")) {
        result.number = std::numeric_limits<double>::quiet_NaN();
        return;
    }
    const bool negative = text_.substr(at_, 2) == "-I" || text_.substr(at_, 2) == "-i";
    const std::string_view magnitude = text_.substr(std::min(at_ + (negative ? 1 : 0), text_.size()));
    if (magnitude.starts_with("Infinity") || magnitude.starts_with("infinity")) {
        at_ += 8 + (negative ? 1 : 0);
        result.number =
            negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
        return;
    }
    const std::size_t length = number_length(text_.substr(at_));
    if (length == 0) expected("a value");
    std::string_view digits = text_.substr(at_, length);
    if (digits[0] == '+') digits.remove_prefix(1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result.number);
    if (error == std::errc::result_out_of_range) result.number = beyond_range(digits);
    at_ += length;
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
    const auto found = std::find(keys.begin(), keys.end(), key);
    return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

JsonDocument::JsonDocument(std::string_view text, const std::filesystem::path& file) : text_(text) {
    line_starts_.push_back(0);
    for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
        line_starts_.push_back(at + 1);
    }
    root_ = Parser(text_, file, repetitions_).document();
}

std::size_t JsonDocument::line(std::size_t byte) const {
    const auto above = std::upper_bound(line_starts_.begin(), line_starts_.end(), byte);
    return static_cast<std::size_t>(above - line_starts_.begin());
}

std::string shown(const JsonValue& value) {
    constexpr std::size_t most = 40;
    switch (value.kind) {
        case JsonValue::Kind::null:
            return "null";
        case JsonValue::Kind::boolean:
            return value.boolean ? "true" : "false";
        case JsonValue::Kind::number:
            return fmt::format("{}", value.number);
        case JsonValue::Kind::string:
            return fmt::format(
                "\"{}\"",
                printable(value.string.size() > most ? value.string.substr(0, most) + "..." : value.string));
        case JsonValue::Kind::array:
            return value.items.empty() ? "an empty list" : "a list";
        case JsonValue::Kind::object:
            return value.items.empty() ? "an empty object" : "an object";
    }
    return "";
}

}  // namespace qcalib
